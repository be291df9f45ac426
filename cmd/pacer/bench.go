package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/bench/accuracy"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/scheduler/report"
)

func benchCommand() *cli.Command {
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure pacer itself on the published data sets",
		Subcommands: []*cli.Command{benchAccuracyCommand(), benchPlannerCommand(), benchSchedulingCommand()},
	}
}

func benchAccuracyCommand() *cli.Command {
	return &cli.Command{
		Name:  "accuracy",
		Usage: "measure the error of every family of performance models on rows it has not seen",
		Description: `Every family goes through every protocol: few rows of a job type, a source left
out, rows of it revealed, memory, choices of plans, speed. The data sets are not
part of pacer: --shared is a directory with data/rubick, data/published, ...

   pacer bench accuracy --shared DIR --family hybrid \
       --protocol published-0,published-10

With --learning-curve one family learns more and more rows of each source instead,
beside textbook regressions of the same errors:

   pacer bench accuracy --shared DIR --learning-curve

Results do not depend on the number of processors, except for times.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "shared", Usage: "read the data sets in `DIR`", Category: "Benchmark", EnvVars: []string{"PACER_SHARED"}},
			&cli.StringSliceFlag{Name: "protocol", Usage: "run only protocol `NAME` (repeatable)", Category: "Benchmark", DefaultText: "all: " + strings.Join(protocolNames(), ", ")},
			&cli.StringSliceFlag{Name: "family", Usage: "test only family `NAME`, see pacer ls families (repeatable)", Category: "Benchmark", DefaultText: "all"},
			&cli.BoolFlag{Name: "learning-curve", Usage: "measure the error after 0 to 100 rows of each source", Category: "Benchmark"},
			&cli.StringFlag{Name: "markdown", Usage: "write the report into `FILE`, between its marks", Category: categoryOutput},
		},
		Before: command.NoArgs,
		Action: runBenchAccuracy,
	}
}

func protocolNames() []string {
	var out []string
	for _, p := range accuracy.Protocols() {
		out = append(out, p.Name)
	}
	return out
}

func runBenchAccuracy(c *cli.Context) error {
	o := accuracy.Options{Shared: c.String("shared"), Seed: command.Seed(c)}
	if o.Shared == "" {
		return fail.Usagef("bench accuracy: --shared is missing: a directory with data/rubick, data/published, ...")
	}
	for _, name := range c.StringSlice("protocol") {
		p, err := accuracy.LookupProtocol(name)
		if err != nil {
			return fail.Usagef("bench: %w", err)
		}
		o.Protocols = append(o.Protocols, p)
	}
	if c.Bool("learning-curve") && (c.IsSet("protocol") || c.IsSet("markdown") || len(c.StringSlice("family")) > 1) {
		return fail.Usagef("bench accuracy: --learning-curve is of one family, and takes neither --protocol nor --markdown: leave them out")
	}
	for _, name := range c.StringSlice("family") {
		f, err := accuracy.Lookup(name)
		if err != nil {
			return fail.Usagef("bench: %w", err)
		}
		o.Contenders = append(o.Contenders, f)
	}
	o.Done = func(r accuracy.Result, done, of int) {
		fmt.Fprintf(c.App.ErrWriter, "bench accuracy: %d of %d: %s, %s: %.1f s\n", done, of, r.Protocol, r.Family, r.WallSec)
	}
	if c.Bool("learning-curve") {
		return learningCurve(c, o)
	}
	file := c.String("markdown")
	if file != "" {
		if err := hasPlace(file, accuracy.Section); err != nil {
			return err
		}
	}
	results, err := accuracy.Run(c.Context, o)
	if err != nil {
		return err
	}
	if file != "" {
		if err := report.SpliceFile(file, accuracy.Markdown(results), accuracy.Section); err != nil {
			return err
		}
	}
	return command.Print(c, accuracyResult(results))
}

// hasPlace returns the error that report.SpliceFile would return after the work.
func hasPlace(file, name string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := report.Splice(old, nil, name); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func accuracyResult(results []accuracy.Result) console.Result {
	return console.Result{
		JSON: map[string]any{"results": results},
		CSV:  accuracyCSV(results),
		Table: func(w io.Writer) error {
			if err := console.WriteTable(w, accuracy.FigureTable(results)); err != nil {
				return err
			}
			fmt.Fprint(w, "\n*: keeps what it must, **: reaches the aim, [...]: the rows were in view or in sample: not accuracy,\n(...): too few rows predicted to compare\n\n")
			return console.WriteTable(w, accuracy.ErrorTable(results))
		},
	}
}

// accuracyCSV has a line per judged figure of a family, with the statistics of its protocol.
func accuracyCSV(results []accuracy.Result) [][]string {
	out := [][]string{{"protocol", "family", "standing", "unable", "rows", "refused", "mean", "median", "p95", "intervals", "coverage",
		"half_width", "regret", "choices", "figure", "value", "unit", "must_at_least", "must_at_most"}}
	for _, r := range results {
		var g accuracy.Regret
		if r.Regret != nil {
			g = *r.Regret
		}
		line := []string{r.Protocol, r.Family, string(r.Standing), r.Unable, strconv.Itoa(r.Rows), strconv.Itoa(r.Refused), console.Float(r.Mean), console.Float(r.Median),
			console.Float(r.P95), strconv.Itoa(r.Intervals), console.Float(r.Coverage), console.Float(r.HalfWidth), console.Float(g.Mean), strconv.Itoa(g.Groups)}
		if len(r.Figures) == 0 {
			out = append(out, append(line, "", "", "", "", ""))
		}
		for _, f := range r.Figures {
			out = append(out, append(line[:len(line):len(line)], f.Name, console.Float(f.Value), f.Unit, bound(f.Must.AtLeast), bound(f.Must.AtMost)))
		}
	}
	return out
}

// bound is empty for none.
func bound(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func benchPlannerCommand() *cli.Command {
	return &cli.Command{
		Name:  "planner",
		Usage: "measure the planner: the cost of its choices, and its verdicts on plans that ran",
		Description: `Chooses among the measured plans of every job of data/rubick and data/published
by predictions that have not seen them, and prints how much longer the chosen
plans take than the best. Then checks every plan of Megatron-LM (SC21) and
Megatron-Bridge with a model of the catalog: is it legal, does it fit, how long
is a step.

   pacer bench planner --shared DIR --output csv`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "shared", Usage: "read the data sets in `DIR`", Category: "Benchmark", EnvVars: []string{"PACER_SHARED"}},
		},
		Before: command.NoArgs,
		Action: runBenchPlanner,
	}
}

func runBenchPlanner(c *cli.Context) error {
	shared := c.String("shared")
	if shared == "" {
		return fail.Usagef("bench planner: --shared is missing: a directory with data/rubick and data/published")
	}
	r, err := accuracy.RunPlanner(c.Context, shared)
	if err != nil {
		return err
	}
	csv, err := plannerCSV(r)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{JSON: r, CSV: csv, Table: func(w io.Writer) error { return plannerText(w, r) }})
}

// plannerCSV has a line per choice, then one per plan that ran; columns of the other kind are
// empty.
func plannerCSV(r *accuracy.PlannerReport) ([][]string, error) {
	var lines []any
	for i := range r.Choices {
		lines = append(lines, struct {
			Kind string `json:"kind"`
			*accuracy.Alternatives
		}{"choice", &r.Choices[i]})
	}
	for i := range r.Plans {
		lines = append(lines, struct {
			Kind string `json:"kind"`
			*accuracy.PlanCheck
		}{"plan", &r.Plans[i]})
	}
	return console.CSV(lines)
}

// plannerText prints the tables.
func plannerText(w io.Writer, r *accuracy.PlannerReport) error {
	fmt.Fprintf(w, "How much longer the plan predicted fastest takes than the fastest measured one; by %s, which has seen\n"+
		"no row of the published source, and at most 8 rows of the job type of rubick's traces:\n\n", r.Family)
	for _, t := range []struct {
		table [][]string
		after string
	}{
		{r.ChoiceTable(), "\n"},
		{r.RegretTable(), "\nPlans that ran; predicted step time over measured, as recorded and with the least recomputation that fits:\n\n"},
		{r.PlanTable(), "\n"},
		{r.SourceTable(), "\nothers: rows of another run than they record. These, and the plans that are not legal or do not fit:\n\n"},
		{r.ReasonTable(), ""},
	} {
		if err := console.WriteTable(w, t.table); err != nil {
			return err
		}
		fmt.Fprint(w, t.after)
	}
	return nil
}
