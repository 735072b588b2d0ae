package hygiene_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
)

func workingDirectory(t *testing.T) string {
	t.Helper()
	path, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func TestChdirMovesTheProcessAndBack(t *testing.T) {
	before, pwd := workingDirectory(t), os.Getenv("PWD")
	outer, inner := t.TempDir(), t.TempDir()
	during(t, func(t *testing.T) {
		hygiene.Chdir(t, outer)
		during(t, func(t *testing.T) {
			hygiene.Chdir(t, inner)
			if got := workingDirectory(t); got != resolved(t, inner) || os.Getenv("PWD") != got {
				t.Errorf("inside it is %s, PWD %s; want %s", got, os.Getenv("PWD"), inner)
			}
		})
		if got := workingDirectory(t); got != resolved(t, outer) || os.Getenv("PWD") != got {
			t.Errorf("outside it is %s, PWD %s; want %s", got, os.Getenv("PWD"), outer)
		}
	})
	if got := workingDirectory(t); got != before || os.Getenv("PWD") != pwd {
		t.Errorf("afterwards it is %s, PWD %q; want %s, %q", got, os.Getenv("PWD"), before, pwd)
	}
}

func TestChdirKeepsAnAbsentPwdAbsentAfterwards(t *testing.T) {
	absent(t, "PWD")
	during(t, func(t *testing.T) { hygiene.Chdir(t, t.TempDir()) })
	wantAbsent(t, "PWD")
}

func TestChdirToNowhereFailsTheTestAndBindsNothing(t *testing.T) {
	before := workingDirectory(t)
	missing := filepath.Join(t.TempDir(), "missing")
	own := &recorder{TB: t}
	hygiene.Chdir(own, missing)
	if len(own.failures) != 1 || !strings.Contains(own.failures[0], missing) || len(own.cleanups) != 0 {
		t.Errorf("failures %q, %d cleanups", own.failures, len(own.cleanups))
	}
	if got := workingDirectory(t); got != before {
		t.Errorf("it moved to %s", got)
	}
}

func TestChdirThatCannotGoBackFailsTheTest(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	// Bound to the real test, which returns to where it really was.
	hygiene.Chdir(t, gone)
	own := &recorder{TB: t}
	hygiene.Chdir(own, t.TempDir())
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	own.end()
	if len(own.failures) != 1 || !strings.Contains(own.failures[0], "restoring the working directory "+gone) {
		t.Errorf("the failures are %q", own.failures)
	}
}
