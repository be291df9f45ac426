package planner_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// bruteForce returns the plans among all combinations of divisors that the rules,
// repeated here, allow.
func bruteForce(r planner.Request) (plans []spec.Plan) {
	perNode := 8
	dividing := func(n int) []int {
		var out []int
		for i := 1; i <= n; i++ {
			if n%i == 0 {
				out = append(out, i)
			}
		}
		return out
	}
	for _, dp := range dividing(r.Devices) {
		for _, tp := range dividing(r.Devices / dp) {
			pp := r.Devices / dp / tp
			if r.GlobalBatch%dp != 0 || min(r.Devices, perNode)%tp != 0 || r.Devices > perNode && (r.Devices%perNode)%tp != 0 {
				continue
			}
			for _, mb := range dividing(r.GlobalBatch / dp) {
				for _, ep := range dividing(max(r.Model.Experts, 1)) {
					for vp := 1; vp <= r.Model.Layers; vp++ {
						p := spec.Plan{DP: dp, TP: tp, PP: pp, CP: 1, EP: ep, VirtualStages: vp, MicroBatch: mb, AccumSteps: r.GlobalBatch / dp / mb, Precision: spec.BF16}
						for _, p.Schedule = range []spec.Schedule{spec.ScheduleDefault, spec.ScheduleZBH1} {
							plans = append(plans, withModes(r, p)...)
							if p.Shard = groupInNode(r.Devices, dp, tp); p.Shard > 0 {
								plans = append(plans, withModes(r, p)...)
							}
							p.Shard = 0
						}
					}
				}
			}
		}
	}
	return plans
}

// groupInNode returns the largest number of dp ranks, tp apart, that fill every node
// of 8 evenly, 0 where all ranks do.
func groupInNode(devices, dp, tp int) (most int) {
	fills := func(n int) bool { return min(devices, 8)%(n*tp) == 0 && (devices <= 8 || devices%8%(n*tp) == 0) }
	if devices <= 8 {
		return 0
	}
	for n := 2; n < dp; n++ {
		if dp%n == 0 && fills(n) && !fills(dp) {
			most = n
		}
	}
	return most
}

func withModes(r planner.Request, p spec.Plan) (plans []spec.Plan) {
	for zero := range 4 {
		for _, off := range []spec.Offload{spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams} {
			for _, re := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull} {
				for _, sp := range []bool{false, true} {
					p.ZeRO, p.Offload, p.Recompute, p.SequenceParallel = zero, off, re, sp
					switch {
					case p.Check(r.Model) != nil:
					case sp && r.Model.SeqLen%p.TP != 0:
					case zero > 0 && p.DP == 1 && off != spec.OffloadParams:
					case !evenChunks(r.Model.Layers, p.PP, p.VirtualStages):
					case off != spec.OffloadNone && p.PP > 1:
					case off == spec.OffloadOptimizer && zero == 0 && p.DP > 1:
					default:
						plans = append(plans, p)
					}
				}
			}
		}
	}
	return plans
}

// evenChunks reports whether PP·VP chunks have equal layers or, where PP does not
// divide the layers, equal numbers of layers, embedding and head.
func evenChunks(layers, pp, vp int) bool {
	if layers%pp != 0 {
		layers += 2
	}
	return vp == 1 || layers%(pp*vp) == 0
}

// randomRequest draws a small request; some have no plan that fits.
func randomRequest(r *rand.Rand) planner.Request {
	heads := []int{4, 6, 8, 12}[r.IntN(4)]
	m := testModel([]int{2, 4, 6, 8}[r.IntN(4)], 128*heads, heads)
	if r.IntN(4) == 0 {
		m.Experts, m.ExpertsPerToken, m.ExpertFFN = 4, 2, m.Hidden
		m.Name += "-moe"
	}
	return planner.Request{Model: m, Accelerator: testAccelerator([]float64{2, 4, 8, 80}[r.IntN(4)]),
		Devices: 1 + r.IntN(16), GlobalBatch: []int{4, 6, 8, 12, 16, 24}[r.IntN(6)]}
}

