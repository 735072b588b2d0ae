// Package hygiene keeps a test from everything on a developer's machine that is not the test's: the home directory,
// credentials, git's configuration and identity, remote repositories.
//
//	func TestSomething(t *testing.T) {
//		hygiene.Isolate(t)
//	}
//
// One call gives the test a throwaway HOME and XDG directories, a git configuration and identity of its own, no transport of
// git but the local one, and an environment without credentials; all of it comes back when the test ends. The parts are
// exported one by one as well.
//
// The environment and the working directory belong to the process, so every helper claims them through [testing.TB.Setenv],
// which panics in a test that called t.Parallel, and makes a later t.Parallel panic. That is intended: a parallel test cannot
// own HOME. A subtest may isolate itself inside an isolated test; it gets a home of its own, and the outer one back.
//
// What this package leaves to others: the network. Go's runtime has no place where connects could be refused for good, and a
// guard with holes reads as a promise; the sandbox runner closes the network for the whole process, and [RequireSandbox]
// refuses a run outside of it.
package hygiene

import (
	"os"
	"testing"

	"github.com/smm-h/stricttest/go/internal/floor"
)

// Option changes what [Isolate] keeps. There is none that switches a part of the floor off.
type Option func(*settings)

type settings struct {
	preserved []KnownVar
	kept      []string
}

// Preserve keeps toolchain caches where they are while HOME moves, so that a test that builds something does not start from
// nothing. Each variable keeps its value, or gets the place where its tool looks below the real home.
//
//	hygiene.Isolate(t, hygiene.Preserve(hygiene.GoCache, hygiene.GoModCache))
func Preserve(caches ...KnownVar) Option {
	return func(chosen *settings) { chosen.preserved = append(chosen.preserved, caches...) }
}

// Keep lets variables stay that only a pattern takes away, such as a SHOP_PUBLIC_KEY that is none. A name of [CredentialVars]
// cannot be kept; asking for it fails the test. A test that needs a credential sets a fake one after [Isolate].
func Keep(names ...string) Option {
	return func(chosen *settings) { chosen.kept = append(chosen.kept, names...) }
}

// Isolate binds the whole floor to the test: preserved caches, then [ThrowawayHome], [IsolateGitConfig], [LockdownTransports]
// and [StripCredentials]. When the test ends, everything comes back; variables that the test itself changed without t.Setenv
// come back too, and the test's log names them.
//
// It panics if the test called t.Parallel, and fails the test if a directory cannot be made or an option names something
// unknown.
func Isolate(t testing.TB, options ...Option) {
	t.Helper()
	var chosen settings
	for _, option := range options {
		option(&chosen)
	}
	if !mayKeep(t, chosen.kept) {
		return
	}
	own := scopeOf(t)
	environ := os.Environ()
	if !own.preserve(chosen.preserved) || !own.moveHome(withGit) || !own.isolateGit(environ) {
		return
	}
	own.lockTransports()
	own.strip(environ, chosen.kept)
	own.restoreLeaks(environ)
}

func mayKeep(t testing.TB, names []string) bool {
	t.Helper()
	for _, name := range names {
		if floor.Judge(name) == floor.Exact {
			t.Fatalf("hygiene: Keep(%q): the variable is in CredentialVars and cannot stay; set a fake value after Isolate", name)
			return false
		}
	}
	return true
}
