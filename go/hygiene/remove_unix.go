//go:build unix

package hygiene

import "syscall"

// os.Remove tries both kinds; here the kind is known.

func removeFile(path string) error { return syscall.Unlink(path) }

func removeFolder(path string) error { return syscall.Rmdir(path) }
