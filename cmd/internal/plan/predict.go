package plan

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/batch"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// PredictCommand is pacer predict.
func PredictCommand() *cli.Command {
	return &cli.Command{
		Name:  "predict",
		Usage: "predict step time and memory of an execution plan, or of every row of a file",
		Description: `Of one plan, which is written as key=value pairs: dp, tp, pp, cp, ep (degrees), vp (virtual
stages), mb (micro-batch), ga (accumulation steps), zero (stage), offload,
recompute, sp, precision. What is left out is 1 or none. Example:

   pacer predict -m llama3-8b -a h100 --plan dp=4,tp=2,mb=2,ga=8,zero=1

Or of every row of a CSV file, which says what was or would be run
(docs/reference/file-formats.md, "Rows of your own"), calibrated to measured rows of the
same form if there are some:

   pacer predict --in rows.csv --calibrate seen.csv --out pred.csv

The models that pacer fit keeps answer for one plan. Rows of a file are answered
by --family (hybrid unless another is named), calibrated to the rows of
--calibrate alone: the stored fits and measurements are not looked at, but for
what an accelerator is that the catalog lacks.

Rows that cannot be predicted get no time and the reason; the exit code is then 4.` + Groups.Help("model", "network"),
		Flags: append(append(append(requestFlags(), batchFlags()...), emitFlags()...),
			&cli.StringFlag{Name: "plan", Usage: "predict `PLAN`, such as dp=2,tp=4,pp=1,mb=2,ga=8,zero=1,recompute=full", Category: command.CategoryModel},
			command.DevicesFlag("those of the plan"),
			&cli.StringFlag{Name: "shape", Usage: "place the plan on nodes of `N+N...` devices, or 2x8", DefaultText: "as few nodes as possible", Category: command.CategoryHardware},
			&cli.BoolFlag{Name: "explain", Usage: "show where time and memory go, and which training stacks the prediction assumes", Category: command.CategoryOutput},
		),
		Before: command.NoArgs,
		Action: runPredict,
	}
}

func runPredict(c *cli.Context) error {
	if c.IsSet("in") {
		return runPredictRows(c)
	}
	for _, f := range []string{"calibrate", "out"} {
		if c.IsSet(f) {
			return fail.Usagef("predict: --%s goes with --in", f)
		}
	}
	return runPredictPlan(c)
}

func runPredictPlan(c *cli.Context) error {
	start := time.Now()
	q, err := readFixedPlan(c)
	if err != nil {
		return err
	}
	ranking, err := q.planner.Rank(c.Context, q.Request)
	if err != nil {
		return err
	}
	if done, err := emitted(c, ranking.Choices, nil); done || err != nil {
		return err
	}
	row := planRow{PlanRow: query.NewPlanRow(ranking.Choices[0])} // a fixed plan on a fixed shape is one choice, or an error
	cfg := ranking.Choices[0].Config
	if c.Bool("explain") {
		if row.explained, err = q.explain(c, cfg); err != nil {
			return err
		}
		row.Explain = row.explained.JSON()
	}
	title := fmt.Sprintf("%s on %s x %s, global batch %d%s", q.Model.Name, cfg.Shape, q.Accelerator.Name, q.GlobalBatch, sequence(q.Request))
	if !row.Fits {
		title += ": " + query.Misfit(row.Verdict)
	}
	out := planAnswer{rows: []planRow{row}, title: title}
	out.Evaluated, out.Fitting, out.ElapsedS = ranking.Evaluated, ranking.Fitting, time.Since(start).Seconds()
	return command.Print(c, out.result())
}

// explain splits the time and memory of cfg by part.
func (q *planRequest) explain(c *cli.Context, cfg spec.Config) (*query.Explanation, error) {
	e, err := query.ExplainerOf(q.predictor, q.family)
	if err != nil {
		return nil, command.ForVerb(c, err)
	}
	var m *memory.Estimator
	if known, err := q.planner.Memory(cfg); err == nil {
		m = &known
	}
	out, err := query.Explain(e, m, cfg)
	return &out, err
}

// readFixedPlan reads the flags of a request of the one plan of --plan.
func readFixedPlan(c *cli.Context) (planRequest, error) {
	if c.String("plan") == "" {
		return planRequest{}, fail.Usagef("%s: --plan is missing, such as dp=2,tp=4,mb=2,ga=8", c.Command.Name)
	}
	if c.IsSet("devices") {
		if _, err := devicesFlag(c, "devices"); err != nil {
			return planRequest{}, err
		}
	}
	return resolveOn(c, c.String("accelerator"), "devices", &query.FixedPlan{Plan: c.String("plan"), Devices: c.Int("devices"), Shape: c.String("shape")})
}

// batchAlso are the flags that go with --in.
var batchAlso = []string{"in", "calibrate", "out", "family", "explain", "network", "data", "output", "seed", "progress"}

// batchFlags are those of predicting rows of a file.
func batchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "in", Usage: "predict every row of `FILE`, - is standard input", Category: "Rows of a file"},
		&cli.StringFlag{Name: "calibrate", Usage: "calibrate to the measured rows of `FILE` first", Category: "Rows of a file"},
		&cli.StringFlag{Name: "out", Usage: "write predictions to `FILE`, - is standard output", DefaultText: "-", Category: "Rows of a file"},
	}
}

// runPredictRows predicts the rows of --in.
func runPredictRows(c *cli.Context) error {
	if err := checkBatch(c); err != nil {
		return err
	}
	if err := command.NotZero(c, "inter-node-gbps", "intra-node-gbytes"); err != nil {
		return err
	}
	flags := query.Request{InterNodeGbps: c.Float64("inter-node-gbps"), IntraNodeGBytes: c.Float64("intra-node-gbytes")}
	link, err := flags.Interconnect()
	if err != nil {
		return command.ForVerb(c, err)
	}
	open := batch.Opener("predict", c.App.Reader)
	in, name, err := open(c.String("in"))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := console.Create(strings.TrimPrefix(c.String("out"), "-"))
	if err != nil {
		return err
	}
	b, err := batch.New(c.Context, batch.Options{Family: c.String("family"), Link: link, Explain: c.Bool("explain"), Calibrate: c.String("calibrate"),
		Open: open, Resolver: datadir.Of(c).Resolver, Log: c.App.ErrWriter})
	if err != nil {
		return errors.Join(command.ForVerb(c, err), out.Discard())
	}
	write := func(w io.Writer) error {
		format := "csv"
		if slices.Contains(command.Given(c), "output") {
			format = command.Global(c, "output")
		}
		rows, err := batch.NewWriter(w, format, b.Family, c.Bool("explain"))
		if err == nil {
			err = b.Predict(in, name, rows.Put)
		}
		if err != nil {
			return err
		}
		return rows.Close()
	}
	if out == nil {
		err = write(c.App.Writer)
	} else {
		err = out.Write(write)
	}
	b.Finish()
	if err != nil {
		return err
	}
	return b.Verdict(name)
}

func checkBatch(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; c.IsSet(name) && !slices.Contains(batchAlso, name) {
			return fail.Usagef("predict: --%s conflicts with --in: the rows have it", name)
		}
	}
	if c.String("in") == "-" && c.String("calibrate") == "-" {
		return fail.Usagef("predict: --in and --calibrate are both standard input")
	}
	return nil
}
