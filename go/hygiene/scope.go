package hygiene

import (
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
)

// scope is what this package changed for one test, and how it was before. A test has at most one; it ends with the test.
type scope struct {
	t      testing.TB
	before map[string]before
	home   *directory
}

// before is what a variable held when the scope first touched it.
type before struct {
	value string
	isSet bool
}

// claim is the variable that stands for the environment: TB.Setenv on it refuses a parallel test, and makes the test refuse
// to become parallel. Once a scope has claimed, it changes and restores variables by itself, all in one cleanup.
const claim = "HOME"

// touchedCount is about how many variables an isolation changes.
const touchedCount = 32

var scopes = struct {
	sync.Mutex
	of map[testing.TB]*scope
}{of: map[testing.TB]*scope{}}

// scopeOf finds the scope of a test, or opens one. It panics in a parallel test.
func scopeOf(t testing.TB) *scope {
	scopes.Lock()
	own := scopes.of[t]
	scopes.Unlock()
	if own != nil {
		return own
	}
	claimVariable(t, claim)
	own = &scope{t: t, before: make(map[string]before, touchedCount)}
	scopes.Lock()
	scopes.of[t] = own
	scopes.Unlock()
	t.Cleanup(own.end)
	return own
}

// claimVariable binds a variable to the test without changing it: also an absent one stays absent.
func claimVariable(t testing.TB, name string) {
	value, isSet := os.LookupEnv(name)
	t.Setenv(name, value)
	if !isSet {
		os.Unsetenv(name)
	}
}

func (own *scope) end() {
	scopes.Lock()
	delete(scopes.of, own.t)
	scopes.Unlock()
	for name, was := range own.before {
		restore(name, was)
	}
	if own.home == nil {
		return
	}
	if err := homes.giveBack(own.home); err != nil {
		own.t.Errorf("hygiene: removing the throwaway home %s: %v", own.home.path, err)
	}
}

func (own *scope) set(name, value string) {
	own.remember(name)
	os.Setenv(name, value)
}

// unset removes a variable for good: a program asks whether it is there, and an empty one is.
func (own *scope) unset(name string) {
	own.remember(name)
	os.Unsetenv(name)
}

func (own *scope) remember(name string) {
	if _, known := own.before[name]; !known {
		value, isSet := os.LookupEnv(name)
		own.before[name] = before{value, isSet}
	}
}

func restore(name string, was before) {
	if was.isSet {
		os.Setenv(name, was.value)
	} else {
		os.Unsetenv(name)
	}
}

// restoreLeaks makes the test leave the variables that this package did not touch as they were at the start. What the test set
// by t.Setenv is undone before, so what differs was left behind.
func (own *scope) restoreLeaks(atStart []string) {
	own.t.Cleanup(func() {
		own.t.Helper()
		if names := own.undo(atStart, os.Environ()); len(names) > 0 {
			own.t.Logf("hygiene: the test left variables changed, now restored: %s; use t.Setenv", strings.Join(names, ", "))
		}
	})
}

// undo makes the environment what it was and returns the names that differed, sorted.
func (own *scope) undo(atStart, atEnd []string) []string {
	if own.isUnchanged(atStart, atEnd) {
		return nil
	}
	var names []string
	left := own.untouched(atEnd)
	for name, value := range own.untouched(atStart) {
		if now, isSet := left[name]; !isSet || now != value {
			restore(name, before{value, true})
			names = append(names, name)
		}
		delete(left, name)
	}
	for name := range left {
		os.Unsetenv(name)
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// isUnchanged is the quick answer for most tests. Variables that nobody touches keep their order, so two walks side by side
// meet the same ones; if not, undo looks by name.
func (own *scope) isUnchanged(atStart, atEnd []string) bool {
	for {
		var left, right string
		left, atStart = own.nextUntouched(atStart)
		right, atEnd = own.nextUntouched(atEnd)
		if left != right {
			return false
		}
		if left == "" {
			return true
		}
	}
}

func (own *scope) nextUntouched(environ []string) (entry string, rest []string) {
	for at, entry := range environ {
		if _, isTouched := own.before[nameOf(entry)]; !isTouched {
			return entry, environ[at+1:]
		}
	}
	return "", nil
}

func (own *scope) untouched(environ []string) map[string]string {
	values := map[string]string{}
	for _, entry := range environ {
		name := nameOf(entry)
		if _, isTouched := own.before[name]; !isTouched {
			values[name] = entry[len(name)+1:]
		}
	}
	return values
}

// nameOf is what stands before the equals sign. The first sign may be one itself: Windows keeps the directories of its drives
// that way.
func nameOf(entry string) string {
	return entry[:strings.IndexByte(entry[1:], '=')+1]
}
