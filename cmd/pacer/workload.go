package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
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
	if name, _, _ := strings.Cut(format, "="); format != "" && !slices.Contains(datasets.WorkloadFormats(), name) {
		return w, path, notBuilt("workload format", name, datasets.WorkloadFormats())
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
// among them stands for those of jobs like the file's, which others change;
// dl2=PRESET in front for jobs with parameter servers, ones=JOBS for those of ONES.
func makeWorkload(c *cli.Context, text string) (datasets.Workload, error) {
	w := datasets.Workload{Format: "synthetic"}
	if options, ok := strings.CutPrefix(text, "dl2="); ok {
		w.Format = "dl2"
		o, err := datasets.ParseDL2Options(options)
		o.Seed = seed(c)
		return made(w, o, err, datasets.GenerateDL2)
	}
	if options, ok := strings.CutPrefix(text, "ones="); ok {
		w.Format = "pollux"
		o, err := datasets.ParseOnesOptions(options)
		o.Seed = seed(c)
		return made(w, o, err, datasets.GenerateOnes)
	}
	var o synthetic.Options
	items := strings.Split(text, ",")
	for _, key := range []string{"fit=", "models="} {
		if n := len(slices.DeleteFunc(slices.Clone(items), func(s string) bool { return !strings.HasPrefix(s, key) })); n > 1 {
			return w, usagef("simulate: --workload: synthetic: %s is given twice", strings.TrimSuffix(key, "="))
		}
	}
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
	if i := slices.IndexFunc(items, func(s string) bool { return strings.HasPrefix(s, "models=") }); i >= 0 {
		if err := chooseModels(c, strings.TrimPrefix(items[i], "models="), &o); err != nil {
			return w, err
		}
		items = slices.Delete(items, i, i+1)
	}
	o.Seed = seed(c)
	err := o.Set(strings.Join(items, ","))
	return made(w, o, err, synthetic.Workload)
}

// made makes the jobs of options, unless these are wrong in that reading them ended
// with err.
func made[Options any](w datasets.Workload, o Options, err error, jobs func(Options) ([]spec.Job, error)) (datasets.Workload, error) {
	if err == nil {
		w.Jobs, err = jobs(o)
	}
	if err != nil {
		return w, usagef("simulate: --workload: %w", err)
	}
	return w, nil
}

// cutWorkload returns the jobs that these flags leave, the window first.
func cutWorkload(c *cli.Context, jobs []spec.Job) ([]spec.Job, error) {
	if len(jobs) == 0 {
		return nil, usagef("simulate: the workload has no jobs; of a synthetic one another --seed or more jobs= has some")
	}
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

// chooseModels has synthetic jobs train models, named with + between them, by plans
// that careful owners would submit: the best on the first type of the cluster, as the
// analytic model has it.
func chooseModels(c *cli.Context, names string, o *synthetic.Options) error {
	for _, name := range strings.Split(names, "+") {
		m, err := catalog.Model(name)
		if err != nil {
			return err
		}
		o.Models = append(o.Models, m)
	}
	if c.String("cluster") == "" {
		return usagef("simulate: --workload synthetic:models=%s: the plans of the jobs depend on --cluster, which is missing", names)
	}
	cluster, err := readCluster(c.String("cluster"))
	if err != nil {
		return err
	}
	analytic, err := ask.Analytic()
	if err != nil {
		return err
	}
	g := &cluster.Groups[0]
	o.Plan = ownersPlan(c.Context, planner.New(analytic, planner.Options{}), planner.Request{
		Accelerator: g.Accelerator, Link: g.Link, PerNode: g.Devices, NodeHostBytes: g.HostBytes,
	})
	return nil
}

// ownersBatch is the favourite global batch of owners.
const ownersBatch = 64

// ownersPlan returns what a careful owner would submit on devices like those of r: the
// best believed plan for a model on some of them.
func ownersPlan(ctx context.Context, p *planner.Planner, r planner.Request) func(spec.Model, int) (spec.Plan, float64, bool) {
	return func(m spec.Model, devices int) (spec.Plan, float64, bool) {
		r := r
		r.Model, r.Devices, r.GlobalBatch = m, devices, ownersBatch
		best, err := p.Best(ctx, r)
		if err != nil {
			return spec.Plan{}, 0, false // does not fit on so few
		}
		sec, _, _ := best.Prediction.StepSec(r.GlobalBatch)
		return best.Config.Plan, sec, true
	}
}
