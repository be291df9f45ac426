package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/report"
)

func profileRunCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "measure the points of a campaign, each stored before the next begins",
		ArgsUsage: "CAMPAIGN.yaml",
		Description: `What cannot be run is listed first, then points are measured until the budget is
spent, the intervals are as narrow as the campaign asks, or nothing is left. A
point that runs out of memory, hangs or crashes is a result like any other.
Interrupt it, or pull the plug, and start the same command again: it goes on
after the last point that was said to be stored. Interrupted once, it gives the
processes of the point under way two seconds to end; twice, it kills them at
once. A point at which pacer is killed, or the machine goes down, three times in
a row has failed. Example:

   pacer profile run bench/campaigns/cpu-smoke.yaml --max-wall 2m

Another --label starts the campaign over, beside the first run. On every synced
point, standard error has a line like

   profile cpu-smoke: 7 of 40 points: gpt-tiny dp=2,... ok 0.123 s ±1.2 % ...`,
		Flags: append(append(runFlags(), machineFlags()...),
			&cli.IntFlag{Name: "max-points", Usage: "stop at `N` points in all instead of the file's budget", DefaultText: "the file's"},
			&cli.DurationFlag{Name: "max-wall", Usage: "stop after `TIME` such as 30m, earlier sessions of the run included, instead of the file's budget", DefaultText: "the file's"},
			assumeFlag(),
		),
		Action: runProfileRun,
	}
}

