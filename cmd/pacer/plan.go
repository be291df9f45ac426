package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/planner"
)

const gib = 1 << 30

func planCommand() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "rank execution plans of a model on given devices",
		Description: `Every legal plan is enumerated: data, tensor, pipeline, context and expert
parallel degrees, ZeRO stage, recompute, micro-batch and accumulation. Those that
do not fit in device memory are counted, the others ranked by predicted
throughput. Example:

   pacer plan --model llama3-8b --accelerator h100 --devices 16 --global-batch 128`,
		Flags: append(questionFlags(),
			&cli.IntFlag{Name: "devices", Aliases: []string{"n"}, Usage: "`N` devices", DefaultText: "none"},
			&cli.IntFlag{Name: "top", Value: 10, Usage: "show the best `N` plans, 0 = all"},
			&cli.BoolFlag{Name: "rejected", Usage: "show plans that do not fit too, with the reason"},
		),
		Before: noArgs,
		Action: runPlan,
	}
}

// planRow is a plan to print, with where time and memory go where that was
// asked for.
type planRow struct {
	ask.PlanRow
	explained *ask.Explanation
}

// planRowsOf are rows without an explanation.
func planRowsOf(rows []ask.PlanRow) []planRow {
	out := make([]planRow, len(rows))
	for i, r := range rows {
		out[i].PlanRow = r
	}
	return out
}

func runPlan(c *cli.Context) error {
	start := time.Now()
	q, err := newQuestion(c)
	if err != nil {
		return err
	}
	if q.Devices, err = devicesFlag(c, "devices"); err != nil {
		return err
	}
	if c.Int("top") < 0 {
		return usagef("plan: --top %d is negative", c.Int("top"))
	}
	ranking, err := q.planner.Rank(c.Context, q.Request)
	if err != nil {
		return err
	}
	rows, fitting := ask.PlanRows(ranking, c.Int("top"), c.Bool("rejected"))
	title := planTitle(q.Request, fitting, len(ranking.Choices)-fitting)
	if err := emit(c, planResult(planRowsOf(rows), ranking.Evaluated, time.Since(start), title)); err != nil {
		return err
	}
	if fitting == 0 {
		_, err := q.planner.Best(c.Context, q.Request) // says what would help
		return err
	}
	return nil
}

func planTitle(r planner.Request, fitting, refused int) string {
	return fmt.Sprintf("%s on %d x %s, global batch %d%s: %d plans fit, %d do not",
		r.Model.Name, r.Devices, r.Accelerator.Name, r.GlobalBatch, sequence(r), fitting, refused)
}

// sequence says how long a sample is, nothing for models that have no tokens.
func sequence(r planner.Request) string {
	n := cmp.Or(r.SeqLen, r.Model.SeqLen)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", sequence %d", n)
}

// planResult is the output of plan and, with one row, of predict.
func planResult(rows []planRow, evaluated int, elapsed time.Duration, title string) result {
	csv := [][]string{{"plan", "step_time_s", "step_time_lo_s", "step_time_hi_s", "samples_per_s", "mem_gib", "fits", "tflops_per_gpu", "shape", "by", "why", "warnings"}}
	if len(rows) == 1 && rows[0].explained != nil {
		csv[0] = append(csv[0], explainColumns()...)
	}
	for _, p := range rows {
		line := []string{p.Plan, ftoa(p.StepTimeSec), ftoa(p.StepTimeLo), ftoa(p.StepTimeHi), ftoa(p.SamplesPerS),
			ftoa(p.MemGiB), fmt.Sprint(p.Fits), ftoa(p.TFLOPsPerGPU), p.Shape, p.By, p.Why, strings.Join(p.Warnings, "; ")}
		if p.explained != nil {
			line = append(line, explanationCells(p.explained)...)
		}
		csv = append(csv, line)
	}
	return result{
		json:  map[string]any{"plans": rows, "evaluated": evaluated, "elapsed_s": elapsed.Seconds()},
		csv:   csv,
		table: func(w io.Writer) error { return printPlans(w, rows, title) },
	}
}

func printPlans(w io.Writer, rows []planRow, title string) error {
	fmt.Fprintln(w, title)
	common := commonPrecision(rows)
	table := [][]string{{"plan", "step s", "90 % interval", "samples/s", "GiB", "TFLOP/s"}}
	for _, p := range rows {
		table = append(table, []string{strings.TrimSuffix(p.Plan, common), significant(p.StepTimeSec, 3),
			significant(p.StepTimeLo, 3) + " - " + significant(p.StepTimeHi, 3),
			significant(p.SamplesPerS, 4), fixed(p.MemGiB, 1), tflops(p.TFLOPsPerGPU)})
	}
	if len(rows) > 0 {
		if err := writeTable(w, table); err != nil {
			return err
		}
		fmt.Fprintf(w, "by %s%s; GiB and TFLOP/s are per device\n", rows[0].By, strings.Replace(common, ",", "; all with ", 1))
	}
	for _, p := range rows {
		if p.explained != nil {
			if err := printExplanation(w, p.explained); err != nil {
				return err
			}
		}
	}
	return printNotes(w, rows)
}

// tflops writes a rate for people; a rate below one means that the work of a
// sample is not known.
func tflops(v float64) string {
	if v < 0.5 {
		return "-"
	}
	return fixed(v, 0)
}

// commonPrecision returns the ",precision=..." all plans end in, "" if they
// differ: it is said once instead of in every row.
func commonPrecision(rows []planRow) string {
	if len(rows) < 2 {
		return ""
	}
	i := strings.LastIndex(rows[0].Plan, ",precision=")
	if i < 0 {
		return ""
	}
	suffix := rows[0].Plan[i:]
	for _, p := range rows {
		if !strings.HasSuffix(p.Plan, suffix) {
			return ""
		}
	}
	return suffix
}

// printNotes prints every distinct reason and warning once.
func printNotes(w io.Writer, rows []planRow) error {
	seen := map[string]bool{}
	for _, p := range rows {
		if p.Why != "" {
			fmt.Fprintf(w, "%s: %s\n", p.Plan, p.Why)
		}
		for _, note := range p.Warnings {
			if !seen[note] {
				seen[note] = true
				fmt.Fprintln(w, "note:", note)
			}
		}
	}
	return nil
}
