package accuracy

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Sia's profiles: a cell is a model on a type of GPU. A point of a cell is the mean
// of the rows with one number of GPUs, number of nodes and batch per GPU. A family
// is fitted to some points of a cell and predicts the others. The figure is the mean
// over cells of their mean errors.

func cellProtocols() []Protocol {
	return []Protocol{
		{Name: "sia-folds", Doc: "data/sia, 30 cells: 5-fold cross-validation",
			run: cells(foldsOf, LeftOut, Limit{AtMost: 0.10}, Limit{AtMost: 0.07})},
		{Name: "sia-beyond-4", Doc: "data/sia, 24 cells: fitted to points of at most 4 GPUs, scored beyond",
			run: cells(beyondFour, LeftOut, Limit{AtMost: 0.16}, Limit{AtMost: 0.12})},
		{Name: "sia-bootstrap", Doc: "data/sia, 30 cells: fitted to points of 1 GPU and one of 2, scored beyond",
			run: cells(bootstrap, LeftOut, Limit{AtMost: 0.18}, Limit{AtMost: 0.15})},
		{Name: "sia-in-sample", Doc: "data/sia, 30 cells: scored on the fitted points, as the authors' own figure is; not accuracy",
			run: cells(fitted, InSample, Limit{}, Limit{})},
	}
}

// siaTypes are the types of GPU, by the names of their files.
var siaTypes = []string{"aws", "rtx", "dgx-ext", "azure", "quad"}

// split is a set of points to fit and one to predict.
type split struct{ fit, test []spec.Measurement }

// cells returns the run of a protocol that predicts every cell by the given splits.
func cells(splits func(points []spec.Measurement, seed uint64) []split, as Standing, must, aim Limit) func(context.Context, *Bench, Contender) (Result, error) {
	return func(ctx context.Context, b *Bench, c Contender) (Result, error) {
		all, err := b.siaCells()
		if err != nil {
			return Result{}, err
		}
		if c.Fit == nil {
			return Result{}, unablef("is not fitted")
		}
		predictions, err := b.predictSplits(ctx, c, all, func(one cell) []split { return splits(one.points, b.Seed) })
		if err != nil {
			return Result{}, err
		}
		r := scored(predictions)
		r.Standing = as
		means := over(r.Parts, func(s Summary) float64 { return s.Mean })
		r.Figures = []Figure{
			{Name: "mean of cells", Value: mean(means), Unit: "1", Must: must, Aim: aim},
			{Name: "median of cells", Value: stats.Median(means), Unit: "1"},
			{Name: "cells", Value: float64(len(means)), Unit: "cells"},
		}
		return r, nil
	}
}

// predictSplits predicts every split of every cell, by the family of its job.
func (b *Bench) predictSplits(ctx context.Context, c Contender, all []cell, splits func(cell) []split) ([]prediction, error) {
	return b.predictParts(len(all), func(i int) ([]prediction, error) {
		f, err := b.jobFamily(c, all[i].points[0].Config.Key())
		if err != nil {
			return nil, err
		}
		var out []prediction
		for _, s := range splits(all[i]) {
			got, err := predictSplit(ctx, f, s, all[i].name)
			if err != nil {
				return nil, err
			}
			out = append(out, got...)
		}
		return out, nil
	})
}

// predictSplit fits f and predicts the rest. A split that cannot be fitted is refused.
func predictSplit(ctx context.Context, f perfmodel.Family, s split, cell string) ([]prediction, error) {
	qs := targets(s.test, func(*spec.Measurement) string { return cell })
	p, _, err := f.Fit(ctx, perfmodel.Rows(s.fit))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return refuseAll(qs, err), nil
	}
	return predictAll(ctx, p, qs)
}

// cell is a model on a type of GPU, which is fitted separately.
type cell struct {
	name   string
	points []spec.Measurement
}

// siaCells returns the 30 cells, by model and in the order of siaTypes.
func (b *Bench) siaCells() ([]cell, error) {
	rows, err := b.dataset("sia")
	if err != nil {
		return nil, err
	}
	groups := map[string][]spec.Measurement{}
	var models []string
	for _, m := range rows {
		gpu := strings.TrimPrefix(m.Source, "sia/")
		name := m.Config.Model.Name + " " + gpu
		if slices.Contains(siaTypes, gpu) && !slices.Contains(models, m.Config.Model.Name) {
			models = append(models, m.Config.Model.Name)
		}
		groups[name] = append(groups[name], m)
	}
	slices.Sort(models)
	var out []cell
	for _, model := range models {
		for _, gpu := range siaTypes {
			name := model + " " + gpu
			if len(groups[name]) == 0 {
				return nil, fmt.Errorf("accuracy: data/sia has no row of %s", name)
			}
			out = append(out, cell{name, points(groups[name])})
		}
	}
	return out, nil
}

