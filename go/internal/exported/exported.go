// Package exported remembers which variables this module itself put into the environment. The address of a throwaway
// database under DATABASE_URL is no ambient credential, whatever its name says, and the floor must not take it away.
package exported

import "sync"

type entry struct{ name, value string }

var (
	lock    sync.Mutex
	entries = map[entry]bool{}
)

// Add notes that name was set to value, until it is removed; a name may have several values, one inside the other.
func Add(name, value string) {
	lock.Lock()
	defer lock.Unlock()
	entries[entry{name, value}] = true
}

// Remove notes that the value is no longer ours.
func Remove(name, value string) {
	lock.Lock()
	defer lock.Unlock()
	delete(entries, entry{name, value})
}

// Is tells whether name holds what we put there.
func Is(name, value string) bool {
	lock.Lock()
	defer lock.Unlock()
	return entries[entry{name, value}]
}
