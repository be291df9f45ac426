package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/report"
)

func profileStatusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "how far campaigns are and what they cost, from the store alone",
		ArgsUsage: "[CAMPAIGN.yaml | NAME]",
		Description: `Needs no devices. Without an argument every campaign in the store is listed, by
run. A campaign file says its budget too. Example:

   pacer profile status cpu-smoke`,
		Action: runProfileStatus,
	}
}

// statusRun is a run in the JSON of profile status.
type statusRun struct {
	runTally
	Budget *budgetJSON `json:"budget,omitempty"` // where the campaign file was given
}

func runProfileStatus(c *cli.Context) error {
	if c.NArg() > 1 {
		return fail.Usagef("status takes one argument at most, a campaign file or name, got %d", c.NArg())
	}
	name, camp, err := campaignNamed(c.Args().First())
	if err != nil {
		return err
	}
	rows, err := campaignRows(c, name)
	if err != nil {
		return err
	}
	if len(rows) == 0 && name != "" {
		return nothingMeasured(c, name)
	}
	runs := tallyRuns(rows)
	out := []statusRun{}
	for _, r := range runs {
		s := statusRun{runTally: r}
		if camp != nil {
			b := newBudget(camp.Budget)
			s.Budget = &b
		}
		out = append(out, s)
	}
	return command.Print(c, console.Result{
		JSON: map[string]any{"runs": out}, CSV: tallyCSV(runs),
		Table: func(w io.Writer) error { return printStatus(w, runs, camp) },
	})
}

// campaignRows returns the stored rows of a campaign, of all if name is empty.
func campaignRows(c *cli.Context, name string) ([]spec.Measurement, error) {
	f := store.Filter{Sources: []string{sourcePrefix + name}}
	if name == "" {
		names, err := storedCampaigns(c)
		if err != nil || len(names) == 0 {
			return nil, err
		}
		f.Sources = nil
		for _, n := range names {
			f.Sources = append(f.Sources, sourcePrefix+n)
		}
	}
	return dataDir(c).Rows(c.Context, f)
}

// storedCampaigns returns the names of the campaigns that have rows, sorted.
func storedCampaigns(c *cli.Context) (names []string, err error) {
	tallies, err := dataDir(c).Summary(c.Context)
	for _, t := range tallies {
		if name, ok := strings.CutPrefix(t.Source, sourcePrefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// nothingMeasured is the error about a campaign without rows.
func nothingMeasured(c *cli.Context, name string) error {
	names, err := storedCampaigns(c)
	if err != nil {
		return err
	}
	hint := "none yet: pacer profile run CAMPAIGN.yaml measures one"
	if len(names) > 0 {
		hint = strings.Join(names, ", ")
	}
	return fail.NoAnswerf("profile: no point of campaign %s is stored (campaigns there: %s)", name, hint)
}

func printStatus(w io.Writer, runs []runTally, camp *profiler.Campaign) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "No campaign has stored points.")
		return err
	}
	table := [][]string{{"campaign", "run", "model", "accelerator", "points", "outcomes", "noisy", "held", "device-hours"}}
	for _, r := range runs {
		for _, m := range r.Models {
			table = append(table, []string{r.Campaign, r.Label, m.Model, m.Accelerator, strconv.Itoa(m.Points), m.Outcomes.String(), strconv.Itoa(m.Noisy),
				report.Human(report.Number(m.HeldSec)), deviceHours(m.DeviceHours)})
		}
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	for _, r := range runs {
		fmt.Fprintf(w, "%s, run %s: %s, %s, %s device-hours; first %s, last %s\n", r.Campaign, r.Label, pointsOf(r, camp), r.Outcomes,
			deviceHours(r.DeviceHours), r.First.Format("2006-01-02 15:04:05 MST"), r.Last.Format("2006-01-02 15:04:05 MST"))
	}
	return nil
}

// pointsOf says how many points a run has, of how many.
func pointsOf(r runTally, camp *profiler.Campaign) string {
	if camp == nil || camp.Budget.Points == 0 {
		return spec.Count(r.Points, "point")
	}
	return fmt.Sprintf("%d of %d points", r.Points, camp.Budget.Points)
}
