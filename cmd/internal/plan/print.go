package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
)

// columns are those of a table of plans that are not always shown.
type columns struct {
	devices, cost, batch bool      // batch comes with goodput
	priced               bool      // cost is in money, not device-hours
	beatsBest            bool      // probability of being better than the first plan
	gain                 []float64 // of each row, for probes; nil = none
}

func (a *planAnswer) print(w io.Writer) error {
	ranked := a.columns
	ranked.beatsBest = slices.ContainsFunc(a.rows, func(p planRow) bool { return p.PBeatsBest != nil })
	if err := printColumns(w, a.rows, a.title, ranked); err != nil {
		return err
	}
	a.printTies(w)
	var plans []string
	for _, p := range a.rows {
		plans = append(plans, p.Plan)
	}
	PrintLegend(w, plans...)
	if len(a.Pareto) > 0 {
		fmt.Fprintln(w)
		if err := printColumns(w, planRowsOf(a.Pareto), "No plan beats these in speed, memory and devices at once:", a.columns); err != nil {
			return err
		}
	}
	if len(a.Probes) > 0 {
		if err := printProbes(w, a.Probes, a.columns); err != nil {
			return err
		}
	}
	if a.Move != nil {
		printMove(w, a.Move)
	}
	return nil
}

// printTies prints the number of plans that cannot be distinguished from the best. The search
// for the measurement that would decide takes as long as the ranking, so it is left to --probe.
func (a *planAnswer) printTies(w io.Writer) {
	ties := query.Ties(a.plainRows())
	if ties == 0 {
		return
	}
	text := fmt.Sprintf("note: %d of these plans cannot be distinguished from the best: each beats it with a probability of %.0f %% or more.", ties, 100*planner.TieProbability)
	if len(a.Probes) == 0 {
		text += " pacer plan --probe 1 names the measurement that would help most to decide."
	}
	console.Wrap(w, text)
}

// beatsBest writes a probability, "" for none.
func beatsBest(p *float64, write func(float64) string) string {
	if p == nil {
		return ""
	}
	return write(*p)
}

// printProbes prints what to measure, with what the choice is expected to gain by
// it and those before it.
func printProbes(w io.Writer, probes []query.ProbeRow, with columns) error {
	fmt.Fprintln(w)
	rows := make([]query.PlanRow, len(probes))
	for i, p := range probes {
		rows[i] = p.PlanRow
		with.gain = append(with.gain, p.Gain)
	}
	return printColumns(w, planRowsOf(rows), "Measuring these would change the choice most, the first most:", with)
}

func printMove(w io.Writer, m *query.MoveRow) {
	fmt.Fprintln(w)
	if m.From == m.To {
		console.Wrap(w, "The job runs by this plan already: "+m.From)
		return
	}
	answer := "worth it"
	if !m.Worth {
		answer = "not worth it"
	}
	text := fmt.Sprintf("Going over from %s to %s is %s (probability %.2f). With the move the job ends in %s s, the %s s of the move itself included, without it in %s s; a checkpoint is %s GiB.",
		m.From, m.To, answer, m.Probability, number.Significant(m.GoS, 4), number.Significant(m.CostS, 3), number.Significant(m.StayS, 4), number.Significant(m.StateGiB, 3))
	if m.BreakEven > 0 {
		text += fmt.Sprintf(" It pays from %s samples on.", number.Significant(m.BreakEven, 3))
	}
	console.Wrap(w, text)
}

