package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// table is a table of figures with a name per row.
type table struct {
	Label string // for screen readers
	Head  []head
	Rows  [][]cell
	Note  string // below it
}

type head struct{ Name, Unit string }

// cell is text or a plan, in pieces between which a line may break.
type cell struct {
	Text string
	Plan []string
}

// column is one figure of a choice.
type column struct {
	name, unit string
	text       func(*planner.Choice) string
}

// tile is one figure of the best plan.
type tile struct{ Name, Value, Unit, More string }

// fitting returns the choices that fit, which come first in a Ranking.
func fitting(choices []planner.Choice) []planner.Choice {
	if i := slices.IndexFunc(choices, func(c planner.Choice) bool { return !c.Fits }); i >= 0 {
		return choices[:i]
	}
	return choices
}

// fillPlans sets the conclusion and the table of the best plans.
func (p *page) fillPlans(in *Input) {
	best := fitting(in.Ranking.Choices)
	if len(best) == 0 {
		p.Lead = fmt.Sprintf("No plan fits, of %d legal plans.", in.Ranking.Evaluated)
		return
	}
	p.Lead = leadWords(&in.Request, &in.Ranking)
	p.Best = pieces(best[0].Config.Plan.String())
	p.Tiles = tiles(&in.Request, &best[0])
	p.Plans = plansTable("The best plans", &in.Request, best)
	p.fillTies(in, len(best))
	if len(in.Probes) > 0 {
		p.Probes = probesTable(in)
	}
}

// fillTies adds the probabilities of beating the best of n plans to their table, and
// the conclusion from them.
func (p *page) fillTies(in *Input, n int) {
	if len(in.BeatsBest) != n || n < 2 {
		return
	}
	p.Plans.Head = append(p.Plans.Head, head{"beats best", "probability"})
	for i, v := range in.BeatsBest {
		text := none
		if !math.IsNaN(v) {
			text = sig(100*v, 2) + " %"
		}
		p.Plans.Rows[i] = append(p.Plans.Rows[i], cell{Text: text})
	}
	least, ties := sig(100*planner.TieProbability, 2)+" %", planner.Ties(in.BeatsBest)
	if ties == 0 {
		p.Ties = "No other plan listed beats it with a probability of " + least + " or more."
		return
	}
	p.Ties = fmt.Sprintf("%d of the %d other plans listed cannot be distinguished from it: each beats it with a probability of %s or more.", ties, n-1, least)
	if len(in.Probes) > 0 {
		p.Measure = pieces(in.Probes[0].Choice.Config.Plan.String())
	}
}

// tiles are the figures of the best plan.
func tiles(r *planner.Request, c *planner.Choice) []tile {
	sec, lo, hi := stepSec(c)
	out := []tile{
		{"Throughput", sig(c.Prediction.Throughput, 4), "samples/s", ""},
		{"Step time", sig(sec, 3), "s", intervalWords(span(lo, hi), "s", c)},
		{"Memory", memoryText(c), "GiB a device", ""},
	}
	if n := c.Config.Seq(); n > 0 {
		out[0].More = large(c.Prediction.Throughput*float64(n)) + " tokens/s"
	}
	if b := r.Accelerator.MemBytes; b > 0 && c.Prediction.MemoryBytes > 0 {
		out[2].More = "of " + trim(b/memory.GiB) + " GiB"
	}
	if v := flopsPerDevice(c); v > 0 {
		t := tile{"Compute", rate(c), "TFLOP/s a device", ""}
		if peak := r.Accelerator.Peak(c.Config.Plan.Precision); peak > 0 {
			t.More = percent(v/peak) + " of peak"
		}
		out = append(out, t)
	}
	return append(out, tile{"Cost", costText(c), costUnit(r), ""})
}

func intervalWords(span, unit string, c *planner.Choice) string {
	if !interval(c) {
		return ""
	}
	return "90 %: " + span + " " + unit
}

// plansTable lists choices with the columns in which they may differ.
func plansTable(label string, r *planner.Request, choices []planner.Choice) *table {
	columns := []column{
		{"step time", "s", func(c *planner.Choice) string { sec, _, _ := stepSec(c); return sig(sec, 3) }},
		{"90 % interval", "s", func(c *planner.Choice) string { _, lo, hi := stepSec(c); return intervalText(c, lo, hi) }},
		{"throughput", "samples/s", func(c *planner.Choice) string { return sig(c.Prediction.Throughput, 4) }},
	}
	if r.Objective == planner.Goodput {
		columns = append(columns, column{"goodput", "samples/s", func(c *planner.Choice) string { return sig(c.Goodput(), 4) }})
	}
	columns = append(columns,
		column{"memory", "GiB a device", memoryText},
		column{"compute", "TFLOP/s a device", rate})
	if varies(choices, devices) {
		columns = slices.Insert(columns, 0, column{"devices", "", func(c *planner.Choice) string { return fmt.Sprint(devices(c)) }})
	}
	if varies(choices, batch) {
		columns = append(columns, column{"batch", "samples", func(c *planner.Choice) string { return fmt.Sprint(batch(c)) }})
	}
	return newTable(label, choices, append(columns, column{"cost", costUnit(r), costText}))
}

