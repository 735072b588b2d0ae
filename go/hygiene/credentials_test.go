package hygiene_test

import (
	"os"
	"sort"
	"testing"

	"github.com/smm-h/stricttest/go/hygiene"
	"github.com/smm-h/stricttest/go/internal/exported"
)

// What the reference of the package promises by name.
var promised = []string{
	"SSH_AUTH_SOCK", "GIT_ASKPASS", "GITHUB_TOKEN", "GH_TOKEN", "GITHUB_API_TOKEN", "NPM_TOKEN", "NODE_AUTH_TOKEN", "PYPI_TOKEN",
	"TWINE_PASSWORD", "TWINE_USERNAME", "CARGO_REGISTRY_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"CLOUDFLARE_API_TOKEN", "CF_PAGES_API_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
}

func TestCredentialVarsAreSortedNamedOnceAndHoldWhatWasPromised(t *testing.T) {
	if !sort.StringsAreSorted(hygiene.CredentialVars) {
		t.Error("not sorted")
	}
	seen := map[string]bool{}
	for _, name := range hygiene.CredentialVars {
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
	for _, name := range promised {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestStripCredentialsTakesEachNameAwayAndGivesItBack(t *testing.T) {
	for _, name := range hygiene.CredentialVars {
		t.Setenv(name, "real "+name)
	}
	during(t, func(t *testing.T) {
		hygiene.StripCredentials(t)
		wantAbsent(t, hygiene.CredentialVars...)
	})
	for _, name := range hygiene.CredentialVars {
		wantVariable(t, name, "real "+name)
	}
}

func TestWhatWasAbsentOrEmptyComesBackAsItWas(t *testing.T) {
	absent(t, "GITHUB_TOKEN")
	t.Setenv("NPM_TOKEN", "")
	during(t, func(t *testing.T) {
		hygiene.StripCredentials(t)
		wantAbsent(t, "GITHUB_TOKEN", "NPM_TOKEN")
		os.Setenv("GITHUB_TOKEN", "fake")
	})
	if value, isSet := os.LookupEnv("NPM_TOKEN"); value != "" || !isSet {
		t.Errorf("NPM_TOKEN is %q, %v; it was set and empty", value, isSet)
	}
}

func TestPatternsTakeWhatNoListNames(t *testing.T) {
	taken := []string{"SHOP_TOKEN", "SHOP_DB_PASSWORD", "PGUSER", "shop_client_secret", "https_proxy"}
	for _, name := range taken {
		t.Setenv(name, "real")
	}
	t.Setenv("SHOP_COLOUR", "red")
	during(t, func(t *testing.T) {
		hygiene.StripCredentials(t)
		wantAbsent(t, taken...)
		wantVariable(t, "SHOP_COLOUR", "red")
	})
}

func TestATestSetsAFakeCredentialAfterwards(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "real")
	during(t, func(t *testing.T) {
		hygiene.StripCredentials(t)
		t.Setenv("GITHUB_TOKEN", "fake")
		wantVariable(t, "GITHUB_TOKEN", "fake")
	})
	wantVariable(t, "GITHUB_TOKEN", "real")
}

func TestTheAddressOfAThrowawayDatabaseIsNoCredential(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgresql:///test_1")
	exported.Add("DATABASE_URL", "postgresql:///test_1")
	t.Cleanup(func() { exported.Remove("DATABASE_URL") })
	during(t, func(t *testing.T) {
		hygiene.Isolate(t)
		wantVariable(t, "DATABASE_URL", "postgresql:///test_1")
		t.Setenv("DATABASE_URL", "postgresql://production")
		hygiene.StripCredentials(t)
		wantAbsent(t, "DATABASE_URL")
	})
}
