package nextplans

import (
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// request returns the planner's request of a model on H100s.
func request(t *testing.T, model string, devices, batch int) planner.Request {
	t.Helper()
	q := query.Request{Model: model, Accelerator: "h100", GlobalBatch: batch, Family: "analytic"}
	found, err := (&query.Resolver{Read: func(func(reader.Store) error) error { return nil }}).Resolve(t.Context(), q)
	if err == nil {
		err = found.On(&q, devices)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found.Request
}

// TestLikely: the likely plans fit, are fast, can run, and differ in every way that matters.
func TestLikely(t *testing.T) {
	r := request(t, "llama3-8b", 8, 128)
	p, err := query.Unfitted("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	noPipelines := func(c spec.Config) bool { return c.Plan.PP == 1 }
	pl := planner.New(p, planner.Options{})
	configs, err := Likely(t.Context(), pl, r, noPipelines)
	if err != nil {
		t.Fatal(err)
	}
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
	p, err := query.Unfitted("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	configs, err := Likely(t.Context(), planner.New(p, planner.Options{}), request(t, "gpt2-xl", 8, 8), func(spec.Config) bool { return true })
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
	if got := Alternate([][]int{{1, 4, 6}, {}, {2}, {3, 5}}); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%v", got)
	}
	if got := Alternate[int](nil); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
