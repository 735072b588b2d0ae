package hygiene

import (
	"os"
	"strings"
	"testing"

	"github.com/smm-h/stricttest/go/internal/exported"
	"github.com/smm-h/stricttest/go/internal/floor"
	"github.com/smm-h/stricttest/go/internal/tables"
)

// CredentialVars are the names that [StripCredentials] removes always, sorted: a copy, for inspection. Beside them it removes
// what looks like a credential by a pattern, such as SHOP_API_KEY or PGUSER; see [Keep].
var CredentialVars = append([]string(nil), tables.Credentials...)

// StripCredentials removes every variable that carries a credential, leads to one or to an agent that holds some. They are truly
// absent, not empty, and come back when the test ends. A test that needs one sets a fake value afterwards.
//
// What stays: the address that package pgcluster exported, under whatever name.
//
// It panics if the test called t.Parallel.
func StripCredentials(t testing.TB) {
	t.Helper()
	scopeOf(t).strip(os.Environ(), nil)
}

func (own *scope) strip(environ, kept []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if floor.IsTaken(name, kept) && !exported.Is(name, value) {
			own.unset(name)
		}
	}
}
