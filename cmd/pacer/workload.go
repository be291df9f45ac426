package main

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Flags that take a part of a workload and offer it faster or slower.
var (
	windowFlag    = &cli.StringFlag{Name: "window", Usage: "`A-B`: jobs number A to B in order of submission, from 0, or times such as 1d-8d (default: all)"}
	loadScaleFlag = &cli.Float64Flag{Name: "load-scale", Value: 1, Usage: "divide the times between submissions by `X`"}
)

// loadWorkload reads FILE[:FORMAT], or makes synthetic[:OPTIONS]. It returns
// what the workload is called.
func loadWorkload(c *cli.Context, arg string) (w datasets.Workload, name string, err error) {
	if text, ok := syntheticOptions(arg); ok {
		w, err = makeWorkload(c, text)
		return w, arg, err
	}
	path, format := splitFormat(arg)
	if format != "" && !slices.Contains(datasets.WorkloadFormats(), format) {
		return w, path, notBuilt("workload format", format, datasets.WorkloadFormats(), "dl2")
	}
	w, err = datasets.OpenWorkload(c.Context, path, format)
	return w, path, err
}

// syntheticOptions returns what follows "synthetic:"; a file of that name comes
// first.
func syntheticOptions(arg string) (string, bool) {
	kind, text, _ := strings.Cut(arg, ":")
	if _, err := os.Stat(arg); err == nil || kind != "synthetic" {
		return "", false
	}
	return text, true
}

// makeWorkload makes jobs of the options in text, from --seed. fit=FILE[:FORMAT]
// among them stands for those of jobs like the file's, which others change.
func makeWorkload(c *cli.Context, text string) (datasets.Workload, error) {
	w := datasets.Workload{Format: "synthetic"}
	var o synthetic.Options
	items := strings.Split(text, ",")
	if i := slices.IndexFunc(items, func(s string) bool { return strings.HasPrefix(s, "fit=") }); i >= 0 {
		trace, _, err := loadWorkload(c, strings.TrimPrefix(items[i], "fit="))
		if err != nil {
			return w, err
		}
		if o, err = synthetic.Fit(trace.Jobs); err != nil {
			return w, usagef("simulate: --workload: %w", err)
		}
		w.Warnings, w.Bad = trace.Warnings, trace.Bad
		items = slices.Delete(items, i, i+1)
	}
	o.Seed = seed(c)
	err := o.Set(strings.Join(items, ","))
	if err == nil {
		w.Jobs, err = synthetic.Workload(o)
	}
	if err != nil {
		return w, usagef("simulate: --workload: %w", err)
	}
	return w, nil
}

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
