package calibrate

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// TestLikely: the likely plans fit, are fast, can run, and differ in every way that matters.
func TestLikely(t *testing.T) {
	o := Options{Model: "llama3-8b", Accelerator: "h100", Devices: 8}
	r, _, err := o.request(t.Context(), &query.Resolver{Read: func(func(reader.Store) error) error { return nil }}, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := query.Unfitted("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	noPipelines := func(c spec.Config) bool { return c.Plan.PP == 1 }
	configs, err := likely(t.Context(), p, r, noPipelines)
	if err != nil {
		t.Fatal(err)
	}
	pl := planner.New(p, planner.Options{})
	best := map[[2]int]float64{}
	seen, devices, batches, tp, zero := map[spec.Config]bool{}, map[int]int{}, map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, c := range configs {
		n, b := c.Plan.Devices(), c.Plan.GlobalBatch()
		at := r
		at.Devices, at.GlobalBatch, at.Plan = n, b, &c.Plan
		ranking, err := pl.Rank(t.Context(), at)
		if err != nil || len(ranking.Choices) != 1 || !ranking.Choices[0].Fits || c.Plan.PP > 1 || seen[c] {
			t.Fatalf("%s: %+v, %v", c.Plan, ranking, err)
		}
		best[[2]int{n, b}] = max(best[[2]int{n, b}], ranking.Choices[0].Prediction.Throughput)
		seen[c], batches[b*8/n], tp[c.Plan.TP], zero[c.Plan.ZeRO] = true, true, true, true
		devices[n]++
	}
	for _, c := range configs {
		pred, err := p.Predict(t.Context(), c)
		n, b := c.Plan.Devices(), c.Plan.GlobalBatch()
		if least := slowest * max(best[[2]int{n, b}], best[[2]int{8, b * 8 / n}]*float64(n)/8); err != nil || pred.Throughput < least {
			t.Errorf("%s: %g samples/s, want at least %g, %v", c.Plan, pred.Throughput, least, err)
		}
	}
	if len(configs) > maxLikely || devices[8] < 10 || len(devices) < 2 || len(batches) != 3 || !batches[128] || len(tp) < 2 || len(zero) < 2 {
		t.Errorf("%d plans, by devices %v, batches %v, tp %v, zero %v", len(configs), devices, batches, tp, zero)
	}
}

// TestLikelySmallBatch: shares of a batch below one sample are left out.
func TestLikelySmallBatch(t *testing.T) {
	o := Options{Model: "gpt2-xl", Accelerator: "h100", Devices: 8, GlobalBatch: 8}
	r, _, err := o.request(t.Context(), &query.Resolver{Read: func(func(reader.Store) error) error { return nil }}, "")
	if err != nil {
		t.Fatal(err)
	}
	configs, err := o.likely(t.Context(), r, func(spec.Config) bool { return true })
	if err != nil || len(configs) == 0 {
		t.Fatalf("%d plans, %v", len(configs), err)
	}
	for _, c := range configs {
		if c.Plan.GlobalBatch() > c.Plan.Devices() {
			t.Errorf("%s has more samples per device than requested", c.Plan)
		}
	}
}

func TestAlternate(t *testing.T) {
	if got := alternate([][]int{{1, 4, 6}, {}, {2}, {3, 5}}); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%v", got)
	}
	if got := alternate[int](nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// TestUsual: the wanted batch if there is one, else that of most configurations, the largest of several.
func TestUsual(t *testing.T) {
	var configs []spec.Config
	for _, b := range []int{8, 4, 8, 16, 4} {
		configs = append(configs, spec.Config{Plan: spec.Plan{MicroBatch: b}.Normal()})
	}
	for want, batch := range map[int]int{2: 8, 4: 4, 16: 16, 100: 8} {
		if got := usual(configs, want); got != batch {
			t.Errorf("wanted %d, got %d, want %d", want, got, batch)
		}
	}
	if got := usual(nil, 8); got != 0 {
		t.Errorf("%d, want 0", got)
	}
}
