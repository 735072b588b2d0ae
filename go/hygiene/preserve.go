package hygiene

import (
	"fmt"
	"os"

	"github.com/smm-h/stricttest/go/internal/floor"
	"github.com/smm-h/stricttest/go/internal/tables"
)

// KnownVar is a toolchain cache that [Preserve] accepts. The constants are all there are.
type KnownVar int

// String is the constant's name, such as GoModCache.
func (v KnownVar) String() string {
	if !v.isKnown() {
		return fmt.Sprintf("KnownVar(%d)", int(v))
	}
	return tables.Caches[v].Name
}

// Env is the environment variable, such as GOMODCACHE; "" for a value that is no constant.
func (v KnownVar) Env() string {
	if !v.isKnown() {
		return ""
	}
	return tables.Caches[v].Env
}

func (v KnownVar) isKnown() bool { return v >= 0 && int(v) < len(tables.Caches) }

// preserve tells whether all names were known; if not, it failed the test.
func (own *scope) preserve(names []KnownVar) bool {
	own.t.Helper()
	var caches []tables.Cache
	for _, name := range names {
		if !name.isKnown() {
			own.t.Fatalf("hygiene: Preserve: unknown KnownVar %d; accepted are %v to %v", int(name), KnownVar(0), KnownVar(len(tables.Caches)-1))
			return false
		}
		caches = append(caches, tables.Caches[name])
	}
	for _, pin := range floor.Preserved(caches, os.Getenv) {
		own.set(pin.Name, pin.Value)
	}
	return true
}
