package profile

import (
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/profiler"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "what a campaign would measure next, and why",
		ArgsUsage: "CAMPAIGN.yaml",
		Description: `Nothing is measured. The points are those a run would choose, in order, as if
each were measured as predicted. Example:

   pacer profile explain bench/campaigns/cpu-smoke.yaml --next 3`,
		Flags:  append(machineFlags(), &cli.IntFlag{Name: "next", Value: 5, Usage: "explain the next `N` points", Category: command.CategoryOutput}),
		Action: runExplain,
	}
}

func runExplain(c *cli.Context) error {
	if err := command.InRange(c, "next", c.Int("next"), 1000); err != nil {
		return err
	}
	s, err := openDry(c)
	if err != nil {
		return err
	}
	defer s.Close()
	state, steps, err := profiler.Explain(c.Context, s.Campaign, s.Profiler, c.Int("next"))
	if err != nil {
		return err
	}
	next := campaign.NextPoints(steps)
	csv := [][]string{{"model", "accelerator", "plan", "shape", "seq_len", "why", "gain", "half_width", "hold_s"}}
	for _, e := range next {
		csv = append(csv, []string{e.Model, e.Accelerator, e.Plan, e.Shape, strconv.Itoa(e.SeqLen), e.Why, number.Float(e.Gain), number.Float(e.HalfWidth), number.Float(e.HoldSec)})
	}
	return command.Print(c, console.Result{
		JSON: map[string]any{"campaign": s.Campaign.Name, "label": state.Label, "done": state.Done, "points": state.Points,
			"stopped": state.Stopped, "models": campaign.Accuracies(state.Models), "next": next},
		CSV: csv,
		Table: func(w io.Writer) error {
			fmt.Fprintln(w, s.Intent(state))
			return printExplained(w, state, next)
		},
	})
}

func printExplained(w io.Writer, state profiler.State, next []campaign.NextPoint) error {
	models := [][]string{{"model", "accelerator", "done", "of", "90 % interval", ""}}
	for _, m := range state.Models {
		models = append(models, []string{m.Key.Model, m.Key.Accelerator, strconv.Itoa(m.Done), strconv.Itoa(m.Points), campaign.PlusMinus(m.HalfWidth), m.Warning})
	}
	if err := console.WriteTable(w, models); err != nil {
		return err
	}
	if len(next) == 0 {
		_, err := fmt.Fprintf(w, "\nNothing comes next: %s.\n", state.Stopped)
		return err
	}
	fmt.Fprintln(w)
	table := [][]string{{"next", "model", "plan", "shape", "holds", "why"}}
	for i, e := range next {
		table = append(table, []string{strconv.Itoa(i + 1), e.Model, e.Plan, e.Shape, campaign.Duration(e.HoldSec), e.Why})
	}
	return console.WriteTable(w, table)
}
