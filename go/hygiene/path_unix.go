//go:build unix

package hygiene

import "syscall"

// os.Remove tries both kinds, and os.Rename looks at the target first; here both are known.

func removeFile(path string) error { return syscall.Unlink(path) }

func removeFolder(path string) error { return syscall.Rmdir(path) }

func renameFolder(from, to string) error { return syscall.Rename(from, to) }
