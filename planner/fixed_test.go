package planner_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Fixed and Rank agree about plans that fit, plans that do not, and illegal plans.
func TestFixedIsRank(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	rnd := rand.New(rand.NewPCG(3, 4))
	fit, miss, illegal, unsure := 0, 0, 0, 0
	for range 400 {
		p := spec.Plan{DP: 1 << rnd.IntN(4), TP: 1 << rnd.IntN(4), PP: 1 + rnd.IntN(3), MicroBatch: 1 << rnd.IntN(4), AccumSteps: 1 + rnd.IntN(8), ZeRO: rnd.IntN(4)}
		if rnd.IntN(5) == 0 {
			p.Offload = spec.OffloadOptimizer
		}
		r := request(p.Devices(), p.GlobalBatch())
		r.Model = testModel(24, 4096, 32)
		r.Plan, r.Shape, r.NodeHostBytes, r.PricePerHour = &p, spec.Packed(p.Devices(), 8), 256<<30, 2
		ranking, rerr := pl.Rank(t.Context(), r)
		got, err := pl.Fixed(t.Context(), r)
		switch {
		case rerr != nil:
			illegal++
			if err == nil || err.Error() != rerr.Error() {
				t.Fatalf("%s: error %v, want %v", p, err, rerr)
			}
			continue
		case ranking.Choices[0].Fits:
			fit++
		default:
			miss++
		}
		if err != nil || !reflect.DeepEqual(got, ranking.Choices[0]) {
			t.Fatalf("%s: %+v %v, want %+v", p, got, err, ranking.Choices[0])
		}
		if (got.Verdict == memory.Fits) != got.Fits || got.Verdict == "" {
			t.Errorf("%s: fits is %v, the verdict %q", p, got.Fits, got.Verdict)
		}
		if got.Verdict == memory.Unsure {
			unsure++
		}
	}
	if min(fit, miss, illegal) < 20 || unsure == 0 || unsure == miss {
		t.Errorf("%d fit, %d do not, %d of them perhaps, %d are illegal: too few of a kind", fit, miss, unsure, illegal)
	}
}
