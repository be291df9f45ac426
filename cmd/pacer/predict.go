package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func predictCommand() *cli.Command {
	return &cli.Command{
		Name:  "predict",
		Usage: "predict step time and memory of an execution plan, or of every row of a file",
		Description: `Of one plan, which is written as key=value pairs: dp, tp, pp, cp, ep (degrees), vp (virtual
stages), mb (micro-batch), ga (accumulation steps), zero (stage), offload,
recompute, sp, precision. What is left out is 1 or none. Example:

   pacer predict --model llama3-8b --accelerator h100 --plan dp=4,tp=2,mb=2,ga=8,zero=1

Or of every row of a CSV file, which says what was or would be run
(docs/cli-contract.md, "Rows of your own"), calibrated to measured rows of the
same form if there are some:

   pacer predict --in rows.csv --calibrate seen.csv --out pred.csv

The models that pacer fit keeps answer for one plan. Rows of a file are answered
by --family (hybrid unless another is named), calibrated to the rows of
--calibrate alone: the stored fits and measurements are not looked at.

Rows that cannot be predicted get no time and the reason; the exit code is then 4.`,
		Flags: append(append(questionFlags(), batchFlags()...),
			&cli.StringFlag{Name: "plan", Usage: "`PLAN`, such as dp=2,tp=4,pp=1,mb=2,ga=8,zero=1,recompute=full"},
			&cli.IntFlag{Name: "devices", Aliases: []string{"n"}, Usage: "`N` devices", DefaultText: "those of the plan"},
			&cli.StringFlag{Name: "shape", Usage: "devices of each node as `N+N...`, or 2x8", DefaultText: "as few nodes as possible"},
			&cli.BoolFlag{Name: "explain", Usage: "say where time and memory go"},
		),
		Before: noArgs,
		Action: runPredict,
	}
}

func runPredict(c *cli.Context) error {
	if c.IsSet("in") {
		return runPredictRows(c)
	}
	for _, f := range []string{"calibrate", "out"} {
		if c.IsSet(f) {
			return usagef("predict: --%s goes with --in", f)
		}
	}
	return runPredictPlan(c)
}

func runPredictPlan(c *cli.Context) error {
	start := time.Now()
	plan, err := planFlag(c)
	if err != nil {
		return err
	}
	q, err := newQuestion(c)
	if err != nil {
		return err
	}
	if plan.Precision != "" && c.IsSet("precision") && plan.Precision != q.Precision {
		return usagef("predict: the plan says precision=%s, --precision says %s", plan.Precision, q.Precision)
	}
	plan.Precision = cmp.Or(plan.Precision, q.Precision, q.Accelerator.DefaultPrecision())
	if err := ask.CheckPrecision(plan.Precision, q.Accelerator); err != nil {
		return err
	}
	q.Plan = &plan
	if q.Devices, q.Shape, err = layout(c, plan, q.PerNode); err != nil {
		return err
	}
	ranking, err := q.planner.Rank(c.Context, q.Request)
	if err != nil {
		return err
	}
	row := planRow{PlanRow: ask.NewPlanRow(ranking.Choices[0])} // a fixed plan on a fixed shape is one choice, or an error
	cfg := ranking.Choices[0].Config
	if c.Bool("explain") {
		if row.explained, err = q.explain(c, cfg); err != nil {
			return err
		}
		row.Explain = row.explained.JSON()
	}
	title := fmt.Sprintf("%s on %s x %s, global batch %d%s", q.Model.Name, cfg.Shape, q.Accelerator.Name, q.GlobalBatch, sequence(q.Request))
	if !row.Fits {
		title += ": does not fit"
	}
	return emit(c, planResult([]planRow{row}, ranking.Evaluated, time.Since(start), title))
}

// explain says where the time and memory of cfg go.
func (q *question) explain(c *cli.Context, cfg spec.Config) (*ask.Explanation, error) {
	e, err := ask.ExplainerOf(q.predictor, q.family)
	if err != nil {
		return nil, asFlag(c, err)
	}
	var m *memory.Estimator
	if known, err := q.planner.Memory(cfg); err == nil {
		m = &known
	}
	out, err := ask.Explain(e, m, cfg)
	return &out, err
}

// planFlag reads --plan, and takes the global batch from it unless one is given.
func planFlag(c *cli.Context) (spec.Plan, error) {
	if c.String("plan") == "" {
		return spec.Plan{}, usagef("predict: --plan is missing, such as dp=2,tp=4,mb=2,ga=8")
	}
	plan, err := spec.ParsePlan(c.String("plan"))
	if err != nil {
		return plan, usagef("predict: %w", err)
	}
	if !c.IsSet("global-batch") {
		return plan, c.Set("global-batch", itoa(plan.GlobalBatch()))
	}
	if b := c.Int("global-batch"); b != plan.GlobalBatch() {
		return plan, usagef("predict: --global-batch %d, but dp x mb x ga of the plan is %d", b, plan.GlobalBatch())
	}
	return plan, nil
}

// layout returns the device count and shape a plan is asked about.
func layout(c *cli.Context, plan spec.Plan, perNode int) (int, spec.Shape, error) {
	n := plan.Devices()
	if c.IsSet("devices") && c.Int("devices") != n {
		return 0, spec.Shape{}, usagef("predict: --devices %d, but dp x tp x pp x cp of the plan is %d", c.Int("devices"), n)
	}
	if !c.IsSet("shape") {
		return n, spec.Packed(n, perNode), nil
	}
	shape, err := spec.ParseShape(c.String("shape"))
	if err != nil {
		return 0, shape, usagef("predict: %w", err)
	}
	if shape.Total() != n {
		return 0, shape, usagef("predict: --shape %s has %d devices, the plan needs %d", shape.Devices, shape.Total(), n)
	}
	if shape.Most() > perNode {
		return 0, shape, usagef("predict: --shape %s has %d devices on one node, the node holds %d; --per-node changes that", shape, shape.Most(), perNode)
	}
	return n, shape, nil
}
