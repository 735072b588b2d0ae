package hygiene

import (
	"sync/atomic"
	"syscall"
	"time"
)

// held keeps directories open over their removal. The name is gone at once, but a file system frees the space only when the
// last descriptor is closed, and where it tells the disk about freed space that takes up to half a millisecond for each
// directory. The test does not wait for it.
type held []int

// isSlow is whether a removal took longer than quickMax in this process. Until then nothing is held: opening costs as well.
var isSlow atomic.Bool

// quickMax is above what it takes to remove a home in memory, and below what it takes with words to the disk.
const quickMax = 150 * time.Microsecond

func hold(made *directory) held {
	if !isSlow.Load() {
		return nil
	}
	const flags = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	open := make(held, 0, len(homeFolders)+1)
	for _, folder := range homeFolders {
		if descriptor, err := syscall.Open(made.in(folder), flags, 0); err == nil {
			open = append(open, descriptor)
		}
	}
	if descriptor, err := syscall.Open(made.path, flags, 0); err == nil {
		open = append(open, descriptor)
	}
	return open
}

// release notes how long the removal took, and lets go of what was held.
func (open held) release(took time.Duration) {
	if len(open) == 0 {
		if took > quickMax {
			isSlow.Store(true)
		}
		return
	}
	go func() {
		for _, descriptor := range open {
			syscall.Close(descriptor)
		}
	}()
}
