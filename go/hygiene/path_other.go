//go:build !unix

package hygiene

import "os"

func removeFile(path string) error { return os.Remove(path) }

func removeFolder(path string) error { return os.Remove(path) }

func renameFolder(from, to string) error { return os.Rename(from, to) }
