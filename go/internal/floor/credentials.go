// Package floor decides, over plain values, what the environment floor takes away and what it keeps. It neither reads nor
// changes the environment; package hygiene does.
package floor

import (
	"strings"
	"sync"

	"github.com/smm-h/stricttest/go/internal/tables"
)

// Verdict says what becomes of a variable.
type Verdict int

const (
	// Stays means that no table names the variable.
	Stays Verdict = iota
	// Pattern means that only a pattern names it: it is taken away, unless kept by its name.
	Pattern
	// Exact means that it is taken away always.
	Exact
)

// verdictCountMax bounds the memory of the judgements; an environment has some dozens of names.
const verdictCountMax = 4096

// Judge says what becomes of the variable called name. Case does not matter.
//
//	floor.Judge("GITHUB_TOKEN") == floor.Exact
//	floor.Judge("shop_password") == floor.Pattern
func Judge(name string) Verdict {
	credentials.Lock()
	defer credentials.Unlock()
	return credentials.judge(name)
}

// IsTaken tells whether the variable called name is taken away, when those in kept may stay.
func IsTaken(name string, kept []string) bool {
	switch Judge(name) {
	case Exact:
		return true
	case Pattern:
		for _, one := range kept {
			if strings.EqualFold(one, name) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// IsGitState tells whether the variable would lead git to another repository or to another configuration.
func IsGitState(name string) bool {
	gitState.Lock()
	defer gitState.Unlock()
	return gitState.judge(name) != Stays
}

var (
	credentials = newNames(tables.Credentials, tables.CredentialPatterns)
	gitState    = newNames(tables.GitRemoved, tables.GitRemoved)
)

// names is a set of exact names and patterns. It remembers its judgements: each test asks about the same environment.
type names struct {
	sync.Mutex
	exact    map[string]bool
	patterns []string
	known    map[string]Verdict
}

func newNames(exact, patterns []string) *names {
	set := &names{exact: map[string]bool{}, known: map[string]Verdict{}}
	for _, name := range exact {
		set.exact[name] = true
	}
	for _, pattern := range patterns {
		if !set.exact[pattern] || strings.Contains(pattern, "*") {
			set.patterns = append(set.patterns, pattern)
		}
	}
	return set
}

func (set *names) judge(name string) Verdict {
	if verdict, ok := set.known[name]; ok {
		return verdict
	}
	upper := strings.ToUpper(name)
	verdict := Stays
	if set.exact[upper] {
		verdict = Exact
	} else if matchesAny(set.patterns, upper) {
		verdict = Pattern
	}
	if len(set.known) < verdictCountMax {
		set.known[name] = verdict
	}
	return verdict
}

func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches(pattern, name) {
			return true
		}
	}
	return false
}

// matches tells whether a pattern covers the whole name; * stands for any run of characters, also for none.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == name
	}
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	middle := name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(middle, part)
		if at < 0 {
			return false
		}
		middle = middle[at+len(part):]
	}
	return true
}
