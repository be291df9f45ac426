package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/scheduler/report"
)

func profilePlanCommand() *cli.Command {
	return &cli.Command{
		Name:      "plan",
		Usage:     "dry run: what a campaign would measure, what cannot be run, what it would cost",
		ArgsUsage: "CAMPAIGN.yaml",
		Description: `Nothing is measured. The points of the space are listed with the time each is
expected to hold its devices and the memory it is expected to need, after the
combinations that cannot be run, by reason. Points that are stored already count
as done. For a machine you are not on:

   pacer profile plan bench/campaigns/gpu-node.yaml --assume 8xH200`,
		Flags: append(append(runFlags(), machineFlags()...), assumeFlag(),
			&cli.IntFlag{Name: "top", Value: 40, Usage: "show the first `N` points, 0 = all; json and csv have all"}),
		Action: runProfilePlan,
	}
}

// planPoint is a point in the JSON of profile plan.
type planPoint struct {
	Model       string  `json:"model"`
	Accelerator string  `json:"accelerator"`
	Plan        string  `json:"plan"`
	Shape       string  `json:"shape"`
	SeqLen      int     `json:"seq_len"`
	HoldSec     float64 `json:"hold_s"`  // expected, launch included
	MemGiB      float64 `json:"mem_gib"` // estimated peak per device, 0 = unknown
}

// campaignEstimate is the expected cost of what is left of a run.
type campaignEstimate struct {
	Points      int     `json:"points"` // the budget allows
	Open        int     `json:"open"`   // there are
	HoldSec     float64 `json:"hold_s"` // of the points the budget allows
	DeviceHours float64 `json:"device_hours"`
	OpenHoldSec float64 `json:"open_hold_s"` // of all there are
	OpenHours   float64 `json:"open_device_hours"`
}

func runProfilePlan(c *cli.Context) error {
	camp, err := campaignArg(c)
	if err != nil {
		return err
	}
	s, err := newMeasurementSetup(c, camp, stored(c), true)
	if s.close != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	points, rejected, err := s.points(camp)
	if err != nil {
		return err
	}
	s.printNotes(c.App.ErrWriter)
	rows, err := dataDir(c).Rows(c.Context, campaignFilter(c, camp))
	if err != nil {
		return err
	}
	o, err := profileOptions(c, camp, s, rows)
	if err != nil {
		return err
	}
	if c.Int("top") < 0 {
		return fail.Usagef("plan: --top %d is negative", c.Int("top"))
	}
	state, steps, err := profiler.Estimate(c.Context, camp, o)
	if err != nil {
		return err
	}
	cost := estimate(camp, state, steps)
	if err := command.Print(c, planPointsResult(c, camp, s, state, steps, rejected, cost)); err != nil {
		return err
	}
	if len(points) == 0 {
		return noPoints(camp)
	}
	return nil
}

// noPoints is the error of a campaign nothing of which can be run.
func noPoints(camp profiler.Campaign) error {
	return fail.NoAnswerf("profile: campaign %s: no point can be run on this machine; the reasons are above", camp.Name)
}

// estimate adds up what the points cost: those a budget allows at their mean.
func estimate(camp profiler.Campaign, state profiler.State, steps []profiler.Step) campaignEstimate {
	e := campaignEstimate{Open: len(steps)}
	for _, s := range steps {
		e.OpenHoldSec += s.Seconds
		e.OpenHours += s.Seconds * float64(s.Point.Config.Plan.Devices()) / 3600
	}
	if e.Open == 0 {
		return e
	}
	n := float64(e.Open)
	each, hours := e.OpenHoldSec/n, e.OpenHours/n
	b := camp.Budget
	if b.Points > 0 {
		n = min(n, float64(b.Points-state.Done))
	}
	if b.DeviceHours > 0 && hours > 0 {
		n = min(n, (b.DeviceHours-state.DeviceSec/3600)/hours)
	}
	if b.Wall > 0 && each > 0 {
		n = min(n, (b.Wall.Seconds()-state.WallSec)/each)
	}
	e.Points = max(int(n), 0)
	e.HoldSec, e.DeviceHours = float64(e.Points)*each, float64(e.Points)*hours
	return e
}

func planPointsResult(c *cli.Context, camp profiler.Campaign, s measurementSetup, state profiler.State, steps []profiler.Step,
	rejected []profiler.Rejected, cost campaignEstimate) console.Result {
	points := []planPoint{}
	csv := [][]string{{"model", "accelerator", "plan", "shape", "seq_len", "hold_s", "mem_gib"}}
	for _, step := range steps {
		p := newPlanPoint(step)
		points = append(points, p)
		csv = append(csv, []string{p.Model, p.Accelerator, p.Plan, p.Shape, strconv.Itoa(p.SeqLen), console.Float(p.HoldSec), console.Float(p.MemGiB)})
	}
	return console.Result{
		JSON: map[string]any{
			"campaign": camp.Name, "label": state.Label, "machine": s.describe(), "points": points, "done": state.Done,
			"skipped": groupRejected(state.Skips), "rejected": groupRejected(rejected), "estimate": cost, "budget": newBudget(camp.Budget),
		},
		CSV: csv,
		Table: func(w io.Writer) error {
			printRejected(w, rejected, len(rejected))
			fmt.Fprintln(w, intent(camp, s, state))
			if err := printPlanPoints(w, points, c.Int("top")); err != nil {
				return err
			}
			return printEstimate(w, camp, cost)
		},
	}
}

func newPlanPoint(step profiler.Step) planPoint {
	x := step.Point.Config
	p := planPoint{Model: x.Model.Name, Accelerator: x.Accelerator.Name, Plan: x.Plan.String(), Shape: x.Shape.String(),
		SeqLen: x.Seq(), HoldSec: step.Seconds, MemGiB: memGiB(x)}
	return p
}

// memGiB returns the estimated peak memory of a device, 0 where nothing is known.
func memGiB(c spec.Config) float64 {
	b, err := memory.Estimate(c)
	if err != nil {
		return 0
	}
	return b.Total() / gib
}

// printPlanPoints lists the points, at most top of them, 0 = all.
func printPlanPoints(w io.Writer, points []planPoint, top int) error {
	shown := points
	if top > 0 && len(points) > top {
		shown = points[:top]
	}
	if len(shown) == 0 {
		return nil
	}
	table := [][]string{{"model", "plan", "shape", "seq", "holds", "GiB"}}
	for _, p := range shown {
		table = append(table, []string{p.Model, p.Plan, p.Shape, console.Figure(float64(p.SeqLen)),
			report.Human(report.Number(p.HoldSec)), console.Fixed(p.MemGiB, 2)})
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	if n := len(points) - len(shown); n > 0 {
		fmt.Fprintf(w, "and %d more (--top 0 shows all)\n", n)
	}
	return nil
}

func printEstimate(w io.Writer, camp profiler.Campaign, e campaignEstimate) error {
	fmt.Fprintf(w, "All %d hold their devices for about %s, %s device-hours. ", e.Open,
		report.Human(report.Number(e.OpenHoldSec)), deviceHours(e.OpenHours))
	if camp.Budget == (profiler.Budget{}) {
		fmt.Fprintln(w, "There is no budget.")
	} else {
		fmt.Fprintf(w, "The budget allows about %d: %s, %s device-hours.\n", e.Points,
			report.Human(report.Number(e.HoldSec)), deviceHours(e.DeviceHours))
	}
	_, err := fmt.Fprintln(w, "These are expected times: from what this run has measured, else from the analytic model.")
	return err
}
