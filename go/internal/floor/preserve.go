package floor

import (
	"path/filepath"
	"strings"

	"github.com/smm-h/stricttest/go/internal/tables"
)

// Preserved says what the caches' variables must hold so that their tools find them after HOME has moved. The lookup is that
// of the environment before the move. A variable that is set and not empty keeps its value; without a home, a cache that is
// looked for below it has none to be preserved and is left out.
func Preserved(caches []tables.Cache, lookup func(name string) string) []tables.Pin {
	var pins []tables.Pin
	for _, cache := range caches {
		value := lookup(cache.Env)
		if value == "" {
			value = defaultOf(cache, lookup)
		}
		if value != "" {
			pins = append(pins, tables.Pin{Name: cache.Env, Value: value})
		}
	}
	return pins
}

// defaultOf is where the tool looks without its variable, or "" if that needs a home and there is none.
func defaultOf(cache tables.Cache, lookup func(name string) string) string {
	home := lookup("HOME")
	base, rest := home, strings.TrimPrefix(cache.Default, "{home}/")
	if below := strings.TrimPrefix(cache.Default, "{gopath}/"); below != cache.Default {
		base, rest = gopath(home, lookup), below
	}
	if base == "" {
		return ""
	}
	return filepath.Join(base, filepath.FromSlash(rest))
}

// gopath is the work space that Go downloads into: the first of the list, as go itself takes it.
func gopath(home string, lookup func(name string) string) string {
	if list := filepath.SplitList(lookup("GOPATH")); len(list) > 0 && list[0] != "" {
		return list[0]
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, "go")
}
