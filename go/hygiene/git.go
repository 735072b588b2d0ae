package hygiene

import (
	"os"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/internal/floor"
	"github.com/smm-h/stricttest/go/internal/tables"
)

// The files that GIT_CONFIG_GLOBAL and GIT_CONFIG_SYSTEM name, in the throwaway home.
const (
	gitConfigGlobal = "gitconfig-global"
	gitConfigSystem = "gitconfig-system"
)

// IsolateGitConfig cuts git off from the developer. GIT_CONFIG_GLOBAL and GIT_CONFIG_SYSTEM name files in the throwaway home
// that hold a throwaway identity, refuse remote transports and switch background maintenance off; author and committer are
// pinned to that identity; git asks no questions; and variables that would lead it to another repository or add to its
// configuration, as a hook or CI passes them on (GIT_DIR, GIT_INDEX_FILE, GIT_CONFIG_COUNT, …), are gone.
//
// core.hooksPath stays alone: hooks of a repository that the test itself makes shall run.
//
// It panics if the test called t.Parallel.
func IsolateGitConfig(t testing.TB) {
	t.Helper()
	scopeOf(t).isolateGit(os.Environ())
}

// LockdownTransports leaves git the local transport alone: GIT_ALLOW_PROTOCOL is file, and GIT_SSH_COMMAND and
// GIT_PROXY_COMMAND are pinned to /bin/false, so that a test that lifts the first still gets no connection.
//
// It panics if the test called t.Parallel.
func LockdownTransports(t testing.TB) {
	t.Helper()
	scopeOf(t).lockTransports()
}

// isolateGit tells whether git is isolated now; if not, it failed the test.
func (own *scope) isolateGit(environ []string) bool {
	own.t.Helper()
	if !own.moveHome(withGit) {
		return false
	}
	if !own.home.hasGitConfig() {
		if err := own.home.writeGitConfig(); err != nil {
			own.t.Fatalf("hygiene: writing git's throwaway configuration: %v", err)
			return false
		}
	}
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); floor.IsGitState(name) {
			own.unset(name)
		}
	}
	for _, name := range tables.GitConfigPaths {
		file := gitConfigGlobal
		if strings.HasSuffix(name, "_SYSTEM") {
			file = gitConfigSystem
		}
		own.set(name, own.home.in(file))
	}
	own.pin(tables.GitPins)
	return true
}

func (own *scope) lockTransports() {
	own.pin(tables.TransportPins)
}

func (own *scope) pin(pins []tables.Pin) {
	for _, pin := range pins {
		own.set(pin.Name, pin.Value)
	}
}
