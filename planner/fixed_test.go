package planner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Fixed and Rank agree about plans that fit, plans that do not, and illegal plans.
func TestFixedIsRank(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	rnd := rand.New(rand.NewPCG(3, 4))
	fit, miss, illegal, unsure, open := 0, 0, 0, 0, 0
	for range 400 {
		p := spec.Plan{DP: 1 << rnd.IntN(4), TP: 1 << rnd.IntN(4), PP: 1 + rnd.IntN(3), MicroBatch: 1 << rnd.IntN(4), AccumSteps: 1 + rnd.IntN(8), ZeRO: rnd.IntN(4)}
		if rnd.IntN(5) == 0 {
			p.Offload = spec.OffloadOptimizer
		}
		p.Recompute = []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull}[rnd.IntN(3)]
		r := request(p.Devices(), p.GlobalBatch())
		r.Model, r.Framework = testModel(24, 4096, 32), []string{"Megatron Core", "FSDP", "DeepSpeed"}[rnd.IntN(3)]
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
			e, err := pl.Memory(got.Config)
			if b := e.Plan(got.Config.Plan); err == nil && b.Verdict(r.Accelerator.MemBytes) == memory.Exceeds {
				open++ // its stack has settings with which it may fit
			}
		}
	}
	if min(fit, miss, illegal) < 20 || open == 0 || unsure == open || unsure == miss {
		t.Errorf("%d fit, %d do not, %d of them perhaps, %d by settings that the plan does not state, %d are illegal: too few of a kind", fit, miss, unsure, open, illegal)
	}
}

// ownMemory predicts that every plan needs as many bytes.
type ownMemory float64

func (o ownMemory) Predict(context.Context, spec.Config) (spec.Prediction, error) {
	return spec.Prediction{Throughput: 1, MemoryBytes: float64(o)}, nil
}

// TestVerdictOfMisses: the verdict on a plan that does not fit is that of host memory, of the predictor's own memory
// model, or of a limit where the spread of the estimate is unknown.
func TestVerdictOfMisses(t *testing.T) {
	opaque := spec.Model{Name: "opaque", Kind: spec.Opaque, FLOPsPerSample: 1e12}
	for _, c := range []struct {
		name    string
		model   spec.Model
		gib     float64 // of the predictor, 0 = that of the parts
		plan    string
		hostGiB float64
		reserve float64
		verdict memory.Verdict
		why     string
	}{
		{"host", testModel(24, 2048, 16), 0, "dp=8,zero=1,offload=optimizer,recompute=full", 0.01, 0, memory.Exceeds, "GiB of host memory of 0.0 GiB"},
		{"reserve", testModel(24, 2048, 16), 0, "dp=8,recompute=full", 0, 0.9, memory.Exceeds, "of 8.0 GiB"},
		{"near", testModel(24, 2048, 16), 80, "dp=8", 0, 0, memory.Unsure, "needs 80.0 GiB"},
		{"far", testModel(24, 2048, 16), 800, "dp=8", 0, 0, memory.Exceeds, "needs 800.0 GiB"},
		{"unknown size", opaque, 81, "dp=8", 0, 0, memory.Exceeds, "needs 81.0 GiB"},
	} {
		r := request(8, 8)
		r.Model, r.NodeHostBytes = c.model, c.hostGiB*memory.GiB
		p, err := spec.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		r.Plan = &p
		pred := analyticModel(t)
		if c.gib > 0 {
			pred = ownMemory(c.gib * memory.GiB)
		}
		pl := planner.New(pred, planner.Options{Reserve: c.reserve})
		got, err := pl.FitCheck(t.Context(), r)
		if err != nil || got.Fits || got.Verdict != c.verdict || !strings.Contains(got.Why, c.why) || c.gib > 0 && strings.Contains(got.Why, ": ") {
			t.Errorf("%s: fits %v, %q, %q, %v, want %q, %q", c.name, got.Fits, got.Verdict, got.Why, err, c.verdict, c.why)
		}
	}
}

// TestFixedConcurrently: a planner that has answered other questions gives the answers of a new one, also to concurrent
// callers.
func TestFixedConcurrently(t *testing.T) {
	hybrid, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	questions := fixedQuestions(400)
	for _, model := range []perfmodel.Predictor{analyticModel(t), hybrid.Unfitted, fittedTo(t, hybrid, questions[0]), ownMemory(40 * memory.GiB)} {
		want := make([]planner.Choice, len(questions))
		errs := make([]error, len(questions))
		for i, r := range questions {
			want[i], errs[i] = planner.New(model, planner.Options{}).Fixed(t.Context(), r)
		}
		shared := planner.New(model, planner.Options{})
		var g errgroup.Group
		for at := range 4 {
			g.Go(func() error {
				for k := range questions {
					i := (k*(2*at+1) + 100*at) % len(questions)
					got, err := shared.Fixed(t.Context(), questions[i])
					if !reflect.DeepEqual(got, want[i]) || fmt.Sprint(err) != fmt.Sprint(errs[i]) {
						return fmt.Errorf("%+v: %+v, %w, want %+v, %w", questions[i], got, err, want[i], errs[i])
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Errorf("%T: %v", model, err)
		}
	}
}

// TestPreparedIsFixed: a prepared plan has the answers of Fixed at every length, the first time and later, whatever the
// answer before was.
func TestPreparedIsFixed(t *testing.T) {
	pl := planner.New(analyticModel(t), planner.Options{})
	fits, misses, errs := 0, 0, 0
	var got planner.Choice
	for _, r := range fixedQuestions(200) {
		base := r
		base.Plan, base.Shape = nil, spec.Shape{}
		prepared := pl.PrepareFixed(&base, r.Plan, r.Shape)
		for _, r.SeqLen = range []int{2048, 512, 131072, 513, 2048} {
			want, wrong := pl.Fixed(t.Context(), r)
			err := prepared.At(t.Context(), r.SeqLen, &got)
			if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wrong) {
				t.Fatalf("%s at %d: %+v, %v, want %+v, %v", r.Plan, r.SeqLen, got, err, want, wrong)
			}
			switch {
			case err != nil:
				errs++
			case got.Fits:
				fits++
			default:
				misses++
			}
		}
	}
	if min(fits, misses) < 50 {
		t.Errorf("%d fit, %d do not, %d are errors: too few of a kind", fits, misses, errs)
	}
}

// fixedQuestions returns n questions with few values of each field, so that many differ in one only.
func fixedQuestions(n int) []planner.Request {
	rnd := rand.New(rand.NewPCG(5, 6))
	out := make([]planner.Request, n)
	for i := range out {
		p := spec.Plan{DP: 1 << rnd.IntN(4), TP: 1 << rnd.IntN(3), PP: 1 + rnd.IntN(2), MicroBatch: 1 << rnd.IntN(3), ZeRO: rnd.IntN(4),
			Recompute: []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull}[rnd.IntN(3)]}
		r := planner.Request{Model: testModel(24, 4096, 32), Accelerator: testAccelerator(80), Shape: spec.Packed(p.Devices(), 8), Plan: &p,
			SeqLen: 1024 << rnd.IntN(3), Framework: []string{"", "Megatron Core", "DeepSpeed"}[rnd.IntN(3)]}
		switch rnd.IntN(6) { // fields that are not in a name
		case 0:
			r.Model.Layers++
		case 1:
			r.Accelerator.MemBytes *= 2
		case 2:
			r.Link.InterBps = 50e9
		case 3:
			r.Shape.CPUs = 64
		}
		out[i] = r
	}
	return out
}
