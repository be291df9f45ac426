package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
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
throughput, or by --objective. Examples:

   pacer plan --model llama3-8b --accelerator h100 --devices 16 --global-batch 128
   pacer plan -m llama3-8b -a h100 -n 64 -b 256 --objective min-devices --target 30
   pacer plan -m llama3-8b -a h100 -n 64 -b 256 --min-devices 1 --pareto
   pacer plan -m llama3-8b -a h100 -n 16 --min-batch 64 --max-batch 2048 \
       --objective goodput --noise-scale 500
   pacer plan -m llama3-8b -a h100 -n 16 -b 128 --from dp=16,mb=1,ga=8,zero=3 --remaining 1e6`,
		Flags: slices.Concat(questionFlags(), goalFlags(), spaceFlags(), moveFlags(), emitFlags(), reportFlags(), []cli.Flag{
			&cli.IntFlag{Name: "devices", Aliases: []string{"n"}, Usage: "`N` devices", DefaultText: "none"},
			&cli.IntFlag{Name: "top", Value: 10, Usage: "show the best `N` plans, 0 = all"},
			&cli.BoolFlag{Name: "rejected", Usage: "show plans that do not fit too, with the reason"},
			&cli.BoolFlag{Name: "explain", Usage: "show where the time and memory of the best plan go"},
			&cli.BoolFlag{Name: "pareto", Usage: "show every plan that no other beats in speed, memory and devices at once"},
			&cli.IntFlag{Name: "probe", Usage: "name the `K` measurements that would change the choice most", DefaultText: "none"},
			&cli.StringFlag{Name: "probe-out", Usage: "write them as a campaign for pacer profile run to `FILE`", DefaultText: "none"},
		}),
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
	q, err := goalQuestion(c)
	if err != nil {
		return err
	}
	ranking, err := q.planner.Rank(c.Context, q.Request)
	if errors.Is(err, planner.ErrInfeasible) {
		return noPlan(c, q, ranking, start, err)
	}
	if err != nil {
		return err
	}
	if err := saveReport(c, q, ranking); err != nil {
		return err
	}
	if done, err := emitted(c, ranking.Choices, func() ([]planner.Choice, error) { return everyChoice(c, q) }); done || err != nil {
		return err
	}
	out := newPlanAnswer(q.Request, ranking)
	out.rows = planRowsOf(ask.PlanRows(ranking, c.Int("top"), c.Bool("rejected")))
	if ranking.Fitting == 0 {
		out.infeasible(c, q)
	} else if err := out.add(c, q, ranking); err != nil {
		return err
	}
	out.ElapsedS = time.Since(start).Seconds()
	if err := emit(c, out.result()); err != nil {
		return err
	}
	return out.why
}

// goalQuestion reads the flags of plan.
func goalQuestion(c *cli.Context) (question, error) {
	q, err := newQuestion(c)
	if err != nil {
		return q, err
	}
	if q.Devices, err = devicesFlag(c, "devices"); err != nil {
		return q, err
	}
	if c.Int("top") < 0 {
		return q, usagef("plan: --top %d is negative", c.Int("top"))
	}
	if c.IsSet("probe") {
		if err := inRange(c, "probe", c.Int("probe"), 100); err != nil {
			return q, err
		}
	}
	if !c.Bool("rejected") {
		q.Top = c.Int("top")
	}
	return q, readGoal(c, &q.Request)
}

// planAnswer is what plan prints, and the error it ends with.
type planAnswer struct {
	ask.Plans
	rows  []planRow
	title string
	why   error // why there is no plan

	costs, teaches bool // devices are a range; the batch is
}

// newPlanAnswer is one to the question r.
func newPlanAnswer(r planner.Request, rk planner.Ranking) planAnswer {
	from, to := deviceRange(r)
	return planAnswer{
		Plans: ask.Plans{Evaluated: rk.Evaluated, Fitting: rk.Fitting}, title: planTitle(r, rk.Fitting, rk.Misses),
		costs: from < to, teaches: r.GlobalBatch == 0,
	}
}

// deviceRange is how many devices a plan may have.
func deviceRange(r planner.Request) (from, to int) {
	if r.MinDevices > 0 || r.Objective == planner.Cost || r.Objective == planner.MinDevices {
		return max(r.MinDevices, 1), r.Devices
	}
	return r.Devices, r.Devices
}

// noPlan prints an answer without any legal plan.
func noPlan(c *cli.Context, q question, rk planner.Ranking, start time.Time, why error) error {
	out := newPlanAnswer(q.Request, rk)
	out.why = why
	out.Infeasible = ask.NewInfeasibleRow(why)
	out.ElapsedS = time.Since(start).Seconds()
	if err := emit(c, out.result()); err != nil {
		return err
	}
	return why
}

// infeasible asks why nothing fits.
func (a *planAnswer) infeasible(c *cli.Context, q question) {
	_, a.why = q.planner.Best(c.Context, q.Request)
	a.Infeasible = ask.NewInfeasibleRow(a.why)
}

// add answers what was asked beside the best plans.
func (a *planAnswer) add(c *cli.Context, q question, rk planner.Ranking) error {
	best := rk.Choices[0].Config
	if c.Bool("explain") {
		e, err := q.explain(c, best)
		if err != nil {
			return err
		}
		a.rows[0].explained, a.rows[0].Explain = e, e.JSON()
	}
	if c.Bool("pareto") {
		front, err := q.planner.Pareto(c.Context, q.Request)
		if err != nil {
			return err
		}
		a.Pareto = ask.PlanRows(front, 0, false)
	}
	if k := c.Int("probe"); k > 0 {
		probes, err := q.planner.Probes(c.Context, q.Request, k)
		if err != nil {
			return err
		}
		a.Probes = ask.ProbeRows(probes)
		if err := saveProbes(c, q.Request, probes); err != nil {
			return err
		}
	}
	m, err := readMove(c, best)
	if m == nil || err != nil {
		return err
	}
	moving, err := q.planner.Migrate(c.Context, *m)
	if err != nil {
		return err
	}
	row := ask.NewMoveRow(m, moving)
	a.Move = &row
	return nil
}

func planTitle(r planner.Request, fitting, refused int) string {
	devices, batch := itoa(r.Devices), itoa(r.GlobalBatch)
	if from, to := deviceRange(r); from < to {
		devices = fmt.Sprintf("%d to %d", from, to)
	}
	if r.GlobalBatch == 0 {
		batch = fmt.Sprintf("%d to %d", r.MinBatch, r.MaxBatch)
	}
	fit := "fit"
	if r.Objective == planner.MinDevices {
		fit = fmt.Sprintf("fit and make %.4g samples/s", r.TargetThroughput)
	}
	return fmt.Sprintf("%s on %s x %s, global batch %s%s: %d plans %s, %d do not fit",
		r.Model.Name, devices, r.Accelerator.Name, batch, sequence(r), fitting, fit, refused)
}

// sequence says how long a sample is, nothing for models that have no tokens.
func sequence(r planner.Request) string {
	n := cmp.Or(r.SeqLen, r.Model.SeqLen)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", sequence %d", n)
}

// result is how the answer is printed. CSV holds the plans alone.
func (a *planAnswer) result() result {
	csv := [][]string{{"plan", "step_time_s", "step_time_lo_s", "step_time_hi_s", "samples_per_s", "mem_gib", "fits", "tflops_per_gpu", "shape", "by", "why", "warnings",
		"devices", "global_batch", "cost_per_sample", "goodput_samples_per_s"}}
	if len(a.rows) > 0 && a.rows[0].explained != nil {
		csv[0] = append(csv[0], explainColumns()...)
	}
	a.Plans.Plans = []ask.PlanRow{}
	for _, p := range a.rows {
		a.Plans.Plans = append(a.Plans.Plans, p.PlanRow)
		line := []string{p.Plan, ftoa(p.StepTimeSec), ftoa(p.StepTimeLo), ftoa(p.StepTimeHi), ftoa(p.SamplesPerS),
			ftoa(p.MemGiB), fmt.Sprint(p.Fits), ftoa(p.TFLOPsPerGPU), p.Shape, p.By, p.Why, strings.Join(p.Warnings, "; "),
			itoa(p.Devices), itoa(p.GlobalBatch), ftoa(p.CostPerSample), ftoa(p.GoodputPerS)}
		if p.explained != nil {
			line = append(line, explanationCells(p.explained)...)
		}
		csv = append(csv, line)
	}
	return result{json: &a.Plans, csv: csv, table: a.print}
}

func (a *planAnswer) print(w io.Writer) error {
	if err := printColumns(w, a.rows, a.title, a.costs, a.teaches); err != nil {
		return err
	}
	for _, more := range []struct {
		title string
		rows  []ask.PlanRow
	}{{"No plan beats these in speed, memory and devices at once:", a.Pareto}, {"Measuring these would change the choice most, the first most:", plansOf(a.Probes)}} {
		if len(more.rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := printColumns(w, planRowsOf(more.rows), more.title, a.costs, a.teaches); err != nil {
			return err
		}
	}
	if a.Move != nil {
		printMove(w, a.Move)
	}
	return nil
}

func plansOf(probes []ask.ProbeRow) []ask.PlanRow {
	out := make([]ask.PlanRow, len(probes))
	for i, p := range probes {
		out[i] = p.PlanRow
	}
	return out
}

func printMove(w io.Writer, m *ask.MoveRow) {
	answer := "worth it"
	if !m.Worth {
		answer = "not worth it"
	}
	fmt.Fprintf(w, "\nGoing over from %s\nis %s (probability %.2f): %s s with it, %s s without, of which %s s\nwithout training; a checkpoint is %s GiB.",
		m.From, answer, m.Probability, significant(m.GoS, 3), significant(m.StayS, 3), significant(m.CostS, 3), significant(m.StateGiB, 3))
	if m.BreakEven > 0 {
		fmt.Fprintf(w, " It pays from %s samples on.", significant(m.BreakEven, 3))
	}
	fmt.Fprintln(w)
}

// printPlans prints a table of plans of one number of devices and one batch.
func printPlans(w io.Writer, rows []planRow, title string) error {
	return printColumns(w, rows, title, false, false)
}

// printColumns prints a table of plans, with devices and cost, and with batch and
// goodput.
func printColumns(w io.Writer, rows []planRow, title string, costs, teaches bool) error {
	fmt.Fprintln(w, title)
	common := commonPrecision(rows)
	head := []string{"plan", "step s", "90 % interval", "samples/s", "GiB", "TFLOP/s"}
	if costs {
		head = append(head, "devices", "cost/M")
	}
	if teaches {
		head = append(head, "batch", "goodput/s")
	}
	table := [][]string{head}
	for _, p := range rows {
		line := []string{strings.TrimSuffix(p.Plan, common), significant(p.StepTimeSec, 3),
			significant(p.StepTimeLo, 3) + " - " + significant(p.StepTimeHi, 3),
			significant(p.SamplesPerS, 4), fixed(p.MemGiB, 1), tflops(p.TFLOPsPerGPU)}
		if costs {
			line = append(line, itoa(p.Devices), significant(p.CostPerSample*1e6, 3))
		}
		if teaches {
			line = append(line, itoa(p.GlobalBatch), significant(p.GoodputPerS, 4))
		}
		table = append(table, line)
	}
	if len(rows) > 0 {
		if err := writeTable(w, table); err != nil {
			return err
		}
		note := "GiB and TFLOP/s are per device"
		if costs {
			note += ", cost per million samples"
		}
		fmt.Fprintf(w, "by %s%s; %s\n", rows[0].By, strings.Replace(common, ",", "; all with ", 1), note)
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
