package accuracy

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

var errNo = errors.New("no")

// said returns the prediction got, lo, hi of a measured 100.
func said(part string, got, lo, hi float64) prediction {
	return prediction{target: target{part: part, want: 100}, got: got, lo: lo, hi: hi}
}

func TestSummarize(t *testing.T) {
	e := math.E
	predictions := []prediction{
		said("a", 110, 110/e, 110*e),            // 10 % off, inside, half-width 1
		said("a", 80, 70, 90),                   // 20 % off, outside
		said("b", 100, 100/(e*e), 100*(e*e)),    // exact, half-width 2
		said("b", 150, 0, 0),                    // 50 % off, no interval
		{target: target{part: "b"}, err: errNo}, // refused
	}
	got := summarize(predictions)
	want := Summary{Rows: 4, Refused: 1, Mean: 0.2, Median: 0.15, P95: 0.5, Max: 0.5, Intervals: 3, Coverage: 2.0 / 3, HalfWidth: 1}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if s := summarize(nil); s != (Summary{}) {
		t.Errorf("summary of nothing is %+v", s)
	}
	parts := byPart(predictions, (*prediction).ape)
	if len(parts) != 2 || parts[0].Name != "a" || parts[0].Rows != 2 || parts[1].Rows != 2 || parts[1].Refused != 1 {
		t.Errorf("parts are %+v", parts)
	}
	if m := meanOfMedians(parts); math.Abs(m-0.2) > 1e-12 { // of 0.15 and 0.25
		t.Errorf("mean of the parts' medians is %g, want 0.2", m)
	}
}

// TestCoverageAtTheEdge: a measured time on a bound is inside.
func TestCoverageAtTheEdge(t *testing.T) {
	s := summarize([]prediction{said("", 90, 80, 100), said("", 110, 100, 120), said("", 90, 80, 99.999)})
	if s.Coverage != 2.0/3 {
		t.Errorf("coverage %g, want 2/3", s.Coverage)
	}
}

func TestRateError(t *testing.T) {
	a := said("", 80, 0, 0) // a fifth less time is a quarter more speed
	if got := a.rateError(); math.Abs(got-0.25) > 1e-12 {
		t.Errorf("error of the speed is %g, want 0.25", got)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{5, 1}, 3}, {[]float64{9, 1, 2}, 2}} {
		if got := stats.Median(c.v); got != c.want {
			t.Errorf("median of %v is %g, want %g", c.v, got, c.want)
		}
	}
}

// A prediction that is not positive and finite is a refusal.
func TestReplyRefusesNonsense(t *testing.T) {
	for _, v := range []float64{math.NaN(), 0, -1, math.Inf(1)} {
		a := predict(t.Context(), constant(v), target{config: spec.Config{Plan: spec.Plan{MicroBatch: 8}}, want: 1})
		if a.err == nil {
			t.Errorf("a throughput of %g was scored as %g s", v, a.got)
		}
	}
	a := predict(t.Context(), constant(4), target{config: spec.Config{Plan: spec.Plan{MicroBatch: 8}}, want: 2})
	if a.err != nil || a.got != 2 || a.lo != 0 || a.hi != 0 {
		t.Errorf("8 samples at 4/s: %+v", a)
	}
}
