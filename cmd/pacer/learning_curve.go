package main

import (
	"fmt"
	"io"
	"strconv"

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
		JSON:  map[string]any{"points": points},
		CSV:   learningCSV(points),
		Table: func(w io.Writer) error { return learningTable(w, points) },
	})
}

func learningCSV(points []accuracy.CurvePoint) [][]string {
	out := [][]string{{"data", "source", "order", "model", "rows", "draws", "scored", "refused", "mean", "mean_se", "median", "median_se",
		"coverage", "half_width", "regret", "choices"}}
	for _, p := range points {
		out = append(out, []string{p.Data, p.Source, p.Order, p.Model, strconv.Itoa(p.Rows), strconv.Itoa(p.Draws), console.Float(p.Scored), console.Float(p.Refused),
			console.Float(p.Mean.Value), console.Float(p.Mean.SE), console.Float(p.Median.Value), console.Float(p.Median.SE),
			console.Float(p.Coverage), console.Float(p.HalfWidth), console.Float(p.Regret), console.Float(p.Choices)})
	}
	return out
}

// learningTable writes a line per curve: the mean and the median error after each number of rows, and the share of rows in
// the 90 % interval.
func learningTable(w io.Writer, points []accuracy.CurvePoint) error {
	type curve struct{ data, source, order, model string }
	head := []string{"source", "order", "model"}
	for _, k := range accuracy.CurveRows {
		head = append(head, strconv.Itoa(k)+" rows")
	}
	lines, at := [][]string{head}, map[curve]int{}
	for _, p := range points {
		of := curve{p.Data, p.Source, p.Order, p.Model}
		i, ok := at[of]
		if !ok {
			i, at[of] = len(lines), len(lines)
			line := []string{p.Data + "/" + p.Source, p.Order, p.Model}
			for range accuracy.CurveRows {
				line = append(line, "-")
			}
			lines = append(lines, line)
		}
		text := fmt.Sprintf("%.1f / %.1f", 100*p.Mean.Value, 100*p.Median.Value)
		if p.Coverage > 0 {
			text += fmt.Sprintf(" (%.0f)", 100*p.Coverage)
		}
		for k, rows := range accuracy.CurveRows {
			if rows == p.Rows {
				lines[i][3+k] = text
			}
		}
	}
	if err := console.WriteTable(w, lines); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\nmean / median error of the other rows in %, mean over the draws; in brackets the share of them in the 90 % interval, in %\n")
	return err
}
