package accuracy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

func speedProtocols() []Protocol {
	return []Protocol{
		{Name: "speed", Doc: "predictions per second on one core, of different configurations, many plans of a model and machine at a time",
			run: predictionSpeed, alone: true},
		{Name: "fit", Doc: "time to fit one (model, accelerator) to 100 rows, and a prior to 300 and 3000 rows of one site", run: fitTime, alone: true},
	}
}

// speedRows is the number of predicted configurations.
const speedRows = 200_000

func predictionSpeed(ctx context.Context, b *Bench, c Contender) (Result, error) {
	p, groups, err := b.speedPlans(ctx, c)
	if err != nil {
		return Result{}, err
	}
	stated, err := rateOf(ctx, p, groups)
	if err != nil {
		return Result{}, err
	}
	out := Result{Standing: LeftOut, Figures: []Figure{
		{Name: "predictions per second", Value: stated, Unit: "1/s", Must: Limit{AtLeast: 1_200_000}, Aim: Limit{AtLeast: 2_000_000}},
	}}
	if c.Unfitted == nil {
		return out, nil
	}
	for i := range groups {
		groups[i].config.Framework = ""
	}
	open, err := rateOf(ctx, p, groups)
	out.Figures = append(out.Figures, Figure{Name: "the same, stack not stated", Value: open, Unit: "1/s", Must: Limit{AtLeast: 300_000}, Aim: Limit{AtLeast: 800_000}})
	return out, err
}

// rateOf returns the predictions of p per second of one processor.
func rateOf(ctx context.Context, p perfmodel.Predictor, groups []planGroup) (float64, error) {
	runtime.GC()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	start, n := cpuSec(), 0
	for _, g := range groups {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n += predictGroup(ctx, p, g)
	}
	sec := cpuSec() - start
	if n == 0 {
		return 0, unablef("predicts none of the configurations")
	}
	return float64(n) / sec, nil
}

// planGroup is one model on one machine, and plans for it.
type planGroup struct {
	config spec.Config
	plans  []spec.Plan
}

// predictGroup predicts every plan of g, by a prepared predictor if p has one, and
// returns the number of predictions.
func predictGroup(ctx context.Context, p perfmodel.Predictor, g planGroup) (n int) {
	one := func(plan spec.Plan) (spec.Prediction, error) {
		c := g.config
		c.Plan = plan
		return p.Predict(ctx, c)
	}
	if pr, ok := p.(perfmodel.Preparer); ok {
		prepared, err := pr.Prepare(g.config)
		if err != nil {
			return 0
		}
		one = func(plan spec.Plan) (spec.Prediction, error) { return prepared.Predict(plan, g.config.SeqLen) }
	}
	for _, plan := range g.plans {
		if pred, err := one(plan); err == nil && pred.Throughput > 0 {
			n++
		}
	}
	return n
}

// speedPlans returns a predictor and plans: of several models without a fit, or, for
// a family that needs one, batches of the fitted job.
func (b *Bench) speedPlans(ctx context.Context, c Contender) (perfmodel.Predictor, []planGroup, error) {
	f, err := b.jobFamily(c, spec.Key{})
	if err != nil {
		return nil, nil, err
	}
	if f.Unfitted != nil {
		groups, err := catalogPlans(speedRows)
		return f.Unfitted, groups, err
	}
	rows, err := b.hundredRows()
	if err != nil {
		return nil, nil, err
	}
	p, _, err := f.Fit(ctx, perfmodel.Rows(rows))
	if err != nil {
		return nil, nil, unable(err.Error())
	}
	return p, batchesOf(rows[0].Config, speedRows), nil
}

// batchesOf returns n different batches of the job c on 8 to 1024 devices, data
// parallel and otherwise like c, so that every family covers them.
func batchesOf(c spec.Config, n int) []planGroup {
	return grouped(c, n, func(devices, n int) []spec.Plan {
		out := make([]spec.Plan, 0, n)
		for i := range n {
			p := c.Plan
			p.DP, p.TP, p.PP, p.MicroBatch, p.AccumSteps = devices, 1, 1, 1+i%64, 1+i/64
			out = append(out, p.Normal())
		}
		return out
	})
}

// speedModels and speedAccelerators have plans in catalogPlans.
var (
	speedModels       = []string{"Llama3-8B", "Llama3-70B", "GPT3-175B", "Qwen3-30B-A3B"}
	speedAccelerators = []string{"A100-80GB-SXM", "H100-80GB-SXM"}
)

// catalogPlans returns n different configurations of well known models.
func catalogPlans(n int) ([]planGroup, error) {
	var out []planGroup
	pairs := len(speedModels) * len(speedAccelerators)
	for _, name := range speedModels {
		m, err := catalog.Model(name)
		if err != nil {
			return nil, err
		}
		for _, name := range speedAccelerators {
			acc, err := catalog.Accelerator(name)
			if err != nil {
				return nil, err
			}
			node, ok := catalog.NodeFor(acc.Name)
			if !ok {
				return nil, fmt.Errorf("accuracy: the catalog has no machine with %s", acc.Name)
			}
			c := spec.Config{Model: m, Accelerator: acc, Link: node.Link, Framework: "Megatron Core@0.13"}
			out = append(out, plansOf(c, n/pairs)...)
		}
	}
	return out, nil
}

