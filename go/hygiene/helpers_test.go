package hygiene_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// recorder is a TB whose failures are noted instead of reported, and whose cleanups run when the test says so. Unlike the real
// one its Fatalf returns, so it also shows that nothing happens after a failure.
type recorder struct {
	testing.TB
	failures, logs []string
	cleanups       []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, values ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, values...))
}

func (r *recorder) Errorf(format string, values ...any) { r.Fatalf(format, values...) }

func (r *recorder) Logf(format string, values ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, values...))
}

func (r *recorder) Cleanup(cleanup func()) { r.cleanups = append(r.cleanups, cleanup) }

func (r *recorder) end() {
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		cleanup := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		cleanup()
	}
}

// during runs a test inside the test, so that what it leaves can be looked at afterwards.
func during(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	t.Run("during", body)
}

func wantVariable(t *testing.T, name, want string) {
	t.Helper()
	if got := os.Getenv(name); got != want {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

func wantAbsent(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if value, isSet := os.LookupEnv(name); isSet {
			t.Errorf("%s is set, to %q", name, value)
		}
	}
}

// absent takes a variable away for a test.
func absent(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
}

func git(t *testing.T, arguments ...string) (output string, err error) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed; what git itself makes of the floor was not tested")
	}
	limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	said, err := exec.CommandContext(limit, program, arguments...).CombinedOutput()
	return strings.TrimSpace(string(said)), err
}

func mustGit(t *testing.T, arguments ...string) string {
	t.Helper()
	said, err := git(t, arguments...)
	if err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, said)
	}
	return said
}
