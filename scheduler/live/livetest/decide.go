package livetest

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler/live"
)

// BenchmarkDecision lets new controllers observe a cluster and decide, without writing. Each must decide once, and nothing
// may be refused. It reports decide-sec, the seconds of a decision. options are those of one controller.
func BenchmarkDecision(b *testing.B, options func() live.Options) {
	b.Helper()
	decide := 0.0
	for b.Loop() {
		o := options()
		o.DryRun = true
		controller, err := live.New(o)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := controller.Tick(b.Context()); err != nil {
			b.Fatal(err)
		}
		s := controller.Stats()
		if s.Decisions != 1 || s.Failed+s.Refused > 0 {
			b.Fatalf("%+v", s)
		}
		decide += s.Decide.Seconds()
	}
	b.ReportMetric(decide/float64(b.N), "decide-sec")
}
