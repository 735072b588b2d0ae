package hygiene_test

import (
	"os"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
)

var caches = []struct {
	known     hygiene.KnownVar
	name, env string
}{
	{hygiene.GoPath, "GoPath", "GOPATH"},
	{hygiene.GoModCache, "GoModCache", "GOMODCACHE"},
	{hygiene.GoCache, "GoCache", "GOCACHE"},
	{hygiene.PythonUserBase, "PythonUserBase", "PYTHONUSERBASE"},
	{hygiene.CargoHome, "CargoHome", "CARGO_HOME"},
	{hygiene.RustupHome, "RustupHome", "RUSTUP_HOME"},
	{hygiene.NpmCache, "NpmCache", "npm_config_cache"},
	{hygiene.UvCache, "UvCache", "UV_CACHE_DIR"},
	{hygiene.PipCache, "PipCache", "PIP_CACHE_DIR"},
	{hygiene.GradleUserHome, "GradleUserHome", "GRADLE_USER_HOME"},
}

func TestEveryCacheHasItsNameAndVariable(t *testing.T) {
	for _, cache := range caches {
		if cache.known.String() != cache.name || cache.known.Env() != cache.env {
			t.Errorf("%d is %s, %s; want %s, %s", int(cache.known), cache.known, cache.known.Env(), cache.name, cache.env)
		}
	}
	for _, unknown := range []hygiene.KnownVar{-1, hygiene.KnownVar(len(caches))} {
		if unknown.Env() != "" || !strings.HasPrefix(unknown.String(), "KnownVar(") {
			t.Errorf("%d is %s, %q", int(unknown), unknown, unknown.Env())
		}
	}
}

func TestPreserveKeepsWhatIsSetAndFillsInWhatIsNot(t *testing.T) {
	t.Setenv("HOME", "/home/dev")
	t.Setenv("GOCACHE", "/cache/go")
	absent(t, "GOPATH", "GOMODCACHE", "CARGO_HOME")
	during(t, func(t *testing.T) {
		hygiene.Isolate(t, hygiene.Preserve(hygiene.GoCache, hygiene.GoModCache), hygiene.Preserve(hygiene.GoCache))
		wantVariable(t, "GOCACHE", "/cache/go")
		wantVariable(t, "GOMODCACHE", "/home/dev/go/pkg/mod")
		wantAbsent(t, "GOPATH", "CARGO_HOME")
		if os.Getenv("HOME") == "/home/dev" {
			t.Error("HOME did not move")
		}
	})
	wantVariable(t, "GOCACHE", "/cache/go")
	wantAbsent(t, "GOMODCACHE")
}

func TestPreserveOfAnUnknownValueFailsTheTestAndChangesNothing(t *testing.T) {
	before := os.Getenv("HOME")
	own := &recorder{TB: t}
	hygiene.Isolate(own, hygiene.Preserve(hygiene.KnownVar(9999)))
	wantVariable(t, "HOME", before)
	own.end()
	if len(own.failures) != 1 || !strings.Contains(own.failures[0], "unknown KnownVar 9999; accepted are GoPath to GradleUserHome") {
		t.Errorf("the failures are %q", own.failures)
	}
}
