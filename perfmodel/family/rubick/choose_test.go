package rubick

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// configsAt returns the canonical texts of the chosen candidates.
func configsAt(cs []spec.Config, idx []int) []string {
	var out []string
	for _, i := range idx {
		out = append(out, cs[i].Plan.String()+" on "+cs[i].Shape.Devices)
	}
	slices.Sort(out)
	return out
}

func TestChooseDoesNotDependOnOrder(t *testing.T) {
	cs := perftest.ToyGrid()
	want := configsAt(cs, Choose(cs, 8))
	rng := rand.New(rand.NewPCG(5, 5))
	for range 3 {
		rng.Shuffle(len(cs), func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
		if got := configsAt(cs, Choose(cs, 8)); !slices.Equal(got, want) {
			t.Fatalf("chose %v, in another order %v", want, got)
		}
	}
}

func TestChooseReturnsDistinctAscendingIndices(t *testing.T) {
	cs := perftest.ToyGrid()[:10]
	for n := -1; n <= 12; n++ {
		got := Choose(cs, n)
		if want := min(max(n, 0), len(cs)); len(got) != want || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != want {
			t.Errorf("n=%d: chose %v", n, got)
		}
	}
	if got := Choose(nil, 3); len(got) != 0 {
		t.Errorf("of nothing: chose %v", got)
	}
}

// TestChooseCoversTheParameters: a choice of 8 rows identifies every parameter, which the first 8 rows do not,
// and predicts better.
func TestChooseCoversTheParameters(t *testing.T) {
	cs := perftest.ToyGrid()
	var offload, parallel, nodes bool
	for _, i := range Choose(cs, 8) {
		p := cs[i].Plan
		offload = offload || p.Offload != spec.OffloadNone
		parallel = parallel || p.TP*p.PP > 1
		nodes = nodes || cs[i].Shape.Nodes() > 1
	}
	if !offload || !parallel || !nodes {
		t.Errorf("chose a row with offload %v, model parallelism %v, several nodes %v; want all", offload, parallel, nodes)
	}
}

func TestChooseFromManyAndFromAbsurd(t *testing.T) {
	var cs []spec.Config
	for mb := 1; mb <= 600; mb++ {
		cs = append(cs, perftest.Toy(spec.Plan{DP: 8, MicroBatch: mb}, 8))
	}
	if got := Choose(cs, 8); len(got) != 8 {
		t.Errorf("of 600: chose %v", got)
	}
	for i := range cs[:20] {
		cs[i].Model.ParamCount = 1e308
		cs[i].Plan.DP = 64
		cs[i].Shape = spec.NewShape(8, 8, 8, 8, 8, 8, 8, 8)
	}
	if got := Choose(cs[:20], 5); len(got) != 5 {
		t.Errorf("of absurd candidates: chose %v", got)
	}
}

// TestHeldOutTimesDoNotReachTheFit: the stored model does not depend on the step times of rows that were not chosen.
func TestHeldOutTimesDoNotReachTheFit(t *testing.T) {
	cs := perftest.ToyGrid()
	rows, chosen := toyRows(cs), Choose(cs, 8)
	f := Family
	fit := func() string {
		m, card, err := perfmodel.FitKey(t.Context(), f, rows, perfmodel.FitOptions{MaxRows: 8})
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + card.DataHash + fmt.Sprint(card.Params)
	}
	want := fit()
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range rows {
		if !slices.Contains(chosen, i) {
			rows[i].StepSec = []float64{0.1 + 10*rng.Float64()}
		}
	}
	if got := fit(); got != want {
		t.Errorf("with other held-out times the fit is\n%s\nwas\n%s", got, want)
	}
	rows[chosen[0]].StepSec[0] *= 2
	if fit() == want {
		t.Error("another time of a fitted row changes nothing: this test sees nothing")
	}
}
