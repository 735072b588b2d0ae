// Package stricttest has no code; its test holds the module to what its users were promised.
package stricttest

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestTheModuleDependsOnNothingAndRunsOnOldReleases(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "module github.com/smm-h/stricttest/go\n") || strings.Contains(string(text), "require") {
		t.Errorf("go.mod says:\n%s", text)
	}
	found := regexp.MustCompile(`(?m)^go 1\.(\d+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("go.mod names no release:\n%s", text)
	}
	if minor, _ := strconv.Atoi(string(found[1])); minor > 22 {
		t.Errorf("the module asks for Go 1.%d", minor)
	}
}
