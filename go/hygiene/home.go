package hygiene

import "testing"

// xdgHomes are the base directories, at the places where programs look without them: one that ignores the variables lands in
// the same throwaway directory.
var xdgHomes = []struct{ name, folder string }{
	{"XDG_CACHE_HOME", ".cache"},
	{"XDG_CONFIG_HOME", ".config"},
	{"XDG_DATA_HOME", ".local/share"},
	{"XDG_STATE_HOME", ".local/state"},
}

// ThrowawayHome gives the test a home directory of its own and returns its path. HOME and USERPROFILE name it, XDG_CONFIG_HOME,
// XDG_DATA_HOME, XDG_CACHE_HOME and XDG_STATE_HOME name directories in it, and XDG_RUNTIME_DIR, where agents and keyrings keep
// their sockets, is gone. It is removed when the test ends, and the variables come back.
//
// A second call in the same test returns the same directory; a subtest gets its own. It panics if the test called t.Parallel.
//
//	home := hygiene.ThrowawayHome(t)
//	os.WriteFile(filepath.Join(home, ".netrc"), fake, 0o600)
func ThrowawayHome(t testing.TB) string {
	t.Helper()
	own := scopeOf(t)
	if !own.moveHome(withoutGit) {
		return ""
	}
	return own.home.path
}

// Whether git's configuration is in a home from the start.
const (
	withoutGit = false
	withGit    = true
)

// moveHome tells whether the test has a home of its own now; if not, it failed the test.
func (own *scope) moveHome(hasGit bool) bool {
	own.t.Helper()
	if own.home != nil {
		return true
	}
	home, err := homes.take(hasGit)
	if err != nil {
		own.t.Fatalf("hygiene: making a throwaway home: %v", err)
		return false
	}
	own.home = home
	own.set("HOME", home.path)
	own.set("USERPROFILE", home.path)
	for _, xdg := range xdgHomes {
		own.set(xdg.name, home.in(xdg.folder))
	}
	own.unset("XDG_RUNTIME_DIR")
	return true
}
