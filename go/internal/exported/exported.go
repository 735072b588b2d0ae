// Package exported remembers which variables this module itself put into the environment. The address of a throwaway
// database under DATABASE_URL is no ambient credential, whatever its name says, and the floor must not take it away.
package exported

import "sync"

var (
	lock   sync.Mutex
	values = map[string]string{}
)

// Add notes that name was set to value.
func Add(name, value string) {
	lock.Lock()
	defer lock.Unlock()
	values[name] = value
}

// Remove notes that name is no longer ours.
func Remove(name string) {
	lock.Lock()
	defer lock.Unlock()
	delete(values, name)
}

// Is tells whether name holds what we put there.
func Is(name, value string) bool {
	lock.Lock()
	defer lock.Unlock()
	ours, ok := values[name]
	return ok && ours == value
}
