package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/plan"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/simulate"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler/report"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "fit, plan, curve and a comparison of policies on built-in data",
		Description: `Nothing is read from disk or network. The measurements of the first part are
this project's own, built in (datasets/measured); in the others models and
accelerators come from the catalog, speeds from the analytic model, jobs and noise
from --seed. The files it writes go to --out.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Value: "out/demo", Usage: "write the report into `DIR`", Category: command.CategoryOutput},
		},
		Before: command.NoArgs,
		Action: func(c *cli.Context) error {
			d, err := newDemo(c.Context, c.App.Writer, c.String("out"), command.Seed(c))
			if err != nil {
				return err
			}
			for _, step := range []func() error{d.fit, d.plan, d.curve, d.schedule} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// The requests of the demo.
const (
	demoModel       = "Llama3-8B"
	demoAccelerator = "H100"
	demoDevices     = 16
	demoBatch       = 128
	demoNoise       = 0.08 // standard deviation of log speed between truth and analytic model
	demoJobs        = 120
)

// demo is one run of the demo.
type demo struct {
	ctx      context.Context
	w        io.Writer
	out      string
	seed     uint64
	analytic perfmodel.Predictor
	planner  *planner.Planner
	request  planner.Request
}

func newDemo(ctx context.Context, w io.Writer, out string, seed uint64) (*demo, error) {
	a, err := query.Analytic()
	if err != nil {
		return nil, err
	}
	m, err := catalog.Model(demoModel)
	if err != nil {
		return nil, err
	}
	acc, err := catalog.Accelerator(demoAccelerator)
	if err != nil {
		return nil, err
	}
	node := query.NodeOf(acc)
	return &demo{ctx: ctx, w: w, out: out, seed: seed, analytic: a, planner: planner.New(a, planner.Options{}), request: planner.Request{
		Model: m, Accelerator: acc, Link: node.Link, PerNode: node.Devices, NodeHostBytes: node.HostBytes, Devices: demoDevices, GlobalBatch: demoBatch,
	}}, os.MkdirAll(out, 0o755)
}

func (d *demo) title(n int, text string) { fmt.Fprintf(d.w, "\n%d. %s\n\n", n, text) }

// noisy is the truth of the demo: the analytic model times a random factor for each
// configuration and seed.
type noisy struct {
	perfmodel.Predictor
	seed  uint64
	sigma float64
}

func (n noisy) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, err := n.Predictor.Predict(ctx, c)
	r := stats.Stream(n.seed, fmt.Sprint(c.Model.Name, c.Accelerator.Name, c.Plan.String(), c.Shape.Devices))
	p.Throughput *= math.Exp(n.sigma * r.NormFloat64())
	return p, err
}

func (d *demo) truth() noisy { return noisy{d.analytic, d.seed, demoNoise} }

func (d *demo) plan() error {
	d.title(2, "Rank the execution plans of a model without measurements")
	return plan.PrintRanking(d.ctx, d.w, d.planner, d.request, 5)
}

func (d *demo) curve() error {
	d.title(3, "Throughput added by each device")
	r := d.request
	r.Devices = 64
	return plan.PrintCurve(d.ctx, d.w, d.planner, r)
}

// schedule compares the policies on a synthetic workload.
func (d *demo) schedule() error {
	d.title(4, "Policies that choose plans and devices together")
	s, err := d.simulation()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "%d synthetic jobs on %s; ground truth: the analytic model with %.0f %% noise,\nestimate of the policies: the analytic model; start cost 60 s\n\n",
		len(s.Jobs), experiment.ClusterText(s.Cluster), 100*demoNoise)
	path := filepath.Join(d.out, "report.html")
	results, err := simulate.Page(d.ctx, s, path, versionString())
	if err != nil {
		return err
	}
	if err := report.WriteTable(d.w, report.SummarizeAll(results, s.Score)); err != nil {
		return err
	}
	fmt.Fprintln(d.w, "JCT: job completion time, from submission to finish; device-h: device-hours that jobs hold, starts included;\n"+
		"util: share of the cluster's devices held, mean over the makespan")
	fmt.Fprintf(d.w, "\nCharts of this comparison: %s (open it in a browser)\n", path)
	return nil
}

// demoModels are the models of the jobs.
var demoModels = []string{"BERT-large", "GPT-2 XL", "Llama2-7B", "Llama3-8B", "Llama2-13B"}

func (d *demo) simulation() (*experiment.Simulation, error) {
	var models []spec.Model
	for _, name := range demoModels {
		m, err := catalog.Model(name)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	jobs, err := synthetic.Workload(synthetic.Options{Seed: d.seed, Jobs: demoJobs, Models: models, Plan: experiment.SubmittedPlan(d.ctx, d.planner, d.request)})
	if err != nil {
		return nil, err
	}
	return experiment.New(d.ctx, experiment.Options{
		Workload: "synthetic", Cluster: "8x8xH100", Policy: "fifo,fifo-backfill,rubick,pacer,dl2", StartCost: "60", Seed: d.seed,
		Given: experiment.Given{
			Jobs:   jobs,
			Truth:  experiment.Predicted(fmt.Sprintf("analytic model with %.0f %% noise per configuration", 100*demoNoise), d.truth()),
			Belief: experiment.Predicted("analytic model", d.analytic),
		},
	})
}

// The first part of the demo.
const (
	demoSet    = "cpu-small"
	demoFit    = 8 // measurements fitted per model
	demoShown  = 3 // left-out measurements shown per model
	demoFamily = "hybrid"
)

// fit shows a performance model, fitted on a few measurements of each model,
// with its predictions of the other measurements.
func (d *demo) fit() error {
	d.title(1, fmt.Sprintf("Fit a performance model on %d measurements of each model, predict the others", demoFit))
	set, err := measured.Lookup(demoSet)
	if err != nil {
		return err
	}
	rows, err := importer.Measured(set)
	if err != nil {
		return err
	}
	fam, err := family.Lookup(demoFamily)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "%d measurements of %s\non a %s\n%s, %s\n\n", len(rows), set.Doc, set.Machine, set.Software, set.Date)
	keys := perfmodel.GroupByKey(rows)
	scores := [][]string{{"model", "measured", "fitted", "predicted", "mean error", "95th percentile", "in 90 % interval"}}
	shown := [][]string{{"left-out model", "plan", "measured s", "predicted s", "90 % interval", "error"}}
	for _, k := range slices.SortedFunc(maps.Keys(keys), perfmodel.CompareKeys) {
		score, examples, err := d.fitModel(fam, keys[k])
		if err != nil {
			return err
		}
		scores, shown = append(scores, score), append(shown, examples...)
	}
	if err := console.WriteTable(d.w, scores); err != nil {
		return err
	}
	fmt.Fprintln(d.w)
	if err := console.WriteTable(d.w, shown); err != nil {
		return err
	}
	var plans []string
	for _, line := range shown[1:] {
		plans = append(plans, line[1])
	}
	plan.PrintLegend(d.w, plans...)
	return nil
}

// fitModel fits one model and returns its line of the scores, and examples of its predictions,
// evenly spread over the rows it has not seen.
func (d *demo) fitModel(fam perfmodel.Family, rows []spec.Measurement) (score []string, examples [][]string, err error) {
	fitted, card, err := perfmodel.FitKey(d.ctx, fam, rows, perfmodel.FitOptions{MaxRows: demoFit})
	if err != nil {
		return nil, nil, err
	}
	score = []string{card.Model, strconv.Itoa(len(rows)), strconv.Itoa(card.NFit), strconv.Itoa(card.NHeldOut),
		number.Percent(card.MAPE), number.Percent(card.P95APE), number.Fixed(100*card.Coverage, 0) + " %"}
	_, held, err := perfmodel.Split(fam, rows, demoFit)
	if err != nil {
		return nil, nil, err
	}
	for i := range min(demoShown, len(held)) {
		m := held[(2*i+1)*len(held)/(2*min(demoShown, len(held)))]
		p, err := fitted.Predict(d.ctx, m.Config)
		if err != nil {
			return nil, nil, err
		}
		sec, lo, hi := p.StepSec(m.Config.Plan.GlobalBatch())
		was := m.MedianStepSec()
		shown := m.Config.Plan
		shown.Precision = "" // the same for all
		examples = append(examples, []string{card.Model, shown.String(), number.Significant(was, 3), number.Significant(sec, 3),
			number.Significant(lo, 3) + " - " + number.Significant(hi, 3), number.Percent(math.Abs(sec-was) / was)})
	}
	return score, examples, nil
}
