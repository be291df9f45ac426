package simulate

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// ReportCommand is pacer report.
func ReportCommand() *cli.Command {
	return &cli.Command{
		Name:  "report",
		Usage: "compare results",
		Subcommands: []*cli.Command{{
			Name:      "diff",
			Usage:     "compare two runs job by job",
			ArgsUsage: "A B",
			Description: `A and B are files of pacer simulate --jobs-out, CSV or Parquet. Jobs are the same if their
ids are; policies are compared by name, or the only one of each file. Exit
code 0 if all jobs are equal, 1 if some differ, 2 if there is nothing to
compare. Example:

   pacer simulate ... --policy fifo --jobs-out a.csv
   pacer simulate ... --policy fifo-backfill --jobs-out b.csv
   pacer report diff a.csv b.csv --tolerance 1`,
			Flags: []cli.Flag{
				&cli.Float64Flag{Name: "tolerance", Usage: "count jobs as equal if their times differ by at most `SECONDS`", Category: "Comparison"},
				&cli.StringFlag{Name: "policy-a", Usage: "compare `POLICY` of A", Category: "Comparison"},
				&cli.StringFlag{Name: "policy-b", Usage: "compare `POLICY` of B", Category: "Comparison"},
				&cli.IntFlag{Name: "top", Value: 10, Usage: "list the `N` largest differences", Category: command.CategoryOutput},
				&cli.Float64Flag{Name: "confidence", Value: 0.95, Usage: "print intervals of probability `SHARE`, above 0 and below 1", Category: "Comparison"},
			},
			Action: runDiff,
		}},
	}
}

func runDiff(c *cli.Context) error {
	o, err := diffOptions(c)
	if err != nil {
		return err
	}
	var files [2][]report.JobRow
	for i := range files {
		if files[i], err = report.ReadJobsFile(c.Args().Get(i)); err != nil {
			return fail.WithCode(fail.Usage, fmt.Errorf("report diff: %w", err))
		}
	}
	diffs, err := report.DiffJobs(files[0], files[1], o)
	if err != nil {
		return fail.Usagef("report diff: %w (--policy-a, --policy-b)", err)
	}
	if err := emitDiffs(c, diffs); err != nil {
		return err
	}
	differ := 0
	for _, d := range diffs {
		differ += d.Differing()
	}
	if differ > 0 {
		return fail.WithCode(fail.Failed, fmt.Errorf("report diff: %d jobs differ", differ))
	}
	return nil
}

// diffOptions reads the flags and checks that there are two files.
func diffOptions(c *cli.Context) (o report.DiffOptions, err error) {
	tolerance := c.Float64("tolerance")
	o = report.DiffOptions{A: c.String("policy-a"), B: c.String("policy-b"), Largest: c.Int("top"), Confidence: c.Float64("confidence")}
	switch {
	case c.NArg() != 2:
		return o, fail.Usagef("report diff wants two arguments, A and B, got %d", c.NArg())
	case !(tolerance >= 0 && tolerance <= 1e9):
		return o, fail.Usagef("report diff: --tolerance %g is not in 0..1e9", tolerance)
	case o.Largest < 0:
		return o, fail.Usagef("report diff: --top %d is negative", o.Largest)
	case !(o.Confidence > 0 && o.Confidence < 1):
		return o, fail.Usagef("report diff: --confidence %g is not above 0 and below 1", o.Confidence)
	}
	o.Tolerance = time.Duration(tolerance * float64(time.Second))
	return o, nil
}

// diffRow is a comparison in CSV: without the list of jobs.
type diffRow struct {
	report.Diff
	Largest *struct{} `json:"largest,omitempty"`
}

func emitDiffs(c *cli.Context, diffs []report.Diff) error {
	objects := make([]any, len(diffs))
	for i, d := range diffs {
		objects[i] = diffRow{Diff: d}
	}
	table, err := console.CSV(objects)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{JSON: map[string]any{"diffs": diffs}, CSV: table, Table: func(w io.Writer) error { return report.WriteDiffs(w, diffs, console.Width(w)) }})
}
