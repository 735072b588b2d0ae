package hygiene_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
)

func TestIsolateBindsTheWholeFloorAndGivesEverythingBack(t *testing.T) {
	developers := map[string]string{
		"HOME": "/dev/home", "USERPROFILE": "/dev/home", "XDG_CONFIG_HOME": "/dev/config",
		"GIT_CONFIG_GLOBAL": "/dev/gitconfig", "GIT_AUTHOR_NAME": "Real Developer", "GIT_DIR": "/dev/.git",
		"GIT_ALLOW_PROTOCOL": "", "GH_TOKEN": "real", "OPENAI_API_KEY": "real", "SHOP_API_KEY": "real",
	}
	for name, value := range developers {
		t.Setenv(name, value)
	}
	absent(t, "GIT_TERMINAL_PROMPT", "XDG_STATE_HOME", "GIT_CONFIG_SYSTEM")
	before := sorted(os.Environ())
	during(t, func(t *testing.T) {
		hygiene.Isolate(t)
		home := os.Getenv("HOME")
		if home == "/dev/home" || hygiene.ThrowawayHome(t) != home {
			t.Errorf("HOME is %q, ThrowawayHome says %q", home, hygiene.ThrowawayHome(t))
		}
		wantVariable(t, "GIT_CONFIG_GLOBAL", filepath.Join(home, "gitconfig-global"))
		wantVariable(t, "GIT_AUTHOR_NAME", "stricttest")
		wantVariable(t, "GIT_ALLOW_PROTOCOL", "file")
		wantAbsent(t, "GH_TOKEN", "OPENAI_API_KEY", "SHOP_API_KEY", "GIT_DIR")
	})
	if after := sorted(os.Environ()); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the environment was\n%q\nand is\n%q", before, after)
	}
}

func TestChildrenSeeTheFloorToo(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "real")
	during(t, func(t *testing.T) {
		hygiene.Isolate(t)
		said, err := exec.Command("env").Output()
		if err != nil {
			t.Skipf("env: %v", err)
		}
		lines := strings.Split(string(said), "\n")
		for _, line := range lines {
			if strings.HasPrefix(line, "GITHUB_TOKEN=") {
				t.Errorf("a child process has %q", line)
			}
		}
		if want := "HOME=" + os.Getenv("HOME"); !contains(lines, want) {
			t.Errorf("a child process lacks %q", want)
		}
	})
}

func TestEveryHelperRefusesAParallelTest(t *testing.T) {
	for name, helper := range helpers(t) {
		helper := helper
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer wantPanic(t)
			helper(t)
		})
	}
}

func TestATestThatCalledAHelperCannotBecomeParallel(t *testing.T) {
	for name, helper := range helpers(t) {
		helper := helper
		t.Run(name, func(t *testing.T) {
			defer wantPanic(t)
			helper(t)
			t.Parallel()
		})
	}
}

func helpers(t *testing.T) map[string]func(t testing.TB) {
	folder := t.TempDir()
	return map[string]func(t testing.TB){
		"Isolate":            func(t testing.TB) { hygiene.Isolate(t) },
		"ThrowawayHome":      func(t testing.TB) { hygiene.ThrowawayHome(t) },
		"IsolateGitConfig":   hygiene.IsolateGitConfig,
		"LockdownTransports": hygiene.LockdownTransports,
		"StripCredentials":   hygiene.StripCredentials,
		"Chdir":              func(t testing.TB) { hygiene.Chdir(t, folder) },
	}
}

func wantPanic(t *testing.T) {
	t.Helper()
	switch said := recover().(type) {
	case nil:
		t.Error("there was no panic")
	case string:
		// The words changed between releases of Go.
		if !strings.Contains(said, "Setenv") || !strings.Contains(strings.ToLower(said), "parallel") {
			t.Errorf("the panic says %q", said)
		}
	default:
		panic(said)
	}
}