// points averages rows with the same numbers of GPUs and nodes and the same batch,
// whatever the GPUs per node. The resulting points spread GPUs evenly.
func points(rows []spec.Measurement) []spec.Measurement {
	type at struct{ nodes, gpus, batch int }
	groups := map[at][]spec.Measurement{}
	for _, m := range rows {
		k := at{m.Config.Shape.Nodes(), m.Config.Shape.Total(), m.Config.Plan.MicroBatch}
		groups[k] = append(groups[k], m)
	}
	var out []spec.Measurement
	for k, g := range groups {
		m := g[0]
		m.Config.Shape = even(k.gpus, k.nodes)
		m.StepSec = []float64{meanOf(g, spec.Measurement.MedianStepSec)}
		m.PhaseSec = map[string]float64{}
		for phase := range g[0].PhaseSec {
			m.PhaseSec[phase] = meanOf(g, func(m spec.Measurement) float64 { return m.PhaseSec[phase] })
		}
		out = append(out, m)
	}
	slices.SortFunc(out, comparePoints)
	return out
}

func comparePoints(a, b spec.Measurement) int {
	return cmp.Or(cmp.Compare(gpus(&a), gpus(&b)), cmp.Compare(a.Config.Shape.Nodes(), b.Config.Shape.Nodes()),
		cmp.Compare(a.Config.Plan.MicroBatch, b.Config.Plan.MicroBatch))
}

func gpus(m *spec.Measurement) int { return m.Config.Shape.Total() }

func meanOf(rows []spec.Measurement, value func(spec.Measurement) float64) float64 {
	v := make([]float64, len(rows))
	for i, m := range rows {
		v[i] = value(m)
	}
	return stat.Mean(v, nil)
}

// even spreads n devices over nodes.
func even(n, nodes int) spec.Shape {
	each := make([]int, nodes)
	for i := range n {
		each[i%nodes]++
	}
	return spec.NewShape(each...)
}

// foldsOf splits points into 5 random folds, each predicted once.
func foldsOf(points []spec.Measurement, seed uint64) []split {
	const folds = 5
	out := make([]split, folds)
	for i, at := range stream(seed, "folds", points[0].Config.Key().String()).Perm(len(points)) {
		for k := range out {
			if i%folds == k {
				out[k].test = append(out[k].test, points[at])
			} else {
				out[k].fit = append(out[k].fit, points[at])
			}
		}
	}
	return out
}

// fitted predicts the fitted points.
func fitted(points []spec.Measurement, _ uint64) []split { return []split{{points, points}} }

// beyondFour fits points of up to 4 GPUs and predicts larger ones; nil without any.
func beyondFour(points []spec.Measurement, _ uint64) []split {
	var s split
	for _, m := range points {
		if gpus(&m) <= 4 {
			s.fit = append(s.fit, m)
		} else {
			s.test = append(s.test, m)
		}
	}
	if len(s.test) == 0 {
		return nil
	}
	return []split{s}
}

// bootstrap fits the points of 1 GPU and the smallest batch on 2 GPUs of one
// node, and predicts points of more than 2 GPUs.
func bootstrap(points []spec.Measurement, _ uint64) []split {
	var s split
	pair := -1
	for i, m := range points {
		switch {
		case gpus(&m) == 1:
			s.fit = append(s.fit, m)
		case gpus(&m) > 2:
			s.test = append(s.test, m)
		case m.Config.Shape.Nodes() == 1 && (pair < 0 || m.Config.Plan.MicroBatch < points[pair].Config.Plan.MicroBatch):
			pair = i
		}
	}
	if pair >= 0 {
		s.fit = append(s.fit, points[pair])
	}
	return []split{s}
}

// stream returns the random numbers of a seed and several names.
func stream(seed uint64, names ...string) *rand.Rand {
	return stats.Stream(seed, strings.Join(names, "\x00")+"\x00")
}
