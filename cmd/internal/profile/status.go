package profile

import (
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "progress and cost of campaigns, from the store alone",
		ArgsUsage: "[CAMPAIGN.yaml | NAME]",
		Description: `Needs no devices. Without an argument every campaign in the store is listed, by
run. For a campaign file the budget is shown too. Example:

   pacer profile status cpu-smoke`,
		Action: runStatus,
	}
}

// statusRun is a run in the JSON of profile status.
type statusRun struct {
	campaign.Tally
	Budget *campaign.Budget `json:"budget,omitempty"` // if the argument is a campaign file
}

func runStatus(c *cli.Context) error {
	if c.NArg() > 1 {
		return fail.Usagef("status takes one argument at most, a campaign file or name, got %d", c.NArg())
	}
	name, camp, err := campaign.Named(c.Args().First())
	if err != nil {
		return err
	}
	rows, err := campaign.StoredRows(c.Context, datadir.Of(c), name)
	if err != nil {
		return err
	}
	runs := campaign.TallyRuns(rows)
	out := []statusRun{}
	for _, r := range runs {
		s := statusRun{Tally: r}
		if camp != nil {
			b := campaign.NewBudget(camp.Budget)
			s.Budget = &b
		}
		out = append(out, s)
	}
	return command.Print(c, console.Result{
		JSON: map[string]any{"runs": out}, CSV: campaign.TallyCSV(runs),
		Table: func(w io.Writer) error { return printStatus(w, runs, camp) },
	})
}

func printStatus(w io.Writer, runs []campaign.Tally, camp *profiler.Campaign) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "No campaign has stored points.")
		return err
	}
	table := [][]string{{"campaign", "run", "model", "accelerator", "points", "outcomes", "noisy", "held", "device-hours"}}
	for _, r := range runs {
		for _, m := range r.Models {
			table = append(table, []string{r.Campaign, r.Label, m.Model, m.Accelerator, strconv.Itoa(m.Points), m.Outcomes.String(), strconv.Itoa(m.Noisy),
				campaign.Duration(m.HeldSec), campaign.DeviceHours(m.DeviceHours)})
		}
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	for _, r := range runs {
		fmt.Fprintf(w, "%s, run %s: %s, %s, %s device-hours; first %s, last %s\n", r.Campaign, r.Label, pointsOf(r, camp), r.Outcomes,
			campaign.DeviceHours(r.DeviceHours), r.First.Format("2006-01-02 15:04:05 MST"), r.Last.Format("2006-01-02 15:04:05 MST"))
	}
	return nil
}

// pointsOf is the number of points of a run, out of those of the budget.
func pointsOf(r campaign.Tally, camp *profiler.Campaign) string {
	if camp == nil || camp.Budget.Points == 0 {
		return spec.Count(r.Points, "point")
	}
	return fmt.Sprintf("%d of %d points", r.Points, camp.Budget.Points)
}
