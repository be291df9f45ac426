package benchmark

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/bench/accuracy"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/scheduler/report"
)

func accuracyCommand() *cli.Command {
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
			&cli.StringFlag{Name: "shared", Usage: "read the data sets in `DIR`", Category: category, EnvVars: []string{"PACER_SHARED"}},
			&cli.StringSliceFlag{Name: "protocol", Usage: "run only protocol `NAME` (repeatable)", Category: category, DefaultText: "all: " + strings.Join(protocolNames(), ", ")},
			&cli.StringSliceFlag{Name: "family", Usage: "test only family `NAME`, see pacer ls families (repeatable)", Category: category, DefaultText: "all"},
			&cli.BoolFlag{Name: "learning-curve", Usage: "measure the error after 0 to 100 rows of each source", Category: category},
			&cli.StringFlag{Name: "markdown", Usage: "write the report into `FILE`, between its marks", Category: command.CategoryOutput},
		},
		Before: command.NoArgs,
		Action: runAccuracy,
	}
}

func protocolNames() []string {
	var out []string
	for _, p := range accuracy.Protocols() {
		out = append(out, p.Name)
	}
	return out
}

func runAccuracy(c *cli.Context) error {
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
		if err := report.CanSplice(file, accuracy.Section); err != nil {
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
		line := []string{r.Protocol, r.Family, string(r.Standing), r.Unable, strconv.Itoa(r.Rows), strconv.Itoa(r.Refused), number.Float(r.Mean), number.Float(r.Median),
			number.Float(r.P95), strconv.Itoa(r.Intervals), number.Float(r.Coverage), number.Float(r.HalfWidth), number.Float(g.Mean), strconv.Itoa(g.Groups)}
		if len(r.Figures) == 0 {
			out = append(out, append(line, "", "", "", "", ""))
		}
		for _, f := range r.Figures {
			out = append(out, append(line[:len(line):len(line)], f.Name, number.Float(f.Value), f.Unit, bound(f.Must.AtLeast), bound(f.Must.AtMost)))
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
