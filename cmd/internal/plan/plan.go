package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// Command is pacer plan.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "rank execution plans of a model on given devices",
		Description: `Every legal plan is enumerated: data, tensor, pipeline, context and expert
parallel degrees, ZeRO stage, recompute, micro-batch and accumulation. Those that
do not fit in device memory are counted, the others ranked by predicted
throughput, or by --objective. Examples:

   pacer plan --model llama3-8b --accelerator h100 -n 16 --global-batch 128
   pacer plan -m llama3-8b -a h100 -n 64 -b 256 \
       --objective min-devices:target=30
   pacer plan -m llama3-8b -a h100 -n 64 -b 256 --min-devices 1 --pareto
   pacer plan -m llama3-8b -a h100 -n 16 --batch-range 64-2048 \
       --objective goodput:noise-scale=500
   pacer plan -m llama3-8b -a h100 -n 16 -b 128 \
       --from dp=16,mb=1,ga=8,zero=3 --move remaining=1e6` + Groups.Help("model", "network", "space", "objective", "move"),
		Flags: slices.Concat(requestFlags(), []cli.Flag{command.DevicesFlag("none"), spaceFlag()}, objectiveFlags(), moveFlags(), emitFlags(), reportFlags(), []cli.Flag{
			&cli.IntFlag{Name: "top", Value: 10, Usage: "show the best `N` plans, 0 = all", Category: command.CategoryOutput},
			&cli.BoolFlag{Name: "rejected", Usage: "show plans that do not fit too, with the reason", Category: command.CategoryOutput},
			&cli.BoolFlag{Name: "explain", Usage: "show where the time and memory of the best plan go", Category: command.CategoryOutput},
			&cli.BoolFlag{Name: "pareto", Usage: "show every plan that no other beats in speed, memory and devices at once", Category: command.CategoryOutput},
			&cli.StringFlag{Name: "probe", Usage: "name the `K[:campaign=FILE]` measurements that would change the choice most, and write them to FILE for pacer profile run", DefaultText: "none", Category: command.CategoryOutput},
		}),
		Before: command.NoArgs,
		Action: runPlan,
	}
}

// planRow is a plan to print, with time and memory by part under --explain.
type planRow struct {
	query.PlanRow
	explained *query.Explanation
}

// planRowsOf are rows without an explanation.
func planRowsOf(rows []query.PlanRow) []planRow {
	out := make([]planRow, len(rows))
	for i, r := range rows {
		out[i].PlanRow = r
	}
	return out
}

func runPlan(c *cli.Context) error {
	start := time.Now()
	q, err := readPlanRequest(c)
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
	rows := query.PlanRows(ranking, c.Int("top"), c.Bool("rejected"))
	if err := query.SetBeatsBest(c.Context, q.planner, q.Request, ranking, rows); err != nil {
		return err
	}
	out.rows = planRowsOf(rows)
	if ranking.Fitting == 0 {
		out.infeasible(c, q)
	} else if err := out.add(c, q, ranking); err != nil {
		return err
	}
	out.ElapsedS = time.Since(start).Seconds()
	if err := command.Print(c, out.result()); err != nil {
		return err
	}
	return out.err
}

// PrintRanking writes the best top plans of a request.
func PrintRanking(ctx context.Context, w io.Writer, p *planner.Planner, r planner.Request, top int) error {
	ranking, err := p.Rank(ctx, r)
	if err != nil {
		return err
	}
	rows := query.PlanRows(ranking, top, false)
	if err := query.SetBeatsBest(ctx, p, r, ranking, rows); err != nil {
		return err
	}
	out := newPlanAnswer(r, ranking)
	out.rows = planRowsOf(rows)
	return out.print(w)
}

// readPlanRequest reads the flags of plan.
func readPlanRequest(c *cli.Context) (planRequest, error) {
	q, err := readRequest(c)
	if err != nil {
		return q, err
	}
	if err := command.NotNegative(c, "top"); err != nil {
		return q, err
	}
	if c.IsSet("probe") {
		if err := command.InRange(c, "probe", c.Int("probe"), 100); err != nil {
			return q, err
		}
	}
	if q.Top = c.Int("top"); c.Bool("rejected") {
		q.TopMisses = q.Top
	}
	if q.migration, err = readMigration(c); err != nil {
		return q, err
	}
	return q, readGoal(c, &q.Request)
}

// planAnswer is the output of plan, and the error it ends with.
type planAnswer struct {
	query.Plans
	rows  []planRow
	title string
	err   error // the reason if there is no plan

	columns columns // that plans are shown with
	ranked  bool    // rows are alternatives, the best first
}

// newPlanAnswer is the answer to r.
func newPlanAnswer(r planner.Request, rk planner.Ranking) planAnswer {
	from, to := deviceRange(r)
	return planAnswer{
		ranked: true,
		Plans:  query.Plans{Evaluated: rk.Evaluated, Fitting: rk.Fitting}, title: planTitle(r, rk.Fitting, rk.Misses),
		columns: columns{devices: from < to, cost: from < to || r.PricePerHour > 0, batch: r.GlobalBatch == 0, priced: r.PricePerHour > 0},
	}
}

