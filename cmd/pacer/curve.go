package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/planner"
)

func curveCommand() *cli.Command {
	return &cli.Command{
		Name:  "curve",
		Usage: "best throughput of a model for every number of devices",
		Description: `The sensitivity curve: for each device count the best plan with at most that
many devices, so that throughput never falls. A count that brings nothing keeps
the plan of a smaller one. Example:

   pacer curve --model llama3-8b --accelerator h100 --max-devices 32 --global-batch 128`,
		Flags: append(questionFlags(),
			&cli.IntFlag{Name: "max-devices", Usage: "largest `N` of devices", DefaultText: "none"},
		),
		Before: noArgs,
		Action: runCurve,
	}
}

func runCurve(c *cli.Context) error {
	q, err := newQuestion(c)
	if err != nil {
		return err
	}
	if q.Devices, err = devicesFlag(c, "max-devices"); err != nil {
		return err
	}
	curve, err := q.planner.Curve(c.Context, q.Request)
	if err != nil {
		return err
	}
	return emit(c, curveResult(ask.CurveRows(curve), curveTitle(q.Request)))
}

func curveTitle(r planner.Request) string {
	return fmt.Sprintf("%s on 1 to %d x %s, global batch %d", r.Model.Name, r.Devices, r.Accelerator.Name, r.GlobalBatch)
}

func curveResult(rows []ask.CurveRow, title string) result {
	csv := [][]string{{"devices", "plan", "samples_per_s", "lo", "hi", "used", "by", "warnings"}}
	for _, p := range rows {
		csv = append(csv, []string{itoa(p.Devices), p.Plan, ftoa(p.SamplesPerS), ftoa(p.Lo), ftoa(p.Hi), itoa(p.Used), p.By, strings.Join(p.Warnings, "; ")})
	}
	return result{
		json:  ask.Curve{Points: rows},
		csv:   csv,
		table: func(w io.Writer) error { return printCurve(w, rows, title) },
	}
}

// printCurve shows only the counts at which something changes.
func printCurve(w io.Writer, rows []ask.CurveRow, title string) error {
	fmt.Fprintln(w, title)
	plans := make([]planRow, len(rows))
	for i, p := range rows {
		plans[i] = planRow{PlanRow: ask.PlanRow{Plan: p.Plan, Warnings: p.Warnings}}
	}
	common := commonPrecision(plans)
	table := [][]string{{"devices", "plan", "samples/s", "90 % interval", "per device"}}
	for i, p := range rows {
		if i > 0 && p.Plan == rows[i-1].Plan {
			continue
		}
		table = append(table, []string{itoa(p.Devices), strings.TrimSuffix(p.Plan, common), significant(p.SamplesPerS, 4),
			significant(p.Lo, 3) + " - " + significant(p.Hi, 3), significant(p.SamplesPerS/float64(p.Devices), 3)})
	}
	if err := writeTable(w, table); err != nil {
		return err
	}
	fmt.Fprintf(w, "by %s%s; counts not shown keep the plan of the next smaller one\n", rows[0].By, strings.Replace(common, ",", "; all with ", 1))
	return printNotes(w, plans)
}