func TestASubtestIsolatesItselfInsideAnIsolatedTest(t *testing.T) {
	hygiene.Isolate(t)
	outer := os.Getenv("HOME")
	t.Setenv("SHOP_TOKEN", "fake")
	during(t, func(t *testing.T) {
		hygiene.Isolate(t)
		if os.Getenv("HOME") == outer {
			t.Error("the subtest has its parent's home")
		}
		wantAbsent(t, "SHOP_TOKEN")
	})
	wantVariable(t, "HOME", outer)
	wantVariable(t, "SHOP_TOKEN", "fake")
	if _, err := os.Stat(filepath.Join(outer, ".config")); err != nil {
		t.Errorf("the outer home is damaged: %v", err)
	}
}

func TestASecondIsolateChangesNothing(t *testing.T) {
	hygiene.Isolate(t)
	before := sorted(os.Environ())
	hygiene.Isolate(t)
	if after := sorted(os.Environ()); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the environment was\n%q\nand is\n%q", before, after)
	}
}

func TestVariablesThatATestLeavesAreRestoredAndNamed(t *testing.T) {
	absent(t, "SHOP_THEME")
	t.Setenv("SHOP_SIZE", "small")
	t.Setenv("SHOP_COLOUR", "red")
	own := &recorder{TB: t}
	hygiene.Isolate(own)
	os.Setenv("SHOP_THEME", "dark")
	os.Setenv("SHOP_SIZE", "large")
	os.Unsetenv("SHOP_COLOUR")
	os.Setenv("HOME", "/elsewhere")
	own.end()
	wantAbsent(t, "SHOP_THEME")
	wantVariable(t, "SHOP_SIZE", "small")
	wantVariable(t, "SHOP_COLOUR", "red")
	if len(own.logs) != 1 || !strings.Contains(own.logs[0], "SHOP_COLOUR, SHOP_SIZE, SHOP_THEME;") {
		t.Errorf("the log says %q", own.logs)
	}
}

func TestWhatATestSetsProperlyIsNoLeak(t *testing.T) {
	own := &recorder{TB: t}
	t.Setenv("SHOP_BEFORE", "1")
	hygiene.Isolate(own)
	during(t, func(t *testing.T) {
		t.Setenv("SHOP_INSIDE", "1")
		t.Setenv("GITHUB_TOKEN", "fake")
	})
	own.end()
	if len(own.logs) != 0 {
		t.Errorf("the log says %q", own.logs)
	}
	wantVariable(t, "SHOP_BEFORE", "1")
}

func TestTheOrderOfIsolatedTestsDoesNotMatter(t *testing.T) {
	absent(t, "SHOP_THEME")
	victim := func(t *testing.T) {
		hygiene.Isolate(t)
		wantAbsent(t, "SHOP_THEME")
	}
	polluter := func(t *testing.T) {
		hygiene.Isolate(t)
		os.Setenv("SHOP_THEME", "dark")
	}
	t.Run("victim", victim)
	t.Run("polluter", polluter)
	t.Run("victim again", victim)
}

func TestKeepLetsAVariableStayThatOnlyAPatternTakes(t *testing.T) {
	t.Setenv("SHOP_PUBLIC_KEY", "no secret")
	t.Setenv("SHOP_API_KEY", "real")
	during(t, func(t *testing.T) {
		hygiene.Isolate(t, hygiene.Keep("SHOP_PUBLIC_KEY"))
		wantVariable(t, "SHOP_PUBLIC_KEY", "no secret")
		wantAbsent(t, "SHOP_API_KEY")
	})
}

func TestKeepOfAListedCredentialFailsTheTestAndChangesNothing(t *testing.T) {
	before := os.Getenv("HOME")
	own := &recorder{TB: t}
	hygiene.Isolate(own, hygiene.Keep("GITHUB_TOKEN"))
	if len(own.failures) != 1 || !strings.Contains(own.failures[0], `Keep("GITHUB_TOKEN")`) {
		t.Errorf("the failures are %q", own.failures)
	}
	wantVariable(t, "HOME", before)
	own.end()
}

func sorted(entries []string) []string {
	sort.Strings(entries)
	return entries
}

func contains(lines []string, wanted string) bool {
	for _, line := range lines {
		if line == wanted {
			return true
		}
	}
	return false
}
