// Package notes tests the notes program from Go.
package notes

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
)

func notes(t *testing.T, words ...string) (output string, err error) {
	t.Helper()
	program, _ := filepath.Abs("../notes.py")
	said, err := exec.Command("python3", append([]string{program}, words...)...).CombinedOutput()
	return strings.TrimSpace(string(said)), err
}

// Each run sees an empty home, so the first note is the first one for ever.
func TestTheFirstNoteIsNumberOne(t *testing.T) {
	hygiene.Isolate(t)
	if said, err := notes(t, "add", "buy plums"); err != nil || said != "1" {
		t.Fatalf("add says %q, %v", said, err)
	}
	if said, err := notes(t, "list"); err != nil || said != "buy plums" {
		t.Fatalf("list says %q, %v", said, err)
	}
}

func TestNotesAreByNobodyWeKnow(t *testing.T) {
	hygiene.Isolate(t)
	notes(t, "add", "buy plums")
	folder := filepath.Join(hygiene.ThrowawayHome(t), ".local", "share", "notes")
	author, err := exec.Command("git", "-C", folder, "log", "--format=%an <%ae>").Output()
	if err != nil || strings.TrimSpace(string(author)) != "stricttest <stricttest@example.invalid>" {
		t.Fatalf("the author is %q, %v", author, err)
	}
}

// A developer's token is not there, and git would not push with it.
func TestNothingIsPublished(t *testing.T) {
	t.Setenv("NOTES_TOKEN", "a real one")
	hygiene.Isolate(t)
	notes(t, "add", "buy plums")
	if said, err := notes(t, "publish"); err == nil || !strings.Contains(said, "not allowed") || strings.Contains(said, "a real one") {
		t.Fatalf("publish says %q, %v", said, err)
	}
}