func runProfileRun(c *cli.Context) (err error) {
	camp, err := campaignArg(c)
	if err != nil {
		return err
	}
	if err := overrideBudget(c, &camp); err != nil {
		return err
	}
	var db *store.DB // opened once, and not before it is needed
	defer func() {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	rows := func(f store.Filter) ([]spec.Measurement, error) {
		if db == nil {
			if db, err = dataDir(c).Open(store.Options{}); err != nil {
				return nil, err
			}
		}
		return query.RowsOf(c.Context, db, f)
	}
	s, err := newMeasurementSetup(c, camp, rows, false)
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
	printRejected(c.App.ErrWriter, rejected, maxGroups)
	if len(points) == 0 {
		return noPoints(camp)
	}
	have, err := rows(campaignFilter(c, camp))
	if err != nil {
		return err
	}
	o, err := profileOptions(c, camp, s, have)
	if err != nil {
		return err
	}
	o.Sink = db
	return measure(c, camp, s, o, rejected)
}

// overrideBudget replaces the budget of the file by that of the flags.
func overrideBudget(c *cli.Context, camp *profiler.Campaign) error {
	if c.IsSet("max-points") {
		if err := command.InRange(c, "max-points", c.Int("max-points"), 1<<20); err != nil {
			return err
		}
		camp.Budget.Points = c.Int("max-points")
	}
	if c.IsSet("max-wall") {
		d := c.Duration("max-wall")
		if d <= 0 {
			return fail.Usagef("run: --max-wall %s is not positive", d)
		}
		camp.Budget.Wall = d
	}
	return nil
}

// measure runs the campaign and prints its summary, whatever ended it.
func measure(c *cli.Context, camp profiler.Campaign, s measurementSetup, o profiler.Options, rejected []profiler.Rejected) error {
	mine := ownRows(camp, o)
	s.printNotes(c.App.ErrWriter)
	fmt.Fprintln(c.App.ErrWriter, intent(camp, s, profiler.State{Label: o.Label, Done: len(mine), Points: s.count}))
	show := newCampaignProgress(c.App.ErrWriter, camp)
	o.Progress = func(e profiler.Event) {
		if e.Last != nil {
			mine = append(mine, *e.Last)
		}
		show.event(e)
	}
	state, err := profiler.Run(c.Context, camp, o)
	show.finish()
	if state.Campaign == "" { // it never began
		return setupError(err)
	}
	if emitErr := command.Print(c, runResult(c, camp, state, mine, rejected)); emitErr != nil {
		return errors.Join(err, emitErr)
	}
	if err != nil && state.Stopped == profiler.Interrupted {
		return fmt.Errorf("profile: campaign %s interrupted; its %s are stored, the same command goes on",
			camp.Name, spec.Count(state.Done, "point"))
	}
	if err == nil && len(mine) > 0 && !slices.ContainsFunc(mine, func(m spec.Measurement) bool { return m.Outcome == spec.OK }) {
		return fmt.Errorf("profile: campaign %s: none of its %s ran; the last: %s", camp.Name, spec.Count(len(mine), "point"), pointResult(mine[len(mine)-1]))
	}
	return setupError(err)
}

// ownRows returns those of the stored rows that the run itself measured.
func ownRows(camp profiler.Campaign, o profiler.Options) (mine []spec.Measurement) {
	for _, m := range o.Rows {
		if m.Source == camp.Source() && m.Env[profiler.EnvRun] == o.Label {
			mine = append(mine, m)
		}
	}
	return mine
}

// budgetJSON is a budget in JSON; a field that does not bound is 0.
type budgetJSON struct {
	Points      int     `json:"points"`
	DeviceHours float64 `json:"device_hours"`
	WallSec     float64 `json:"wall_s"`
}

func newBudget(b profiler.Budget) budgetJSON {
	return budgetJSON{b.Points, b.DeviceHours, b.Wall.Seconds()}
}

// intent says in a line what is to be measured, on what, and until when.
func intent(camp profiler.Campaign, s measurementSetup, state profiler.State) string {
	parts := []string{fmt.Sprintf("%s on %s", spec.Count(state.Points, "point"), s)}
	var budget []string
	if camp.Budget.Points > 0 {
		budget = append(budget, spec.Count(camp.Budget.Points, "point"))
	}
	if camp.Budget.DeviceHours > 0 {
		budget = append(budget, fmt.Sprintf("%.3g device-hours", camp.Budget.DeviceHours))
	}
	if camp.Budget.Wall > 0 {
		budget = append(budget, report.Human(report.Number(camp.Budget.Wall.Seconds())))
	}
	if len(budget) > 0 {
		parts = append(parts, "budget "+strings.Join(budget, ", "))
	}
	if camp.Until.Interval > 0 {
		parts = append(parts, fmt.Sprintf("until intervals are within %.3g %%", 100*camp.Until.Interval))
	}
	if state.Done > 0 {
		parts = append(parts, fmt.Sprintf("%d done", state.Done))
	}
	return fmt.Sprintf("profile %s, run %s: %s", camp.Name, state.Label, strings.Join(parts, "; "))
}

// runSummary is the JSON of profile run.
type runSummary struct {
	runTally
	Space    int             `json:"space"` // points there are
	Skipped  []rejectedGroup `json:"skipped"`
	Rejected []rejectedGroup `json:"rejected"`
	WallSec  float64         `json:"wall_s"`
	Stopped  string          `json:"stopped"`
	Known    []modelKnown    `json:"known"`
	Budget   budgetJSON      `json:"budget"`
	Next     []string        `json:"next"` // commands
}

func runResult(c *cli.Context, camp profiler.Campaign, state profiler.State, mine []spec.Measurement, rejected []profiler.Rejected) console.Result {
	r := runSummary{
		runTally: tallyRun(camp.Name, state.Label, mine), Space: state.Points,
		Skipped: groupRejected(state.Skips), Rejected: groupRejected(rejected),
		WallSec: state.WallSec, Stopped: state.Stopped, Known: known(state.Models), Budget: newBudget(camp.Budget), Next: nextCommands(c, camp, mine),
	}
	return console.Result{
		JSON:  r,
		CSV:   tallyCSV([]runTally{r.runTally}),
		Table: func(w io.Writer) error { return printRun(w, r) },
	}
}

// nextCommands are what to do with the rows of camp; without one to fit on there
// is nothing to fit.
func nextCommands(c *cli.Context, camp profiler.Campaign, rows []spec.Measurement) []string {
	data := ""
	if d := command.Global(c, "data"); d != "" {
		data = " --data " + shellQuote(d)
	}
	next := []string{"pacer export " + camp.Name + ".parquet --source " + camp.Source() + data}
	if slices.ContainsFunc(rows, perfmodel.Usable) {
		next = slices.Insert(next, 0, "pacer fit --source "+camp.Source()+data)
	}
	return next
}

// shellQuote writes s so that a shell reads it as one word.
func shellQuote(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(plainChars, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+:@%,="

func printRun(w io.Writer, r runSummary) error {
	half := map[spec.Key]modelKnown{}
	for _, k := range r.Known {
		half[spec.Key{Model: k.Model, Accelerator: k.Accelerator}] = k
	}
	table := [][]string{{"model", "accelerator", "points", "outcomes", "noisy", "in doubt", "90 % interval", "device-hours"}}
	for _, m := range r.Models {
		k := half[spec.Key{Model: m.Model, Accelerator: m.Accelerator}]
		table = append(table, []string{m.Model, m.Accelerator, strconv.Itoa(m.Points), m.Outcomes.String(), strconv.Itoa(m.Noisy), strconv.Itoa(m.Doubted),
			plusMinus(k.HalfWidth), deviceHours(m.DeviceHours)})
	}
	if len(r.Models) > 0 {
		if err := console.WriteTable(w, table); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%s of %d, %s of wall time. Ended: %s.\n", spec.Count(r.Points, "point"), r.Space,
		report.Human(report.Number(r.WallSec)), r.Stopped)
	if r.Points > 0 {
		fmt.Fprintf(w, "Next: %s\n", strings.Join(r.Next, "\n      "))
	}
	return nil
}

// tallyCSV has a row per model of every run.
func tallyCSV(runs []runTally) [][]string {
	csv := [][]string{{"campaign", "label", "model", "accelerator", "points", "ok", "oom", "timeout", "failed", "noisy", "flagged",
		"device_hours", "held_s", "first", "last", "doubted"}}
	for _, r := range runs {
		for _, m := range r.Models {
			n := m.Outcomes
			csv = append(csv, []string{r.Campaign, r.Label, m.Model, m.Accelerator, strconv.Itoa(m.Points), strconv.Itoa(n.OK), strconv.Itoa(n.OOM), strconv.Itoa(n.Timeout),
				strconv.Itoa(n.Failed), strconv.Itoa(m.Noisy), strconv.Itoa(m.Flagged), console.Float(m.DeviceHours), console.Float(m.HeldSec),
				r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339), strconv.Itoa(m.Doubted)})
		}
	}
	return csv
}
