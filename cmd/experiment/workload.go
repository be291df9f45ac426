package experiment

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/datasets/trace"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// loadWorkload reads FILE[:FORMAT], or makes synthetic[:OPTIONS]. It returns what the
// workload is called.
func (o *Options) loadWorkload(ctx context.Context, arg string) (w trace.Workload, name string, err error) {
	if text, ok := syntheticOptions(arg); ok {
		w, err = o.makeWorkload(ctx, text)
		return w, arg, err
	}
	path, format := splitFormat(arg)
	if name, _, _ := strings.Cut(format, "="); format != "" && !slices.Contains(trace.FormatNames(), name) {
		return w, path, invalidBecause("workload", arg,
			fmt.Errorf("workload format %q is unknown, want one of %s", name, strings.Join(trace.FormatNames(), ", ")))
	}
	w, err = trace.Open(ctx, path, format)
	return w, path, err
}

// splitFormat splits FILE:FORMAT. A colon inside a path that exists as a whole belongs
// to the path.
func splitFormat(arg string) (path, format string) {
	if _, err := os.Stat(arg); err == nil {
		return arg, ""
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 {
		return arg[:i], arg[i+1:]
	}
	return arg, ""
}

// syntheticOptions returns the text after "synthetic:". A file of that name comes first.
func syntheticOptions(arg string) (string, bool) {
	kind, text, _ := strings.Cut(arg, ":")
	if _, err := os.Stat(arg); err == nil || kind != "synthetic" {
		return "", false
	}
	return text, true
}

// makeWorkload draws jobs from the seed. fit=FILE[:FORMAT] in text stands for the options
// of jobs like the file's, which further options change; resample=FILE[:FORMAT] for its run
// times alone. dl2=PRESET in front makes jobs with parameter servers, ones=JOBS those of ONES.
func (o *Options) makeWorkload(ctx context.Context, text string) (trace.Workload, error) {
	w := trace.Workload{Format: "synthetic"}
	seed := o.Seed
	if options, ok := strings.CutPrefix(text, "dl2="); ok {
		w.Format = "dl2"
		made, err := trace.ParseDL2Options(options)
		made.Seed = seed
		return generate(w, made, err, trace.GenerateDL2)
	}
	if options, ok := strings.CutPrefix(text, "ones="); ok {
		w.Format = "pollux"
		made, err := trace.ParseOnesOptions(options)
		made.Seed = seed
		return generate(w, made, err, trace.GenerateOnes)
	}
	var made synthetic.Options
	items := strings.Split(text, ",")
	fit, items, err := take(items, "fit=")
	if err != nil {
		return w, err
	}
	models, items, err := take(items, "models=")
	if err != nil {
		return w, err
	}
	resample, items, err := take(items, "resample=")
	if err != nil {
		return w, err
	}
	if fit != "" {
		source, _, err := o.loadWorkload(ctx, fit)
		if err != nil {
			return w, err
		}
		if made, err = synthetic.Fit(source.Jobs); err != nil {
			return w, invalidBecause("workload", fit, fmt.Errorf("{workload} synthetic: %w", err))
		}
		w.Warnings, w.Bad = source.Warnings, source.Bad
	}
	if resample != "" {
		source, _, err := o.loadWorkload(ctx, resample)
		if err != nil {
			return w, err
		}
		if made.Seconds, err = synthetic.Resample(source.Jobs); err != nil {
			return w, invalidBecause("workload", resample, fmt.Errorf("{workload} synthetic: %w", err))
		}
	}
	if models != "" {
		if err := o.chooseModels(ctx, models, &made); err != nil {
			return w, err
		}
	}
	made.Seed = seed
	return generate(w, made, made.Set(strings.Join(items, ",")), synthetic.Workload)
}

// take removes the item with a prefix from items and returns its value, "" if there is
// none.
func take(items []string, prefix string) (value string, rest []string, err error) {
	for _, item := range items {
		text, ok := strings.CutPrefix(item, prefix)
		switch {
		case !ok:
			rest = append(rest, item)
		case text == "":
			return "", nil, invalidBecause("workload", item, fmt.Errorf("{workload} synthetic: %s has no value", strings.TrimSuffix(prefix, "=")))
		case value != "":
			return "", nil, invalidBecause("workload", item, fmt.Errorf("{workload} synthetic: %s is given twice", strings.TrimSuffix(prefix, "=")))
		default:
			value = text
		}
	}
	return value, rest, nil
}

// generate makes the jobs of options, unless reading those ended with err.
func generate[T any](w trace.Workload, options T, err error, jobs func(T) ([]spec.Job, error)) (trace.Workload, error) {
	if err == nil {
		w.Jobs, err = jobs(options)
	}
	if err != nil {
		return w, invalidBecause("workload", "synthetic", fmt.Errorf("{workload} synthetic: %w", err))
	}
	return w, nil
}

// cutWorkload returns the jobs in the window, then scales the load.
func (o *Options) cutWorkload(jobs []spec.Job) ([]spec.Job, error) {
	if len(jobs) == 0 {
		return nil, invalidBecause("workload", o.Workload, fmt.Errorf("the workload has no jobs; of a synthetic one another {seed} or more jobs= has some"))
	}
	w, err := trace.ParseWindow(o.Window)
	if err != nil {
		return nil, invalidBecause("window", o.Window, fmt.Errorf("{window}: %w", err))
	}
	part := w.Cut(jobs)
	if len(part) == 0 {
		return nil, invalidBecause("window", o.Window, fmt.Errorf("none of the %d jobs is in {window} %s; the last is submitted after %v", len(jobs), w, jobs[len(jobs)-1].Submit))
	}
	if part, err = trace.ScaleLoad(part, number(o.LoadScale, 1)); err != nil {
		return nil, invalidBecause("load-scale", o.LoadScale, fmt.Errorf("{load_scale}: %w", err))
	}
	return part, nil
}

// chooseModels has synthetic jobs train models, named with + between them. Each submits
// the plan that the analytic model ranks first on the cluster's first accelerator type.
// measured[:A+B] stands for models of the measured table, see chooseMeasured.
func (o *Options) chooseModels(ctx context.Context, names string, made *synthetic.Options) error {
	if o.Cluster == "" && len(o.Given.Cluster.Groups) == 0 {
		return invalidBecause("workload", o.Workload, fmt.Errorf("{workload} synthetic:models=%s: the plans of the jobs depend on {cluster}, which is missing", names))
	}
	if word, some, _ := strings.Cut(names, ":"); word == measuredModels {
		return o.chooseMeasured(ctx, some, made)
	}
	for _, name := range strings.Split(names, "+") {
		m, err := catalog.Model(name)
		if err != nil {
			return err
		}
		made.Models = append(made.Models, m)
	}
	cluster, err := o.cluster()
	if err != nil {
		return err
	}
	analytic, err := query.Analytic()
	if err != nil {
		return err
	}
	g := &cluster.Groups[0]
	if g.Accelerator.Name == catalog.Unnamed {
		return invalidBecause("cluster", o.Cluster, fmt.Errorf("{cluster} %s has no type of device, on which the plans of synthetic:models=%s depend: want one such as 8x8xH100", o.Cluster, names))
	}
	made.Plan = SubmittedPlan(ctx, planner.New(analytic, planner.Options{}), planner.Request{
		Accelerator: g.Accelerator, Link: g.Link, PerNode: g.Devices, NodeHostBytes: g.HostBytes,
	})
	return nil
}

// submittedBatch is the global batch of plans that synthetic jobs submit.
const submittedBatch = 64

// SubmittedPlan returns what a careful user would submit on devices like those of r: the
// best predicted plan of a model on a number of them, its step time in seconds, and
// false if none fits.
func SubmittedPlan(ctx context.Context, p *planner.Planner, r planner.Request) func(spec.Model, int) (spec.Plan, float64, bool) {
	return func(m spec.Model, devices int) (spec.Plan, float64, bool) {
		r := r
		r.Model, r.Devices, r.GlobalBatch = m, devices, submittedBatch
		best, err := p.Best(ctx, r)
		if err != nil {
			return spec.Plan{}, 0, false
		}
		sec, _, _ := best.Prediction.StepSec(r.GlobalBatch)
		return best.Config.Plan, sec, true
	}
}
