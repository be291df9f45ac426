package schedulertest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// World says what may be granted and how fast it runs: a table of
// configurations, each with its steps per second. It is a perfmodel.Predictor
// of exactly these.
type World struct {
	order []spec.Config
	rates map[worldKey]float64
	parts map[[2]string]float64 // of its speed that a model keeps beside another
}

type worldKey struct {
	spec.Key
	plan  spec.Plan
	shape spec.Shape
}

// keyOf is what a look-up must agree on; where the replicas are does not matter to jobs
// with parameter servers.
func keyOf(c spec.Config) worldKey {
	if c.Plan.ParamServers > 0 {
		c.Shape = spec.Shape{}
	}
	return worldKey{c.Key(), c.Plan.Normal(), c.Shape}
}

// Add lets model run plan on shape of an accelerator at so many steps per
// second.
func (w *World) Add(model, accelerator string, plan spec.Plan, shape spec.Shape, stepsPerSec float64) {
	c := spec.Config{Model: spec.Model{Name: model}, Accelerator: spec.Accelerator{Name: accelerator}, Plan: plan.Normal(), Shape: shape}
	if w.rates == nil {
		w.rates = map[worldKey]float64{}
	}
	if _, ok := w.rates[keyOf(c)]; !ok {
		w.order = append(w.order, c)
	}
	w.rates[keyOf(c)] = stepsPerSec
}

// Allows implements scheduler.ServerSpace.
func (w *World) Allows(c spec.Config) bool {
	_, ok := w.rates[keyOf(c)]
	return ok
}

// Pair lets jobs of two models share devices, the first at a part of its speed
// alone, the other at its own.
func (w *World) Pair(a, b string, partA, partB float64) {
	if w.parts == nil {
		w.parts = map[[2]string]float64{}
	}
	w.parts[[2]string{a, b}] = partA
	w.parts[[2]string{b, a}] = partB
}

// Beside implements scheduler.Colocator.
func (w *World) Beside(a, b spec.Config) (float64, error) {
	part, ok := w.parts[[2]string{a.Model.Name, b.Model.Name}]
	if !ok {
		return 0, fmt.Errorf("schedulertest: %s beside %s: %w", a.Model.Name, b.Model.Name, perfmodel.ErrNotCovered)
	}
	p, err := w.Predict(context.Background(), a)
	return part * p.Throughput, err
}

// Configs returns what may be granted, in the order it was added.
func (w *World) Configs() []spec.Config { return slices.Clone(w.order) }

// Predict implements perfmodel.Predictor.
func (w *World) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	rate, ok := w.rates[keyOf(c)]
	if !ok {
		return spec.Prediction{}, fmt.Errorf("schedulertest: %s, plan %s on %s: %w", c.Key(), c.Plan, c.Shape.Devices, perfmodel.ErrNotCovered)
	}
	return spec.Prediction{Throughput: rate * float64(c.Plan.GlobalBatch()), By: "world"}, nil
}

// Truth is how fast jobs run in w.
func (w *World) Truth(c spec.Cluster) sim.Truth {
	return sim.Predicted{Predictor: w, Cluster: c, Pairs: w}
}

// Oracle is a belief about w: its keys are known exactly, each speed is wrong by
// its own log-normal factor of deviation sigma, the same for the same seed. What
// jobs lose that share devices is known exactly.
func (w *World) Oracle(sigma float64, seed uint64) *Oracle {
	believed := w.wrong(sigma, seed)
	return &Oracle{planner.New(believed, planner.Options{Space: planner.NewMeasured(w.order)}), believed, w}
}

// wrong returns w with speeds that are wrong.
func (w *World) wrong(sigma float64, seed uint64) *World {
	out := &World{parts: w.parts}
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range w.order {
		out.Add(c.Model.Name, c.Accelerator.Name, c.Plan, c.Shape, w.rates[keyOf(c)]*math.Exp(sigma*rng.NormFloat64()))
	}
	return out
}

// Oracle is a planner that also knows of jobs that share devices, and what jobs with
// parameter servers may be granted.
type Oracle struct {
	*planner.Planner
	scheduler.Colocator
	scheduler.ServerSpace
}

// OnePlan is the plan of a World that does not care about plans: global batch
// 1, tensor parallel over all devices.
func OnePlan(devices int) spec.Plan { return spec.Plan{TP: devices}.Normal() }