// bothSchedules is the space of bruteForce.
var bothSchedules = planner.Options{Space: planner.Enumerate{Schedules: []spec.Schedule{spec.Schedule1F1B, spec.ScheduleZBH1}}}

// bestByBruteForce returns the throughput of the fastest plan that fits, -Inf without
// one, and the number of plans tried.
func bestByBruteForce(t *testing.T, model perfmodel.Predictor, r planner.Request) (best float64, tried int) {
	best = math.Inf(-1)
	for _, p := range bruteForce(r) {
		tried++
		c := spec.Config{Model: r.Model, Plan: p, Accelerator: r.Accelerator, Link: r.Link, Shape: spec.Packed(r.Devices, 8)}
		pred, err := model.Predict(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		b, err := memory.Estimate(c)
		if err != nil {
			t.Fatal(err)
		}
		if b.Total() != pred.MemoryBytes {
			t.Fatalf("%s: predicted %g bytes, estimated %g", p, pred.MemoryBytes, b.Total())
		}
		if b.Fits(r.Accelerator.MemBytes) {
			best = max(best, pred.Throughput)
		}
	}
	return best, tried
}

// gpt3 is GPT-3 175B (Brown et al. 2020, table 2.1) on A100-80GB-SXM nodes with
// eight 200 Gbit/s adapters.
func gpt3(devices, batch int) planner.Request {
	m := testModel(96, 12288, 96)
	m.FFN, m.Vocab, m.SeqLen = 4*12288, 51200, 2048
	a := testAccelerator(80)
	a.BF16, a.MemBps = 312e12, 2.039e12
	return planner.Request{Model: m, Accelerator: a, Link: spec.Link{IntraBps: 300e9, InterBps: 8 * 25e9}, Devices: devices, GlobalBatch: batch}
}

func TestBestOfGPT3EqualsBruteForce(t *testing.T) {
	if problems(10) < 10 {
		t.Skip("slow under the race detector, and in one goroutine")
	}
	r := gpt3(1024, 1536)
	model := analyticModel(t)
	want, tried := bestByBruteForce(t, model, r)
	rk, err := planner.New(model, bothSchedules).Rank(ctx, r)
	if err != nil || rk.Choices[0].Prediction.Throughput != want || rk.Evaluated != tried {
		t.Errorf("%s makes %g samples/s of %d plans, by brute force %g of %d (%v)",
			rk.Choices[0].Config.Plan, rk.Choices[0].Prediction.Throughput, rk.Evaluated, want, tried, err)
	}
	t.Logf("%d plans, %d fit, best %s: %g samples/s", rk.Evaluated, rk.Fitting, rk.Choices[0].Config.Plan, want)
}

func TestBestEqualsBruteForce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	model := analyticModel(t)
	answered := 0
	for i := range problems(200) {
		r := randomRequest(rnd)
		want, evaluated := bestByBruteForce(t, model, r)
		got, err := planner.New(model, bothSchedules).Best(ctx, r)
		if math.IsInf(want, -1) {
			if !errors.Is(err, planner.ErrInfeasible) {
				t.Errorf("problem %d: error %v, want ErrInfeasible", i, err)
			}
			continue
		}
		answered++
		if err != nil {
			t.Errorf("problem %d (%d devices, batch %d): %v, brute force finds %g samples/s", i, r.Devices, r.GlobalBatch, err, want)
			continue
		}
		if got.Prediction.Throughput != want {
			t.Errorf("problem %d: %g samples/s with %s, brute force finds %g", i, got.Prediction.Throughput, got.Config.Plan, want)
		}
		rank, err := planner.New(model, bothSchedules).Rank(ctx, r)
		if err != nil || rank.Evaluated != evaluated || len(rank.Choices) != evaluated {
			t.Errorf("problem %d: %d evaluated, %d listed, %v; brute force has %d", i, rank.Evaluated, len(rank.Choices), err, evaluated)
		}
	}
	if answered < problems(200)/4 {
		t.Errorf("only %d of 200 problems had an answer: the comparison is empty", answered)
	}
}