// deviceRange bounds the number of devices of a plan.
func deviceRange(r planner.Request) (from, to int) {
	if r.MinDevices > 0 || r.Objective == planner.Cost || r.Objective == planner.MinDevices {
		return max(r.MinDevices, 1), r.Devices
	}
	return r.Devices, r.Devices
}

// noPlan prints an answer without any legal plan.
func noPlan(c *cli.Context, q planRequest, rk planner.Ranking, start time.Time, reason error) error {
	out := newPlanAnswer(q.Request, rk)
	out.err = reason
	out.Infeasible = query.NewInfeasibleRow(reason)
	out.ElapsedS = time.Since(start).Seconds()
	if err := command.Print(c, out.result()); err != nil {
		return err
	}
	return reason
}

// infeasible finds the reason why no plan fits.
func (a *planAnswer) infeasible(c *cli.Context, q planRequest) {
	_, a.err = q.planner.Best(c.Context, q.Request)
	a.Infeasible = query.NewInfeasibleRow(a.err)
}

// add adds the answers of further flags: --explain, --pareto, --probe and --from.
func (a *planAnswer) add(c *cli.Context, q planRequest, rk planner.Ranking) (err error) {
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
		a.Pareto = query.PlanRows(front, 0, false)
	}
	if k := c.Int("probe"); k > 0 {
		probes, err := q.planner.Probes(c.Context, q.Request, k)
		if err != nil {
			return err
		}
		a.Probes = query.ProbeRows(probes)
		if err := saveProbes(c, q.Request, probes); err != nil {
			return err
		}
	}
	a.Move, err = q.move(c, best)
	return err
}

func planTitle(r planner.Request, fitting, refused int) string {
	devices, batch := strconv.Itoa(r.Devices), strconv.Itoa(r.GlobalBatch)
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

// sequence is the length of a sample, empty for models without tokens.
func sequence(r planner.Request) string {
	n := cmp.Or(r.SeqLen, r.Model.SeqLen)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", sequence %d", n)
}

// result is the answer in each format. CSV has the plans only.
func (a *planAnswer) result() console.Result {
	csv := [][]string{{"plan", "step_time_s", "step_time_lo_s", "step_time_hi_s", "samples_per_s", "mem_gib", "fits", "tflops_per_gpu", "shape", "by", "why", "warnings",
		"devices", "global_batch", "cost_per_sample", "goodput_samples_per_s", "mfu", "hfu", "tokens_per_s_per_device", "energy_j_per_sample"}}
	if len(a.rows) > 0 && a.rows[0].explained != nil {
		csv[0] = append(csv[0], query.ExplanationColumns()...)
	}
	if a.ranked {
		csv[0] = append(csv[0], "p_beats_best")
	}
	csv[0] = append(csv[0], lastColumns...)
	a.Plans.Plans = a.plainRows()
	for _, p := range a.rows {
		line := []string{p.Plan, number.Float(p.StepTimeSec), number.Float(p.StepTimeLo), number.Float(p.StepTimeHi), number.Float(p.SamplesPerS),
			number.Float(p.MemGiB), surelyFits(p.Fits, p.Verdict), number.Float(p.TFLOPsPerGPU), p.Shape, p.By, p.Why, strings.Join(p.Warnings, "; "),
			strconv.Itoa(p.Devices), strconv.Itoa(p.GlobalBatch), number.Float(p.CostPerSample), number.Float(p.GoodputPerS),
			given(p.MFU), given(p.HFU), given(p.TokensPerDevice), given(p.JoulesPerSample)}
		if p.explained != nil {
			line = append(line, p.explained.Cells()...)
		}
		if a.ranked {
			line = append(line, beatsBest(p.PBeatsBest, number.Float))
		}
		csv = append(csv, append(line, p.Verdict, given(p.AllocatedGiB), given(p.ReservedGiB)))
	}
	return console.Result{JSON: &a.Plans, CSV: csv, Table: a.print}
}

// lastColumns end the CSV of plans and of fit-check, so that older columns keep their places.
var lastColumns = []string{"verdict", "mem_allocated_gib", "mem_reserved_gib"}

// surelyFits is a cell of CSV: whether a plan fits, empty if that is unsure.
func surelyFits(fits bool, verdict string) string {
	if verdict == string(memory.Unsure) {
		return ""
	}
	return strconv.FormatBool(fits)
}

// plainRows are the rows without explanations.
func (a *planAnswer) plainRows() []query.PlanRow {
	out := make([]query.PlanRow, len(a.rows))
	for i := range a.rows {
		out[i] = a.rows[i].PlanRow
	}
	return out
}

// probeParts are the settings of --probe.
func probeParts() []cli.Flag {
	return []cli.Flag{&cli.IntFlag{Name: "probe"}, &cli.StringFlag{Name: "campaign"}}
}

// saveProbes writes the campaign of --probe.
func saveProbes(c *cli.Context, r planner.Request, probes []planner.Probe) error {
	out, err := console.Create(c.String("campaign"))
	if out == nil || err != nil {
		return err
	}
	if len(probes) == 0 {
		return errors.Join(errors.New("plan: no measurement would change the choice"), out.Discard())
	}
	return out.Write(func(w io.Writer) error { return campaign.WriteProbes(w, r, probes) })
}
