package hygiene_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
)

var xdg = map[string]string{
	"XDG_CONFIG_HOME": ".config",
	"XDG_DATA_HOME":   filepath.Join(".local", "share"),
	"XDG_CACHE_HOME":  ".cache",
	"XDG_STATE_HOME":  filepath.Join(".local", "state"),
}

func TestThrowawayHomeMovesHomeAndTheXdgDirectories(t *testing.T) {
	t.Setenv("HOME", "/dev/home")
	t.Setenv("XDG_CONFIG_HOME", "/dev/config")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	absent(t, "USERPROFILE", "XDG_STATE_HOME")
	var home string
	during(t, func(t *testing.T) {
		home = hygiene.ThrowawayHome(t)
		wantVariable(t, "HOME", home)
		wantVariable(t, "USERPROFILE", home)
		for name, folder := range xdg {
			wantVariable(t, name, filepath.Join(home, folder))
			if info, err := os.Stat(os.Getenv(name)); err != nil || !info.IsDir() {
				t.Errorf("%s names no directory: %v", name, err)
			}
		}
		wantAbsent(t, "XDG_RUNTIME_DIR")
	})
	wantVariable(t, "HOME", "/dev/home")
	wantVariable(t, "XDG_CONFIG_HOME", "/dev/config")
	wantVariable(t, "XDG_RUNTIME_DIR", "/run/user/1000")
	wantAbsent(t, "USERPROFILE", "XDG_STATE_HOME")
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the home outlived its test: %v", err)
	}
}

func TestGoItselfFindsTheThrowawayDirectories(t *testing.T) {
	home := hygiene.ThrowawayHome(t)
	if found, err := os.UserHomeDir(); err != nil || found != home {
		t.Errorf("os.UserHomeDir says %q, %v", found, err)
	}
	if found, err := os.UserConfigDir(); err != nil || found != filepath.Join(home, ".config") {
		t.Errorf("os.UserConfigDir says %q, %v", found, err)
	}
	if found, err := os.UserCacheDir(); err != nil || found != filepath.Join(home, ".cache") {
		t.Errorf("os.UserCacheDir says %q, %v", found, err)
	}
}

func TestThrowawayHomeHoldsNothingButEmptyFoldersOfItsOwner(t *testing.T) {
	home := hygiene.ThrowawayHome(t)
	filepath.Walk(home, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	entries, _ := os.ReadDir(home)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if got := strings.Join(names, " "); got != ".cache .config .local" {
		t.Errorf("the home holds %s", got)
	}
}

func TestThrowawayHomeIsOnePerTest(t *testing.T) {
	var homes []string
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			homes = append(homes, hygiene.ThrowawayHome(t))
			if again := hygiene.ThrowawayHome(t); again != homes[len(homes)-1] {
				t.Errorf("a second call moved the home to %s", again)
			}
		})
	}
	if homes[0] == homes[1] {
		t.Errorf("two tests had the home %s", homes[0])
	}
}

// The first visit of a program leaves a file in the home directory. No later test may find it, whatever it is.
func TestNothingOfATestReachesTheNextHome(t *testing.T) {
	touches := map[string]func(home string) error{
		"nothing":     func(home string) error { return nil },
		"file":        func(home string) error { return os.WriteFile(filepath.Join(home, ".profile"), nil, 0o644) },
		"deep file":   func(home string) error { return os.WriteFile(filepath.Join(home, ".local/state/x"), nil, 0o644) },
		"folder":      func(home string) error { return os.Mkdir(filepath.Join(home, ".cache/x"), 0o755) },
		"removed":     func(home string) error { return os.Remove(filepath.Join(home, ".config")) },
		"mode":        func(home string) error { return os.Chmod(home, 0o755) },
		"link":        func(home string) error { return replaceByLink(filepath.Join(home, ".cache")) },
		"git setting": func(home string) error { return appendTo(filepath.Join(home, "gitconfig-global"), "[a]\n\tb = c\n") },
		"git removed": func(home string) error { return os.Remove(filepath.Join(home, "gitconfig-system")) },
		"write-protected": func(home string) error {
			os.MkdirAll(filepath.Join(home, "go/pkg/mod/m"), 0o755)
			os.WriteFile(filepath.Join(home, "go/pkg/mod/m/x.go"), nil, 0o444)
			return os.Chmod(filepath.Join(home, "go/pkg/mod/m"), 0o555)
		},
	}
	var pristine string
	for name, touch := range touches {
		// Twice: the first home may be new, the second one waited.
		for _, turn := range []string{"new", "waited"} {
			var home string
			t.Run(name+"/"+turn, func(t *testing.T) {
				hygiene.Isolate(t)
				home = os.Getenv("HOME")
				if got := listing(t, home); pristine == "" {
					pristine = got
				} else if got != pristine {
					t.Errorf("the home starts with\n%s\ninstead of\n%s", got, pristine)
				}
				if err := touch(home); err != nil {
					t.Fatal(err)
				}
			})
			if _, err := os.Lstat(home); !os.IsNotExist(err) {
				t.Errorf("%s: the home outlived its test: %v", name, err)
			}
		}
	}
}

func replaceByLink(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink("/", path)
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(text)
	return err
}

// listing is everything in a home: kinds, modes and texts.
func listing(t *testing.T, home string) string {
	t.Helper()
	var lines []string
	err := filepath.Walk(home, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			read, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(read)
		}
		lines = append(lines, strings.TrimPrefix(path, home)+" "+info.Mode().String()+" "+text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// A binary that go test did not start has no directory that is deleted after it.
func TestAHomeThatCannotBeMadeFailsTheTest(t *testing.T) {
	out, failed := runCopy(t, "TestHelperIsolates", filepath.Join(t.TempDir(), "missing"))
	if !failed || !strings.Contains(out, "making a throwaway home") {
		t.Errorf("without a place for it:\n%s", out)
	}
}

func TestABinaryThatWasStartedByHandLeavesNothingBehind(t *testing.T) {
	temporary := t.TempDir()
	out, failed := runCopy(t, "TestNothingOfATest|TestThrowawayHome|TestHelperIsolates", temporary)
	if failed {
		t.Errorf("it failed:\n%s", out)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestNothingIsLeftBesideTheHomesThatWait(t *testing.T) {
	home := hygiene.ThrowawayHome(t)
	if !strings.Contains(home, "go-build") {
		t.Skip("go test did not start this binary")
	}
	if got, want := filepath.Base(filepath.Dir(filepath.Dir(home))), filepath.Base(filepath.Dir(os.Args[0])); got != want {
		t.Errorf("homes lie in %s, go test deletes %s", got, want)
	}
}
