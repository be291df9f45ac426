package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Flags that take a part of a workload and offer it faster or slower.
var (
	windowFlag    = &cli.StringFlag{Name: "window", Usage: "`A-B`: jobs number A to B in order of submission, from 0, or times such as 1d-8d (default: all)"}
	loadScaleFlag = &cli.Float64Flag{Name: "load-scale", Value: 1, Usage: "divide the times between submissions by `X`"}
)

// cutWorkload returns the jobs that these flags leave, the window first.
func cutWorkload(c *cli.Context, jobs []spec.Job) ([]spec.Job, error) {
	w, err := datasets.ParseWindow(c.String(windowFlag.Name))
	if err != nil {
		return nil, usagef("simulate: --window: %w", err)
	}
	part := w.Cut(jobs)
	if len(part) == 0 {
		return nil, usagef("simulate: none of the %d jobs is in --window %s; the last is submitted after %v", len(jobs), w, jobs[len(jobs)-1].Submit)
	}
	if part, err = datasets.ScaleLoad(part, c.Float64(loadScaleFlag.Name)); err != nil {
		return nil, usagef("simulate: --load-scale: %w", err)
	}
	return part, nil
}
