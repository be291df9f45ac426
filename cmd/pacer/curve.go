package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

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

// curveRow is one point of the curve's JSON.
type curveRow struct {
	Devices     int      `json:"devices"`
	Plan        string   `json:"plan"`
	SamplesPerS float64  `json:"samples_per_s"`
	Lo          float64  `json:"lo"`
	Hi          float64  `json:"hi"`
	Used        int      `json:"used"` // devices the plan uses
	By          string   `json:"by"`
	Warnings    []string `json:"warnings"`
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
	return emit(c, curveResult(curveRows(curve), curveTitle(q.Request)))
}

func curveTitle(r planner.Request) string {
	return fmt.Sprintf("%s on 1 to %d x %s, global batch %d", r.Model.Name, r.Devices, r.Accelerator.Name, r.GlobalBatch)
}

func curveRows(curve planner.Curve) []curveRow {
	rows := make([]curveRow, 0, len(curve.Points))
	for _, pt := range curve.Points {
		pr := pt.Choice.Prediction
		row := curveRow{Devices: pt.Devices, Plan: pt.Choice.Config.Plan.String(), SamplesPerS: pr.Throughput,
			Lo: pr.Lo, Hi: pr.Hi, Used: pt.Choice.Config.Plan.Devices(), By: pr.By, Warnings: texts(pr.Warnings)}
		if row.Lo <= 0 || row.Hi <= 0 {
			row.Lo, row.Hi = pr.Throughput, pr.Throughput
		}
		rows = append(rows, row)
	}
	return rows
}

func curveResult(rows []curveRow, title string) result {
	csv := [][]string{{"devices", "plan", "samples_per_s", "lo", "hi", "used", "by", "warnings"}}
	for _, p := range rows {
		csv = append(csv, []string{itoa(p.Devices), p.Plan, ftoa(p.SamplesPerS), ftoa(p.Lo), ftoa(p.Hi), itoa(p.Used), p.By, strings.Join(p.Warnings, "; ")})
	}
	return result{
		json:  map[string]any{"points": rows},
		csv:   csv,
		table: func(w io.Writer) error { return printCurve(w, rows, title) },
	}
}

// printCurve shows only the counts at which something changes.
func printCurve(w io.Writer, rows []curveRow, title string) error {
	fmt.Fprintln(w, title)
	plans := make([]planRow, len(rows))
	for i, p := range rows {
		plans[i] = planRow{Plan: p.Plan, Warnings: p.Warnings}
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
