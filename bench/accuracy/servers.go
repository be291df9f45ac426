package accuracy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// DL2's measurements: the speed of a job by workers and parameter servers, at a
// fixed global batch.

func serverProtocols() []Protocol {
	return []Protocol{{
		Name: "dl2",
		Doc: "data/dl2: speed with parameter servers, fitted to 10 random points of a model and scored on its others; 20 draws; " +
			"without the nine rows of speed 0 and the one with an idle worker",
		run: serverSpeeds,
	}}
}

const (
	serverPoints = 10
	serverDraws  = 20
)

func serverSpeeds(ctx context.Context, b *Bench, c Contender) (Result, error) {
	if c.Fit == nil {
		return Result{}, unablef("is not fitted")
	}
	jobs, err := b.serverJobs()
	if err != nil {
		return Result{}, err
	}
	predictions, err := b.predictSplits(ctx, c, jobs, func(job cell) (draws []split) {
		for draw := range serverDraws {
			draws = append(draws, drawServers(job.points, b.Seed, job.name, draw))
		}
		return draws
	})
	if err != nil {
		return Result{}, err
	}
	r := Result{Standing: LeftOut, Summary: summarizeBy(predictions, (*prediction).rateError), Parts: byPart(predictions, (*prediction).rateError),
		Refusals: refusals(predictions)}
	r.Figures = []Figure{fraction("mean of models", mean(over(r.Parts, func(s Summary) float64 { return s.Mean })), 0.08, 0.05)}
	return r, nil
}

// serverJobs returns the usable points of each model.
func (b *Bench) serverJobs() ([]cell, error) {
	all, err := b.dataset("dl2")
	if err != nil {
		return nil, err
	}
	jobs := perfmodel.GroupByKey(slices.DeleteFunc(slices.Clone(all), func(m spec.Measurement) bool { return !perfmodel.Usable(m) }))
	var out []cell
	for _, key := range slices.SortedFunc(maps.Keys(jobs), perfmodel.CompareKeys) {
		slices.SortFunc(jobs[key], compareServers)
		out = append(out, cell{key.Model, jobs[key]})
	}
	return out, nil
}

// drawServers picks random points to fit, and predicts the others.
func drawServers(points []spec.Measurement, seed uint64, model string, draw int) (s split) {
	for i, at := range stream(seed, "servers", model, strconv.Itoa(draw)).Perm(len(points)) {
		if i < serverPoints {
			s.fit = append(s.fit, points[at])
		} else {
			s.test = append(s.test, points[at])
		}
	}
	return s
}

func compareServers(a, b spec.Measurement) int {
	p, q := a.Config.Plan, b.Config.Plan
	return cmp.Or(cmp.Compare(p.ParamServers, q.ParamServers), cmp.Compare(p.DP, q.DP), cmp.Compare(a.Origin, b.Origin))
}