// plansOf returns n different plans for c on 8 to 1024 devices.
func plansOf(c spec.Config, n int) []planGroup { return grouped(c, n, plansFor) }

// grouped makes n plans in all, a group per number of devices.
func grouped(c spec.Config, n int, plans func(devices, n int) []spec.Plan) []planGroup {
	const sizes = 8
	var out []planGroup
	for i := range sizes {
		g := planGroup{config: c}
		devices := 8 << i
		g.config.Shape = spec.Packed(devices, 8)
		g.plans = plans(devices, n/sizes)
		out = append(out, g)
	}
	return out
}

// plansFor returns n different plans for devices, by enumerating degrees, batches
// and modes.
func plansFor(devices, n int) []spec.Plan {
	out := make([]spec.Plan, 0, n)
	for ga := 1; ; ga++ {
		for _, mb := range []int{1, 2, 4, 8} {
			for _, rec := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull} {
				for zero := range 4 {
					for tp := 1; tp <= 8; tp *= 2 {
						for pp := 1; pp <= 8 && tp*pp <= devices; pp *= 2 {
							if len(out) == n {
								return out
							}
							out = append(out, spec.Plan{DP: devices / tp / pp, TP: tp, PP: pp, MicroBatch: mb, AccumSteps: ga,
								ZeRO: zero, Recompute: rec, Precision: spec.BF16}.Normal())
						}
					}
				}
			}
		}
	}
}

// fitJob is a job type of Rubick's traces with at least fitRows rows.
const (
	fitJob  = "roberta"
	fitRows = 100
	fitRuns = 9
)

// hundredRows returns the rows of the timed fits.
func (b *Bench) hundredRows() ([]spec.Measurement, error) {
	all, err := b.dataset("rubick")
	if err != nil {
		return nil, err
	}
	var rows []spec.Measurement
	for _, m := range all {
		if m.Config.Model.Name == fitJob && perfmodel.Usable(m) {
			rows = append(rows, m)
		}
	}
	if rows = perfmodel.MergeRepeats(rows); len(rows) < fitRows {
		return nil, fmt.Errorf("accuracy: data/rubick has %d rows of %s, want at least %d", len(rows), fitJob, fitRows)
	}
	return rows[:fitRows], nil
}

// fitTime takes the processor time: the median of several fits, each on one processor.
func fitTime(ctx context.Context, b *Bench, c Contender) (Result, error) {
	f, err := b.jobFamily(c, spec.Key{})
	if err != nil {
		return Result{}, err
	}
	if f.Fit == nil {
		return Result{}, unablef("is not fitted")
	}
	rows, err := b.hundredRows()
	if err != nil {
		return Result{}, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var secs []float64
	for range fitRuns {
		cold, err := b.jobFamily(c, spec.Key{}) // a family may keep its last fit
		if err != nil {
			return Result{}, err
		}
		start := cpuSec()
		_, _, err = cold.Fit(ctx, perfmodel.Rows(rows))
		switch {
		case errors.Is(err, perfmodel.ErrTooFewPoints), errors.Is(err, perfmodel.ErrNotCovered):
			return Result{}, unable(err.Error())
		case err != nil:
			return Result{}, err
		}
		secs = append(secs, cpuSec()-start)
	}
	out := Result{Standing: LeftOut, Figures: []Figure{
		{Name: "fit of 100 rows", Value: stats.Median(secs), Unit: "s", Must: Limit{AtMost: 0.050}, Aim: Limit{AtMost: 0.020}},
	}}
	if f.Condition == nil || f.Unfitted == nil {
		return out, nil
	}
	for _, large := range []struct {
		rows      int
		must, aim float64
	}{{300, 0.150, 0.050}, {3000, 2, 0.5}} {
		rows, err := siteRows(ctx, f.Unfitted, large.rows)
		if err != nil {
			return Result{}, err
		}
		start := cpuSec()
		if _, err := f.Condition(ctx, rows); err != nil {
			return Result{}, err
		}
		out.Figures = append(out.Figures, Figure{Name: fmt.Sprintf("%d rows of a site", large.rows), Value: cpuSec() - start, Unit: "s",
			Must: Limit{AtMost: large.must}, Aim: Limit{AtMost: large.aim}})
	}
	return out, nil
}

// siteRows returns rows of one model and machine that differ from p's predictions, smoothly and at random.
func siteRows(ctx context.Context, p perfmodel.Predictor, n int) ([]spec.Measurement, error) {
	groups, err := catalogPlans(speedRows)
	if err != nil {
		return nil, err
	}
	groups = groups[:8] // of one model and machine
	r := rand.New(rand.NewPCG(uint64(n), 0))
	var rows []spec.Measurement
	for len(rows) < n {
		g := groups[r.IntN(len(groups))]
		c := g.config
		c.Plan = g.plans[r.IntN(len(g.plans))]
		pred, err := p.Predict(ctx, c)
		if errors.Is(err, perfmodel.ErrNotCovered) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sec, _, _ := pred.StepSec(c.Plan.GlobalBatch())
		off := 0.2 + 0.1*math.Sin(float64(c.Plan.TP)) + 0.03*r.NormFloat64()
		rows = append(rows, spec.Measurement{Config: c, Outcome: spec.OK, StepSec: []float64{sec * math.Exp(off)}})
	}
	return rows, nil
}
