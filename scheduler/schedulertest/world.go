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

// World is a table of the configurations that may be granted, each with its steps per
// second. It is a perfmodel.Predictor of exactly these.
type World struct {
	order []spec.Config
	rates map[worldKey]float64
	parts map[[2]string]float64 // by two models, the relative speed of the first when they share devices
}

type worldKey struct {
	spec.Key
	plan  spec.Plan
	shape spec.Shape
}

// keyOf returns the key of a configuration. With parameter servers the shape does not
// matter.
func keyOf(c spec.Config) worldKey {
	if c.Plan.ParamServers > 0 {
		c.Shape = spec.Shape{}
	}
	return worldKey{c.Key(), c.Plan.Normal(), c.Shape}
}

// Add adds a configuration with its speed.
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

// Pair allows jobs of two models to share devices, at the given parts of their speeds
// alone.
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

// Configs returns the configurations in the order of Add.
func (w *World) Configs() []spec.Config { return slices.Clone(w.order) }

// Predict implements perfmodel.Predictor.
func (w *World) Predict(_ context.Context, c spec.Config) (spec.Prediction, error) {
	rate, ok := w.rates[keyOf(c)]
	if !ok {
		return spec.Prediction{}, fmt.Errorf("schedulertest: %s, plan %s on %s: %w", c.Key(), c.Plan, c.Shape.Devices, perfmodel.ErrNotCovered)
	}
	return spec.Prediction{Throughput: rate * float64(c.Plan.GlobalBatch()), By: "world"}, nil
}

// Truth returns the truth with the speeds of w.
func (w *World) Truth(c spec.Cluster) sim.Truth {
	return sim.Predicted{Predictor: w, Cluster: c, Pairs: w}
}

// Oracle returns an oracle of w. It has the same configurations; each speed is wrong by
// a log-normal factor of deviation sigma, drawn from seed. The relative speeds of jobs
// that share devices are exact.
func (w *World) Oracle(sigma float64, seed uint64) *Oracle {
	estimated := w.wrong(sigma, seed)
	return &Oracle{planner.New(estimated, planner.Options{Space: planner.NewMeasured(w.order)}), estimated, w}
}

// wrong returns w with random errors of the speeds.
func (w *World) wrong(sigma float64, seed uint64) *World {
	out := &World{parts: w.parts}
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range w.order {
		out.Add(c.Model.Name, c.Accelerator.Name, c.Plan, c.Shape, w.rates[keyOf(c)]*math.Exp(sigma*rng.NormFloat64()))
	}
	return out
}

// Oracle is a planner with the speeds of jobs that share devices, and the configurations
// of jobs with parameter servers.
type Oracle struct {
	*planner.Planner
	scheduler.Colocator
	scheduler.ServerSpace
}

// OnePlan is the plan for a World in which plans do not matter: global batch 1, tensor
// parallel over all devices.
func OnePlan(devices int) spec.Plan { return spec.Plan{TP: devices}.Normal() }
