package main

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/scheduler/report"
)

func profileExplainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "what a campaign would measure next, and why",
		ArgsUsage: "CAMPAIGN.yaml",
		Description: `Nothing is measured. The points are those a run would choose, in order, as if
each were measured as predicted. Example:

   pacer profile explain bench/campaigns/cpu-smoke.yaml --next 3`,
		Flags:  append(append(append(runFlags(), machineFlags()...), assumeFlag()), &cli.IntFlag{Name: "next", Value: 5, Usage: "say the next `N` points"}),
		Action: runProfileExplain,
	}
}

// explainedStep is a point in the JSON of profile explain.
type explainedStep struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Plan        string  `json:"plan"`
	Shape       string  `json:"shape"`
	SeqLen      int     `json:"seq_len"`
	Why         string  `json:"why"`
	Gain        float64 `json:"gain"`       // expected fall of the mean half width, of ln step time
	HalfWidth   float64 `json:"half_width"` // of the present 90 % interval of ln step time; 0 = none yet
	HoldSec     float64 `json:"hold_s"`     // expected
}

// modelKnown is how well a model is known, in the JSON of profile explain and run.
type modelKnown struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Space       int     `json:"space"` // points it has
	Done        int     `json:"done"`
	HalfWidth   float64 `json:"half_width"` // nine in ten of its intervals are narrower, of ln step time; 0 = no fit yet
	Warning     string  `json:"warning,omitempty"`
}

func known(models []profiler.ModelState) []modelKnown {
	out := []modelKnown{}
	for _, m := range models {
		out = append(out, modelKnown{m.Key.Model, m.Key.Accelerator, m.Points, m.Done, m.HalfWidth, m.Warning})
	}
	return out
}

func runProfileExplain(c *cli.Context) error {
	camp, err := campaignArg(c)
	if err != nil {
		return err
	}
	if err := command.InRange(c, "next", c.Int("next"), 1000); err != nil {
		return err
	}
	s, err := newMeasurementSetup(c, camp, stored(c), true)
	if s.close != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	rows, err := dataDir(c).Rows(c.Context, campaignFilter(c, camp))
	if err != nil {
		return err
	}
	o, err := profileOptions(c, camp, s, rows)
	if err != nil {
		return err
	}
	state, steps, err := profiler.Explain(c.Context, camp, o, c.Int("next"))
	if err != nil {
		return err
	}
	return command.Print(c, explainResult(camp, s, state, steps))
}

func explainResult(camp profiler.Campaign, s measurementSetup, state profiler.State, steps []profiler.Step) console.Result {
	list := []explainedStep{}
	csv := [][]string{{"model", "accelerator", "plan", "shape", "seq_len", "why", "gain", "half_width", "hold_s"}}
	for _, step := range steps {
		x := step.Point.Config
		e := explainedStep{x.Model.Name, x.Accelerator.Name, x.Plan.String(), x.Shape.String(), x.Seq(), step.Why, step.Gain, step.HalfWidth, step.Seconds}
		list = append(list, e)
		csv = append(csv, []string{e.Model, e.Accelerator, e.Plan, e.Shape, strconv.Itoa(e.SeqLen), e.Why, console.Float(e.Gain), console.Float(e.HalfWidth), console.Float(e.HoldSec)})
	}
	return console.Result{
		JSON: map[string]any{"campaign": camp.Name, "label": state.Label, "done": state.Done, "points": state.Points,
			"stopped": state.Stopped, "models": known(state.Models), "next": list},
		CSV: csv,
		Table: func(w io.Writer) error {
			fmt.Fprintln(w, intent(camp, s, state))
			return printExplained(w, state, list)
		},
	}
}

func printExplained(w io.Writer, state profiler.State, steps []explainedStep) error {
	models := [][]string{{"model", "accelerator", "done", "of", "90 % interval", ""}}
	for _, m := range state.Models {
		models = append(models, []string{m.Key.Model, m.Key.Accelerator, strconv.Itoa(m.Done), strconv.Itoa(m.Points), plusMinus(m.HalfWidth), m.Warning})
	}
	if err := console.WriteTable(w, models); err != nil {
		return err
	}
	if len(steps) == 0 {
		_, err := fmt.Fprintf(w, "\nNothing comes next: %s.\n", state.Stopped)
		return err
	}
	fmt.Fprintln(w)
	table := [][]string{{"next", "model", "plan", "shape", "holds", "why"}}
	for i, e := range steps {
		table = append(table, []string{strconv.Itoa(i + 1), e.Model, e.Plan, e.Shape, report.Human(report.Number(e.HoldSec)), e.Why})
	}
	return console.WriteTable(w, table)
}

// plusMinus writes a half width of ln step time as a share of the step time.
func plusMinus(half float64) string {
	if half <= 0 {
		return "-"
	}
	return "±" + console.Significant(100*math.Expm1(half), 2) + " %"
}