// printColumns prints a table of plans.
func printColumns(w io.Writer, rows []planRow, title string, with columns) error {
	console.Wrap(w, title)
	common := commonPrecision(rows)
	table := [][]string{with.head()}
	for i, p := range rows {
		table = append(table, with.line(i, &p.PlanRow, strings.TrimSuffix(p.Plan, common)))
	}
	if len(rows) > 0 {
		if err := console.WriteTable(w, table); err != nil {
			return err
		}
		console.Wrap(w, fmt.Sprintf("by %s%s; %s", cmp.Or(rows[0].By, "no performance model"), strings.Replace(common, ",", "; all with ", 1), with.note()))
	}
	if len(rows) == 1 {
		printUtilization(w, &rows[0].PlanRow)
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

// printUtilization prints how well a single plan uses its devices.
func printUtilization(w io.Writer, p *query.PlanRow) {
	var parts []string
	if p.HFU > 0 {
		parts = append(parts, "HFU "+percent(p.HFU))
	}
	if p.TokensPerDevice > 0 {
		parts = append(parts, number.Significant(p.TokensPerDevice, 4)+" tokens/s of each device")
	}
	if p.JoulesPerSample > 0 {
		parts = append(parts, "at most "+number.Significant(p.JoulesPerSample, 3)+" J of the devices a sample")
	}
	if len(parts) > 0 {
		console.Wrap(w, strings.Join(parts, "; "))
	}
}

func (with *columns) head() []string {
	out := []string{"plan", "step s", "90 % interval", "samples/s", "GiB", "TFLOP/s", "MFU"}
	if with.devices {
		out = append(out, "devices")
	}
	if with.cost {
		out = append(out, "cost/M")
	}
	if with.batch {
		out = append(out, "batch", "goodput/s")
	}
	if with.gain != nil {
		out = append(out, "gain")
	}
	if with.beatsBest {
		out = append(out, "beats best")
	}
	return out
}

// line is row i, of a plan to be called so.
func (with *columns) line(i int, p *query.PlanRow, plan string) []string {
	step, interval, samples := "-", "-", "-"
	if p.StepTimeSec > 0 { // else no model covers a plan that does not fit either
		step, samples = number.Significant(p.StepTimeSec, 3), number.Significant(p.SamplesPerS, 4)
		interval = number.Significant(p.StepTimeLo, 3) + " - " + number.Significant(p.StepTimeHi, 3)
	}
	out := []string{plan, step, interval, samples, number.Fixed(p.MemGiB, 1), tflops(p.TFLOPsPerGPU), percent(p.MFU)}
	if with.devices {
		out = append(out, strconv.Itoa(p.Devices))
	}
	if with.cost {
		out = append(out, number.Significant(p.CostPerSample*1e6, 3))
	}
	if with.batch {
		out = append(out, strconv.Itoa(p.GlobalBatch), number.Significant(p.GoodputPerS, 4))
	}
	if with.gain != nil {
		out = append(out, number.Fixed(100*with.gain[i], 1)+" %")
	}
	if with.beatsBest {
		out = append(out, beatsBest(p.PBeatsBest, func(v float64) string { return number.Fixed(100*v, 0) + " %" }))
	}
	return out
}

// note explains the units of the columns.
func (with *columns) note() string {
	out := "GiB and TFLOP/s are per device, MFU is the share of its peak"
	switch {
	case with.cost && with.priced:
		out += ", cost is of a million samples in the currency of --price-per-hour"
	case with.cost:
		out += ", cost is of a million samples in device-hours"
	}
	if with.gain != nil {
		out += ", gain is by how much faster the plan decided on is expected to be, those above measured too"
	}
	if with.beatsBest {
		out += ", beats best is the probability that a plan is better than the first"
	}
	return out
}

// tflops writes a rate for people; a rate below one means that the work of a
// sample is not known.
func tflops(v float64) string {
	if v < 0.5 {
		return "-"
	}
	return number.Fixed(v, 0)
}

// commonPrecision returns the ",precision=..." all plans end in, "" if they
// differ: it is printed once instead of in every row.
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
			console.Wrap(w, p.Plan+": "+p.Why)
		}
		for _, note := range p.Warnings {
			if !seen[note] {
				seen[note] = true
				console.Wrap(w, "note: "+note)
			}
		}
	}
	return nil
}
