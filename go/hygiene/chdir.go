package hygiene

import (
	"os"
	"testing"
)

// Chdir moves the test to another working directory and back when it ends. PWD follows, so that child processes agree with
// their parent about where they are. A move back that fails (the directory is gone) fails the test: every later test would
// run in the wrong place.
//
// It panics if the test called t.Parallel, and fails the test if it cannot move.
//
//	hygiene.Chdir(t, t.TempDir())
func Chdir(t testing.TB, dir string) {
	t.Helper()
	claimVariable(t, "PWD")
	from, err := os.Getwd()
	if err != nil {
		t.Fatalf("hygiene: Chdir(%q): the working directory is unknown: %v", dir, err)
		return
	}
	if err := os.Chdir(dir); err != nil {
		t.Fatalf("hygiene: Chdir(%q): %v", dir, err)
		return
	}
	t.Cleanup(func() {
		t.Helper()
		if err := os.Chdir(from); err != nil {
			t.Errorf("hygiene: restoring the working directory %s: %v", from, err)
		}
	})
	// While PWD names the old place, os.Getwd asks the kernel, which resolves symbolic links as a child process would.
	if to, err := os.Getwd(); err == nil {
		os.Setenv("PWD", to)
	}
}
