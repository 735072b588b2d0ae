package hygiene_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
)

const identity = "stricttest <stricttest@example.invalid>"

func TestIsolateGitConfigGivesGitFilesOfItsOwn(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/gitconfig")
	t.Setenv("GIT_AUTHOR_NAME", "Real Developer")
	absent(t, "GIT_CONFIG_SYSTEM", "GIT_TERMINAL_PROMPT")
	during(t, func(t *testing.T) {
		hygiene.IsolateGitConfig(t)
		home := hygiene.ThrowawayHome(t)
		wantVariable(t, "GIT_CONFIG_GLOBAL", filepath.Join(home, "gitconfig-global"))
		wantVariable(t, "GIT_CONFIG_SYSTEM", filepath.Join(home, "gitconfig-system"))
		for _, part := range []string{"AUTHOR", "COMMITTER"} {
			wantVariable(t, "GIT_"+part+"_NAME", "stricttest")
			wantVariable(t, "GIT_"+part+"_EMAIL", "stricttest@example.invalid")
		}
		wantVariable(t, "GIT_TERMINAL_PROMPT", "0")
	})
	wantVariable(t, "GIT_CONFIG_GLOBAL", "/dev/gitconfig")
	wantVariable(t, "GIT_AUTHOR_NAME", "Real Developer")
	wantAbsent(t, "GIT_CONFIG_SYSTEM", "GIT_TERMINAL_PROMPT")
}

