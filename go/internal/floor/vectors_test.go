package floor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/internal/tables"
)

// vector is a case of spec/vectors; the schema there says what it holds.
type vector struct {
	ID    string          `json:"id"`
	Input json.RawMessage `json:"input"`
	Want  json.RawMessage `json:"want"`
}

// vectors reads the cases of a behaviour and prints how many this language runs: a test of the project compares the languages.
func vectors(t *testing.T, behaviour string, isRun func(vector) bool) []vector {
	t.Helper()
	path := filepath.Join("..", "..", "..", "spec", "vectors", behaviour+".json")
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("%s is not there: packages do not ship vectors", path)
	}
	var file struct{ Cases []vector }
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var run []vector
	for _, one := range file.Cases {
		if isRun(one) {
			run = append(run, one)
		}
	}
	fmt.Printf("vectors %s: %d cases\n", behaviour, len(run))
	return run
}

func decode(t *testing.T, text json.RawMessage, value any) {
	t.Helper()
	if err := json.Unmarshal(text, value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestVectorsCredentials(t *testing.T) {
	for _, one := range vectors(t, "credentials", func(vector) bool { return true }) {
		var input struct {
			Name string
			Keep []string
		}
		var want string
		decode(t, one.Input, &input)
		decode(t, one.Want, &want)
		got := "stays"
		if IsTaken(input.Name, input.Keep) {
			got = "removed"
		}
		if got != want {
			t.Errorf("%s: %s %s, want %s", one.ID, input.Name, got, want)
		}
	}
}

// Python's floor is one directory for a session and has another layout; what does not depend on it holds here too.
func TestVectorsEnvironment(t *testing.T) {
	isShared := func(one vector) bool { return !strings.Contains(string(one.Want), "{root}") }
	for _, one := range vectors(t, "environment", isShared) {
		var input struct {
			Variables      map[string]string
			Preserve, Keep []string
		}
		var want map[string]*string
		decode(t, one.Input, &input)
		decode(t, one.Want, &want)
		got := planned(input.Variables, input.Preserve, input.Keep)
		for name, value := range want {
			found, isSet := got[name]
			if isSet != (value != nil) || value != nil && found != *value {
				t.Errorf("%s: %s is %q, %v", one.ID, name, found, isSet)
			}
		}
	}
}

// planned is what the floor makes of an environment, but for the home.
func planned(variables map[string]string, preserve, keep []string) map[string]string {
	got := map[string]string{}
	for name, value := range variables {
		if !IsTaken(name, keep) && !IsGitState(name) {
			got[name] = value
		}
	}
	var caches []tables.Cache
	for _, cache := range tables.Caches {
		for _, name := range preserve {
			if strings.EqualFold(strings.ReplaceAll(name, "_", ""), cache.Name) {
				caches = append(caches, cache)
			}
		}
	}
	pins := Preserved(caches, func(name string) string { return variables[name] })
	for _, pin := range append(append(pins, tables.GitPins...), tables.TransportPins...) {
		got[pin.Name] = pin.Value
	}
	return got
}
