package live_test

import (
	"fmt"
	"testing"

	"github.com/pacer-ml/pacer/scheduler/live/livetest"
)

// TestConformance runs a trace in the simulator and on a cluster in memory: every policy is called at the same times and
// decides the same. The packages of the engines have the same test on real clusters.
func TestConformance(t *testing.T) {
	jobs := 200
	if testing.Short() {
		jobs = 60
	}
	for _, policy := range livetest.Conforming {
		for _, even := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/even=%v", policy, even), func(t *testing.T) {
				tr := livetest.NewTrace(jobs, 7)
				tr.Even = even
				c := livetest.New(livetest.Epoch, tr.Nodes()...)
				c.Violation = func(text string) { t.Errorf("at %v: %s", c.Now(), text) }
				tr.Conform(t, c, policy, nil)
			})
		}
	}
}