// newTable lists choices by plan, with the precision they share in the note.
func newTable(label string, choices []planner.Choice, columns []column) *table {
	t := &table{Label: label, Head: []head{{Name: "plan"}}}
	for _, c := range columns {
		t.Head = append(t.Head, head{c.name, c.unit})
	}
	common := commonPrecision(choices)
	for i := range choices {
		row := []cell{{Plan: pieces(strings.TrimSuffix(choices[i].Config.Plan.String(), common))}}
		for _, c := range columns {
			row = append(row, cell{Text: c.text(&choices[i])})
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note = commonNote(common)
	return t
}

func probesTable(in *Input) *table {
	choices := make([]planner.Choice, len(in.Probes))
	for i := range choices {
		choices[i] = in.Probes[i].Choice
	}
	t := plansTable("Measurements to decide by", &in.Request, choices)
	t.Head = append(t.Head, head{"gain", "expected, with those above"})
	for i, p := range in.Probes {
		t.Rows[i] = append(t.Rows[i], cell{Text: percent(p.Gain)})
	}
	return t
}

// commonPrecision returns the ",precision=..." that all plans end in, "" if they
// differ.
func commonPrecision(choices []planner.Choice) string {
	if len(choices) == 0 {
		return ""
	}
	p := choices[0].Config.Plan.Precision
	if p == "" || slices.ContainsFunc(choices, func(c planner.Choice) bool { return c.Config.Plan.Precision != p }) {
		return ""
	}
	suffix := ",precision=" + string(p)
	if slices.ContainsFunc(choices, func(c planner.Choice) bool { return !strings.HasSuffix(c.Config.Plan.String(), suffix) }) {
		return ""
	}
	return suffix
}

func commonNote(common string) string {
	if common == "" {
		return ""
	}
	return "All plans with " + common[1:] + "."
}

// pieces splits a plan after its commas.
func pieces(plan string) []string { return strings.SplitAfter(plan, ",") }

func devices(c *planner.Choice) int { return c.Config.Plan.Devices() }
func batch(c *planner.Choice) int   { return c.Config.Plan.GlobalBatch() }

func varies(choices []planner.Choice, of func(*planner.Choice) int) bool {
	return slices.ContainsFunc(choices, func(c planner.Choice) bool { return of(&c) != of(&choices[0]) })
}

func stepSec(c *planner.Choice) (sec, lo, hi float64) { return c.Prediction.StepSec(batch(c)) }

// interval reports whether the prediction has one.
func interval(c *planner.Choice) bool { return c.Prediction.Lo > 0 && c.Prediction.Hi > 0 }

func intervalText(c *planner.Choice, lo, hi float64) string {
	if !interval(c) {
		return none
	}
	return span(lo, hi)
}

func memoryText(c *planner.Choice) string {
	if c.Prediction.MemoryBytes <= 0 {
		return none
	}
	return sig(c.Prediction.MemoryBytes/memory.GiB, 3)
}

// flopsPerDevice returns the useful FLOP/s of a device, 0 where the FLOPs per sample
// are unknown.
func flopsPerDevice(c *planner.Choice) float64 {
	cfg := &c.Config
	return cfg.Model.TrainFLOPs(cfg.Seq()) * c.Prediction.Throughput / float64(devices(c))
}

func rate(c *planner.Choice) string {
	v := flopsPerDevice(c) / 1e12
	if !(v > 0) {
		return none
	}
	return sig(v, 3)
}

func costText(c *planner.Choice) string { return sig(c.CostPerSample*1e6, 3) }

func costUnit(r *planner.Request) string {
	if r.PricePerHour > 0 {
		return "per million samples"
	}
	return "device-h per million samples"
}

// speed returns goodput under that objective, else throughput, samples/s.
func speed(r *planner.Request, c *planner.Choice) float64 {
	if r.Objective == planner.Goodput {
		return c.Goodput()
	}
	return c.Prediction.Throughput
}

// speedName returns the name of speed.
func speedName(r *planner.Request) string {
	if r.Objective == planner.Goodput {
		return "goodput"
	}
	return "throughput"
}