func TestAHomeThatWasThereBeforeGetsGitsFilesToo(t *testing.T) {
	home := hygiene.ThrowawayHome(t)
	hygiene.IsolateGitConfig(t)
	hygiene.IsolateGitConfig(t)
	for _, name := range []string{"gitconfig-global", "gitconfig-system"} {
		text, err := os.ReadFile(filepath.Join(home, name))
		if err != nil || !strings.Contains(string(text), "defaultBranch = main") {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
	}
}

// The configuration says the same as that of the Python floor.
func TestGitReadsTheThrowawayConfiguration(t *testing.T) {
	hygiene.IsolateGitConfig(t)
	for _, file := range []string{"--global", "--system"} {
		for name, want := range map[string]string{
			"user.name": "stricttest", "user.email": "stricttest@example.invalid", "init.defaultBranch": "main",
			"protocol.ssh.allow": "never", "maintenance.auto": "false",
		} {
			if got := mustGit(t, "config", file, "--get", name); got != want {
				t.Errorf("git config %s %s says %q, want %q", file, name, got, want)
			}
		}
		if said, err := git(t, "config", file, "--get", "core.hooksPath"); err == nil {
			t.Errorf("core.hooksPath is %q", said)
		}
	}
}

func TestWhatATestConfiguresStaysInItsOwnFile(t *testing.T) {
	for _, turn := range []string{"first", "second"} {
		t.Run(turn, func(t *testing.T) {
			hygiene.Isolate(t)
			if said, err := git(t, "config", "--global", "--get", "shop.colour"); err == nil {
				t.Errorf("an earlier test left %q", said)
			}
			mustGit(t, "config", "--global", "shop.colour", "red")
			if said, err := git(t, "config", "--system", "--get", "shop.colour"); err == nil {
				t.Errorf("the system's file says %q too", said)
			}
		})
	}
}

func TestACommitIsMadeByTheThrowawayIdentity(t *testing.T) {
	t.Setenv("GIT_AUTHOR_EMAIL", "developer@example.com")
	during(t, func(t *testing.T) {
		hygiene.Isolate(t)
		hygiene.Chdir(t, t.TempDir())
		mustGit(t, "init", "-q")
		mustGit(t, "commit", "-q", "--allow-empty", "-m", "first")
		if got := mustGit(t, "log", "--format=%an <%ae>|%cn <%ce>"); got != identity+"|"+identity {
			t.Errorf("the commit is by %s", got)
		}
		if got := mustGit(t, "branch", "--show-current"); got != "main" {
			t.Errorf("the branch is %s", got)
		}
	})
}

// A hook exports GIT_DIR and GIT_INDEX_FILE; an unanchored commit would land in the developer's repository.
func TestVariablesOfAHookDoNotLeadGitAstray(t *testing.T) {
	developers := t.TempDir()
	mustGit(t, "init", "-q", developers)
	t.Setenv("GIT_DIR", filepath.Join(developers, ".git"))
	t.Setenv("GIT_WORK_TREE", developers)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(developers, ".git", "index"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "user.name")
	t.Setenv("GIT_CONFIG_VALUE_0", "Real Developer")
	during(t, func(t *testing.T) {
		hygiene.Isolate(t)
		hygiene.Chdir(t, t.TempDir())
		mustGit(t, "init", "-q")
		mustGit(t, "commit", "-q", "--allow-empty", "-m", "junk from a test")
		if said, err := git(t, "-C", developers, "log"); err == nil {
			t.Errorf("the developer's repository has a commit:\n%s", said)
		}
	})
	wantVariable(t, "GIT_DIR", filepath.Join(developers, ".git"))
	wantVariable(t, "GIT_CONFIG_VALUE_0", "Real Developer")
}

// git itself knows which variables belong to a repository; a new release may bring more.
func TestEveryVariableThatGitCallsLocalIsTakenAway(t *testing.T) {
	names := strings.Fields(mustGit(t, "rev-parse", "--local-env-vars"))
	for _, name := range names {
		t.Setenv(name, "")
	}
	during(t, func(t *testing.T) {
		hygiene.IsolateGitConfig(t)
		wantAbsent(t, names...)
	})
}

func TestLockdownTransportsPinsProtocolAndPrograms(t *testing.T) {
	t.Setenv("GIT_SSH_COMMAND", "ssh -i key")
	t.Setenv("GIT_ALLOW_PROTOCOL", "")
	absent(t, "GIT_PROXY_COMMAND")
	during(t, func(t *testing.T) {
		hygiene.LockdownTransports(t)
		wantVariable(t, "GIT_ALLOW_PROTOCOL", "file")
		wantVariable(t, "GIT_SSH_COMMAND", "/bin/false")
		wantVariable(t, "GIT_PROXY_COMMAND", "/bin/false")
	})
	wantVariable(t, "GIT_SSH_COMMAND", "ssh -i key")
	if value, isSet := os.LookupEnv("GIT_ALLOW_PROTOCOL"); value != "" || !isSet {
		t.Errorf("GIT_ALLOW_PROTOCOL is %q, %v; it was set and empty", value, isSet)
	}
	wantAbsent(t, "GIT_PROXY_COMMAND")
}

func TestGitRefusesEveryRemoteTransport(t *testing.T) {
	hygiene.Isolate(t)
	for _, address := range []string{
		"ssh://example.invalid/x.git", "git@example.invalid:x.git", "https://example.invalid/x.git", "git://example.invalid/x",
	} {
		if said, err := git(t, "ls-remote", address); err == nil || !strings.Contains(said, "not allowed") {
			t.Errorf("git ls-remote %s: %v\n%s", address, err, said)
		}
	}
}

func TestTheSecondLockHoldsWhereATestLiftsTheFirst(t *testing.T) {
	hygiene.Isolate(t)
	t.Setenv("GIT_ALLOW_PROTOCOL", "ssh:git:file")
	said, err := git(t, "ls-remote", "git@example.invalid:x.git")
	if err == nil || strings.Contains(said, "ssh:") {
		t.Errorf("a real ssh ran: %v\n%s", err, said)
	}
}

func TestRepositoriesOnThisMachineStayWithinReach(t *testing.T) {
	hygiene.Isolate(t)
	hygiene.Chdir(t, t.TempDir())
	mustGit(t, "init", "-q", "upstream")
	mustGit(t, "-C", "upstream", "commit", "-q", "--allow-empty", "-m", "first")
	mustGit(t, "clone", "-q", "file://"+filepath.Join(os.Getenv("PWD"), "upstream"), "copy")
	if got := mustGit(t, "-C", "copy", "log", "--format=%s"); got != "first" {
		t.Errorf("the copy has %q", got)
	}
}
