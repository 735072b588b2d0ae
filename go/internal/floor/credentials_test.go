package floor

import (
	"fmt"
	"testing"
)

func TestAPatternCoversTheWholeName(t *testing.T) {
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"API_KEY", "API_KEY", true},
		{"API_KEY", "MY_API_KEY", false},
		{"*TOKEN", "TOKEN", true},
		{"*TOKEN", "SHOP_TOKEN", true},
		{"*TOKEN", "TOKENS", false},
		{"PG*", "PG", true},
		{"PG*", "UPGRADE", false},
		{"*_SECRET_*", "A_SECRET_B", true},
		{"*_SECRET_*", "A_SECRET", false},
		{"A*A", "A", false},
		{"A*A", "AA", true},
		{"*A*B*", "XBXA", false},
		{"*A*B*", "XAXB", true},
		{"*AB*B", "AB", false},
		{"*", "", true},
	} {
		if got := matches(row.pattern, row.name); got != row.want {
			t.Errorf("%s covers %q: %v", row.pattern, row.name, got)
		}
	}
}

func TestTheMemoryOfJudgementsIsBounded(t *testing.T) {
	set := newNames([]string{"EXACT"}, []string{"*TOKEN"})
	for number := 0; number < verdictCountMax+10; number++ {
		if verdict := set.judge(fmt.Sprintf("n%d_token", number)); verdict != Pattern {
			t.Fatalf("%d: %v", number, verdict)
		}
	}
	if len(set.known) != verdictCountMax || set.judge("exact") != Exact || set.judge("plain") != Stays {
		t.Errorf("%d remembered", len(set.known))
	}
}

// Whatever a name is, its case does not matter, and judging it twice gives the same.
func FuzzJudge(f *testing.F) {
	for _, name := range []string{"GITHUB_TOKEN", "shop_password", "PATH", "", "*", "é_TOKEN"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if first, second := Judge(name), Judge(name); first != second {
			t.Errorf("%q: %v, then %v", name, first, second)
		}
		if Judge(name+"_TOKEN") == Stays {
			t.Errorf("%q_TOKEN stays", name)
		}
	})
}
