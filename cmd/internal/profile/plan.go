package profile

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "dry run: what a campaign would measure, what cannot be run, what it would cost",
		ArgsUsage: "CAMPAIGN.yaml",
		Description: `Nothing is measured. The points of the space are listed with the time each is
expected to hold its devices and the memory it is expected to need, after the
combinations that cannot be run, by reason. Points that are stored already count
as done. For a machine you are not on:

   pacer profile plan bench/campaigns/gpu-node.yaml --assume 8xH200

Predictions written by --predict are compared with the measurements by
pacer profile score.`,
		Flags: append(machineFlags(),
			&cli.StringFlag{Name: "predict", Usage: "write predictions of the points to `FILE`, for profile score", Category: command.CategoryOutput},
			&cli.IntFlag{Name: "top", Value: 40, Usage: "show the first `N` points, 0 = all; json and csv have all", Category: command.CategoryOutput}),
		Action: runPlan,
	}
}

func runPlan(c *cli.Context) error {
	if err := command.NotNegative(c, "top"); err != nil {
		return err
	}
	s, err := openDry(c)
	if err != nil {
		return err
	}
	defer s.Close()
	s.PrintNotes(c.App.ErrWriter)
	if file := c.String("predict"); file != "" {
		p, err := s.Predict(c.Context, time.Now())
		if err == nil {
			err = p.Write(file)
		}
		if err != nil {
			return fmt.Errorf("profile: --predict %s: %w", file, err)
		}
	}
	state, steps, err := profiler.Estimate(c.Context, s.Campaign, s.Profiler)
	if err != nil {
		return err
	}
	points, cost := campaign.PlanPoints(steps), campaign.Estimate(s.Campaign, state, steps)
	csv := [][]string{{"model", "accelerator", "plan", "shape", "seq_len", "hold_s", "mem_gib", "alone_stage"}}
	for _, p := range points {
		csv = append(csv, []string{p.Model, p.Accelerator, p.Plan, p.Shape, strconv.Itoa(p.SeqLen), number.Float(p.HoldSec), number.Float(p.MemGiB), strconv.Itoa(p.AloneStage)})
	}
	err = command.Print(c, console.Result{
		JSON: map[string]any{
			"campaign": s.Campaign.Name, "label": state.Label, "machine": s.JSON(), "points": points, "done": state.Done,
			"skipped": campaign.GroupRejected(state.Skips), "rejected": campaign.GroupRejected(s.Rejected), "estimate": cost, "budget": campaign.NewBudget(s.Campaign.Budget),
		},
		CSV: csv,
		Table: func(w io.Writer) error {
			campaign.PrintRejected(w, s.Rejected, len(s.Rejected))
			fmt.Fprintln(w, s.Intent(state))
			printAlone(w, points, len(s.Profiler.Machine.Devices))
			if err := printPlanPoints(w, points, c.Int("top")); err != nil {
				return err
			}
			return cost.Print(w, s.Campaign)
		},
	})
	if err == nil && len(s.Points) == 0 {
		err = s.NoPoints()
	}
	return err
}

// printAlone says which points are of one rank alone, if any are.
func printAlone(w io.Writer, points []campaign.PlanPoint, devices int) {
	n := 0
	for _, p := range points {
		if p.AloneStage > 0 {
			n++
		}
	}
	if n > 0 {
		fmt.Fprintf(w, "%s of one rank alone: plans for more than %s run a rank of their first, second and last stage without the others, and without communication\n",
			spec.Count(n, "point"), spec.Count(devices, "device"))
	}
}

// printPlanPoints lists the points, at most top of them, 0 = all.
func printPlanPoints(w io.Writer, points []campaign.PlanPoint, top int) error {
	shown := points
	if top > 0 && len(points) > top {
		shown = points[:top]
	}
	if len(shown) == 0 {
		return nil
	}
	table := [][]string{{"model", "plan", "shape", "seq", "holds", "GiB"}}
	alone := slices.ContainsFunc(shown, func(p campaign.PlanPoint) bool { return p.AloneStage > 0 })
	if alone {
		table[0] = append(table[0], "alone")
	}
	for _, p := range shown {
		line := []string{p.Model, p.Plan, p.Shape, number.Figure(float64(p.SeqLen)), campaign.Duration(p.HoldSec), number.Fixed(p.MemGiB, 2)}
		switch {
		case p.AloneStage > 0:
			line = append(line, fmt.Sprintf("stage %d", p.AloneStage))
		case alone:
			line = append(line, "-")
		}
		table = append(table, line)
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	if n := len(points) - len(shown); n > 0 {
		fmt.Fprintf(w, "and %d more (--top 0 shows all)\n", n)
	}
	return nil
}
