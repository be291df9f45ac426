package benchmark

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/bench/accuracy"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
)

// learningCurve prints the learning curves of a family.
func learningCurve(c *cli.Context, o accuracy.Options) error {
	of := accuracy.CurveOptions{Shared: o.Shared, Seed: o.Seed}
	if len(o.Contenders) > 0 {
		of.Family = &o.Contenders[0]
	}
	of.Done = func(source string, done, all int) {
		fmt.Fprintf(c.App.ErrWriter, "bench accuracy: %d of %d: %s\n", done, all, source)
	}
	points, err := accuracy.LearningCurves(c.Context, of)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{
		JSON: map[string]any{"points": points},
		CSV:  accuracy.CurveCSV(points),
		Table: func(w io.Writer) error {
			if err := console.WriteTable(w, accuracy.CurveTable(points)); err != nil {
				return err
			}
			_, err := fmt.Fprint(w, "\nmean / median error of the other rows in %, mean over the draws; in brackets the share of them in the 90 % interval, in %\n")
			return err
		},
	})
}
