package calibrate

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// maxShown is the number of scored plans in the table; JSON and CSV have all.
const maxShown = 10

// print writes the report on one screen.
func (r *Report) print(w io.Writer) error {
	if len(r.Plans) > 0 {
		if err := r.printPlans(w); err != nil {
			return err
		}
	}
	if r.After.Plans > 0 {
		fmt.Fprintln(w)
		if err := console.WriteTable(w, r.accuracyTable()); err != nil {
			return err
		}
	}
	if len(r.Best) > 0 {
		fmt.Fprintln(w)
		if err := r.printBest(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	r.printVerdict(w)
	for _, n := range r.Next {
		fmt.Fprintf(w, "Next: %s\n", n)
	}
	return nil
}

// printPlans lists the scored plans.
func (r *Report) printPlans(w io.Writer) error {
	title := "held out"
	if r.LeaveOne {
		title = "plan"
	}
	table := [][]string{{title, "measured", "before", "error", "after", "error", "90 % interval"}}
	models := map[string]bool{}
	for _, s := range r.Plans {
		models[s.Model] = true
	}
	for _, s := range r.Plans[:min(len(r.Plans), maxShown)] {
		name := s.brief
		if len(models) > 1 {
			name = s.Model + " " + name
		}
		measured := seconds3(s.MeasuredSec)
		if s.Noise > 0 {
			measured += " ±" + number.Significant(100*s.Noise, 2) + " %"
		}
		line := append([]string{name, measured}, s.Before.cells()...)
		line = append(line, s.After.cells()...)
		interval := "-"
		if s.After != nil && s.After.Lo > 0 {
			interval = number.Significant(s.After.Lo, 3) + " - " + seconds3(s.After.Hi)
		}
		table = append(table, append(line, interval))
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	if n := len(r.Plans) - maxShown; n > 0 {
		fmt.Fprintf(w, "and %d more (--output json and csv have all)\n", n)
	}
	return nil
}

// brief is a plan without its number format, which the plans of a table share in most cases.
func brief(p spec.Plan) string {
	p.Precision = ""
	return p.String()
}

// briefPoint is brief, and the rank if it is one alone.
func briefPoint(c *spec.Config) string {
	if !c.Alone() {
		return brief(c.Plan)
	}
	return brief(c.Plan) + ", " + c.AloneText()
}

func seconds3(s float64) string { return number.Significant(s, 3) + " s" }

// cells are the step time and the error of a prediction.
func (p *StepSec) cells() []string {
	if p == nil {
		return []string{"-", "-"}
	}
	return []string{seconds3(p.Sec), signedPercent(p.Error)}
}

func signedPercent(v float64) string {
	if v > 0 {
		return "+" + number.Percent(v)
	}
	return number.Percent(v)
}

func (r *Report) accuracyTable() [][]string {
	table := [][]string{{"step time of " + spec.Count(r.After.Plans, "plan"), "mean error", "median error", "90 % interval", "inside it"}}
	for _, a := range []struct {
		name string
		Accuracy
	}{{"before", r.Before}, {"after", r.After}} {
		table = append(table, []string{a.name, number.Percent(a.Mean), number.Percent(a.Median), campaign.PlusMinus(a.HalfWidth), number.Fixed(100*a.Coverage, 0) + " %"})
	}
	return table
}

// printBest lists the best plan of every model before and after.
func (r *Report) printBest(w io.Writer) error {
	table := [][]string{{"best plan", "on", "batch", "", "samples/s", "90 % interval", "measured"}}
	for _, b := range r.Best {
		for _, p := range []struct {
			when string
			*Predicted
		}{{"before", b.Before}, {"after", b.After}} {
			if p.Predicted == nil {
				continue
			}
			interval, measured := "-", "-"
			if p.Lo > 0 {
				interval = number.Significant(p.Lo, 3) + " - " + number.Significant(p.Hi, 3)
			}
			if p.Measured > 0 {
				measured = number.Significant(p.Measured, 3)
			}
			table = append(table, []string{p.when, strconv.Itoa(b.Devices), strconv.Itoa(b.GlobalBatch), p.brief, number.Significant(p.Throughput, 3), interval, measured})
		}
	}
	return console.WriteTable(w, table)
}

// printVerdict says in words how the error changed, and how the rows were used.
func (r *Report) printVerdict(w io.Writer) {
	how := fmt.Sprintf("%s fitted, %s held out", spec.Count(r.Fitted, "row"), spec.Count(len(r.Plans), "row"))
	if r.LeaveOne {
		how = fmt.Sprintf("%s, each predicted by a fit to the others", spec.Count(r.Fitted, "row"))
	}
	if r.Space > 0 {
		again := ""
		if r.Repeats > 0 {
			again = fmt.Sprintf(", one of them %d times,", r.Repeats+1)
		}
		what := "plan"
		if r.Ranks > 0 {
			what = "point"
		}
		how += fmt.Sprintf("; %s of %d measured%s in %s of %s", spec.Count(r.Points, what), r.Space, again, campaign.Duration(r.WallSec), campaign.Duration(r.BudgetSec))
	}
	switch {
	case r.After.Plans == 0:
		fmt.Fprintf(w, "The error is not known (%s).\n", how)
	case r.Halved:
		fmt.Fprintf(w, "The mean error fell from %s to %s (%s).\n", number.Percent(r.Before.Mean), number.Percent(r.After.Mean), how)
	default:
		fmt.Fprintf(w, "The mean error was not halved: %s before, %s after (%s): %s.\n", number.Percent(r.Before.Mean), number.Percent(r.After.Mean), how, strings.Join(r.Reasons, "; "))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "Warning: %s.\n", warning)
	}
	if n := len(r.Cards); n > 0 {
		fitted := 0
		for _, c := range r.Cards {
			fitted += c.NFit
		}
		fmt.Fprintf(w, "Stored: %s as %s. Fitted: %s, to %s of the store.\n", spec.Count(r.Points+r.Repeats, "row"), r.Source, spec.Count(n, "model"), spec.Count(fitted, "row"))
	}
}
