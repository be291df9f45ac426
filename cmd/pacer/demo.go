package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
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
			&cli.StringFlag{Name: "out", Value: "out/demo", Usage: "write the report into `DIR`", Category: categoryOutput},
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
	h := fnv.New64a()
	fmt.Fprint(h, c.Model.Name, c.Accelerator.Name, c.Plan.String(), c.Shape.Devices)
	r := rand.New(rand.NewPCG(n.seed, h.Sum64()))
	p.Throughput *= math.Exp(n.sigma * r.NormFloat64())
	return p, err
}

func (d *demo) truth() noisy { return noisy{d.analytic, d.seed, demoNoise} }

func (d *demo) plan() error {
	d.title(2, "Rank the execution plans of a model without measurements")
	r := d.request
	ranking, err := d.planner.Rank(d.ctx, r)
	if err != nil {
		return err
	}
	rows := planRowsOf(query.PlanRows(ranking, 5, false))
	return printPlans(d.w, rows, planTitle(r, ranking.Fitting, ranking.Misses))
}

func (d *demo) curve() error {
	d.title(3, "Throughput added by each device")
	r := d.request
	r.Devices = 64
	curve, err := d.planner.Curve(d.ctx, r)
	if err != nil {
		return err
	}
	return curveTable(curve).print(d.w)
}

// schedule compares the policies on a synthetic workload.
func (d *demo) schedule() (err error) {
	d.title(4, "Policies that choose plans and devices together")
	s, err := d.simulation()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.w, "%d synthetic jobs on %s; truth: the analytic model with %.0f %% noise,\nbelief: the analytic model; start cost 60 s\n\n",
		len(s.Jobs), experiment.ClusterText(s.Cluster), 100*demoNoise)
	path := filepath.Join(d.out, "report.html")
	html, err := console.Create(path)
	if err != nil {
		return err
	}
	files := &simulateFiles{html: html, htmlPath: path, log: io.Discard}
	defer func() { err = errors.Join(err, files.discard()) }()
	results, err := simulate(d.ctx, s, files, experiment.Hooks{}, io.Discard)
	if err != nil {
		return err
	}
	if err := report.WriteTable(d.w, report.SummarizeAll(results, s.Score)); err != nil {
		return err
	}
	if err := files.write(s, results); err != nil {
		return err
	}
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
