package accuracy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// RegretTable returns the mean regrets, header first.
func (r *PlannerReport) RegretTable() [][]string {
	out := [][]string{{"of", "choices", "mean regret", "worst"}}
	for _, p := range r.Regrets {
		out = append(out, []string{p.Name, strconv.Itoa(p.Groups), percent(p.Mean), percent(p.Worst)})
	}
	return out
}

// ChoiceTable returns a line per choice, header first: the chosen plan, then the best
// one if it is another.
func (r *PlannerReport) ChoiceTable() [][]string {
	out := [][]string{{"of", "model", "devices", "placement", "batch", "plans", "regret", "chosen", "best"}}
	for i := range r.Choices {
		c := &r.Choices[i]
		best := "the same"
		if c.Best != c.Chosen {
			best = c.Best.on(c)
		}
		out = append(out, []string{c.Dataset + "/" + c.Source, c.Model, fmt.Sprintf("%d x %s", c.Devices, c.Accelerator),
			strings.Join(c.Placements, " "), strconv.Itoa(c.GlobalBatch), strconv.Itoa(c.Plans), percent(c.Regret), c.Chosen.on(c), best})
	}
	return out
}

// on writes the plan, with its placement where those of the choice differ.
func (a *Alternative) on(c *Alternatives) string {
	if len(c.Placements) > 1 {
		return a.Plan + " on " + a.Placement
	}
	return a.Plan
}

// PlanTable returns a line per plan chosen by experts, header first.
func (r *PlannerReport) PlanTable() [][]string {
	out := [][]string{{"row", "model", "devices", "plan", "legal", "fits", "recompute", "GiB", "of", "measured", "predicted", "with recompute"}}
	for i := range r.Plans {
		p := &r.Plans[i]
		out = append(out, []string{p.Row, p.Model, p.Placement + " " + p.Accelerator, p.Plan, yes(p.Illegal == ""), yes(p.Fits), string(p.Recompute),
			gib(p.MemoryBytes), gib(p.DeviceBytes), seconds(p.MeasuredSec), ratio(p.Ratio()), ratio(p.RatioFit())})
	}
	return out
}

// SourceTable returns a line per source of plans, header first: how many of the
// plans that ran as recorded are legal and fit, and predicted over measured
// times.
func (r *PlannerReport) SourceTable() [][]string {
	out := [][]string{{"source", "plans", "legal", "legal and fit", "others", "least ratio", "median", "greatest"}}
	var sources []string
	for i := range r.Plans {
		if source := r.Plans[i].Source; !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}
	for _, source := range sources {
		s := tallyPlans(r.Plans, source)
		line := []string{source}
		for _, n := range []int{s.plans, s.legal, s.ok, s.others} {
			line = append(line, strconv.Itoa(n))
		}
		if len(s.ratios) > 0 {
			line = append(line, ratio(slices.Min(s.ratios)), ratio(stats.Median(s.ratios)), ratio(slices.Max(s.ratios)))
		}
		out = append(out, line)
	}
	return out
}

// planTally counts the plans of a source: plans that ran as recorded, the legal ones
// of these, the legal ones that fit, and plans that did not run as recorded.
type planTally struct {
	plans, legal, ok, others int
	ratios                   []float64 // predicted over measured step time
}

func tallyPlans(plans []PlanCheck, source string) (t planTally) {
	for i := range plans {
		p := &plans[i]
		switch {
		case p.Source != source:
			continue
		case p.Contradiction != "":
			t.others++
			continue
		}
		t.plans++
		if p.Illegal == "" {
			t.legal++
		}
		if p.OK() {
			t.ok++
		}
		if p.PredictedSec > 0 {
			t.ratios = append(t.ratios, p.Ratio())
		}
	}
	return t
}

// ReasonTable returns a line per plan that is not both legal and predicted to
// fit, or that probably did not run as recorded, header first.
func (r *PlannerReport) ReasonTable() [][]string {
	out := [][]string{{"row", "plan", "why"}}
	for i := range r.Plans {
		p := &r.Plans[i]
		why := p.Reason()
		if p.Contradiction != "" {
			why = "left out, the row did not run this plan: " + p.Contradiction
		}
		if why != "" {
			out = append(out, []string{p.Row, p.Model + " on " + p.Placement + " " + p.Accelerator + ", " + p.Plan, why})
		}
	}
	return out
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func gib(bytes float64) string {
	if bytes <= 0 {
		return none
	}
	return strconv.FormatFloat(bytes/memory.GiB, 'f', 1, 64)
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'g', 4, 64) + " s" }

func ratio(v float64) string {
	if v <= 0 {
		return none
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
