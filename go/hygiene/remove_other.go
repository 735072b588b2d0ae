//go:build !unix

package hygiene

import "os"

func removeFile(path string) error { return os.Remove(path) }

func removeFolder(path string) error { return os.Remove(path) }
