package hygiene_test

import (
	"os"
	"sort"
	"testing"
	"time"

	"github.com/smm-h/stricttest/go/hygiene"
)

const costRounds = 100

// What an isolation may cost is a ratio to what tests do anyway. Timings are no verdict on a shared machine, so this measures
// only when asked: COST=1 go test -run Cost -v ./hygiene
func TestCost(t *testing.T) {
	if os.Getenv("COST") == "" {
		t.Skip("COST=1 measures")
	}
	names := []string{"COST_0", "COST_1", "COST_2", "COST_3", "COST_4"}
	bodies := []func(t *testing.T){
		func(t *testing.T) {},
		func(t *testing.T) {
			t.TempDir()
			for _, name := range names {
				t.Setenv(name, "x")
			}
		},
		func(t *testing.T) { hygiene.Isolate(t) },
	}
	took := make([][]time.Duration, len(bodies))
	for round := 0; round < costRounds; round++ {
		for at, body := range bodies {
			begin := time.Now()
			t.Run("x", body)
			took[at] = append(took[at], time.Since(begin))
		}
	}
	median := func(at int) time.Duration {
		sort.Slice(took[at], func(i, j int) bool { return took[at][i] < took[at][j] })
		return took[at][costRounds/2]
	}
	empty, base, floor := median(0), median(1), median(2)
	t.Logf("an empty test %v, TempDir and five Setenv %v, Isolate %v: ratio %.2f without the empty test",
		empty, base, floor, float64(floor-empty)/float64(base-empty))
}
