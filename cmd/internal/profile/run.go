package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/kubejob"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/trust"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

func runCommand() *cli.Command {
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

Where pacer serve has the data directory open, or with --server, rows and progress are
posted to it, and its page shows how far the campaign is. A server with tokens needs one
with scope ingest in $PACER_TOKEN.

With --on slurm, kubernetes or ssh each point is a job, several at a time. The nodes need this
program and the data directory at the same paths. Interrupted, the jobs go on, and
the same command takes their results. sbatch reads account and partition from its
variables, such as SBATCH_PARTITION; ssh reads ~/.ssh/config. With --nodes points
may use several, such as those of shape 2x8:

   SBATCH_PARTITION=h100 pacer profile run campaign.yaml --on slurm --gpus 8
   pacer profile run campaign.yaml --on ssh --hosts node1,node2 --nodes 2

Another --label starts the campaign over, beside the first run. On every synced
point, standard error has a line like

   profile cpu-smoke: 7 of 40 points: gpt-tiny dp=2,... ok 0.123 s ±1.2 % ...`,
		Flags: append(append(machineFlags(), kubejob.Flags(command.CategoryHardware)...),
			&cli.StringFlag{Name: "on", Usage: "measure each point as a job of a `CLUSTER`: slurm, kubernetes, or ssh for --hosts", DefaultText: "this machine", Category: command.CategoryHardware},
			&cli.StringSliceFlag{Name: "hosts", Usage: "log in to these `HOSTS` with --on ssh, such as node1,node2", Category: command.CategoryHardware},
			&cli.IntFlag{Name: "gpus", Usage: "request `N` GPUs on each node of Slurm or Kubernetes; 0 = measure the CPUs of whole nodes", Category: command.CategoryHardware},
			&cli.IntFlag{Name: "parallel", Value: 4, Usage: "keep up to `N` jobs of --on in the queue", Category: command.CategoryHardware},
			datadir.ServerFlag(categoryCampaign),
			&cli.IntFlag{Name: "max-points", Usage: "stop at `N` points in all instead of the file's budget", DefaultText: "the file's", Category: categoryCampaign},
			&cli.DurationFlag{Name: "max-wall", Usage: "stop after `TIME` such as 30m, earlier sessions of the run included, instead of the file's budget", DefaultText: "the file's", Category: categoryCampaign},
		),
		Action: runCampaign,
	}
}

func runCampaign(c *cli.Context) (err error) {
	if err := checkBudget(c); err != nil {
		return err
	}
	var db *datadir.Rows // opened at the first use, once
	defer func() {
		if db != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	s, err := openCampaign(c, func(ctx context.Context, f store.Filter) (_ []spec.Measurement, err error) {
		if db == nil {
			if db, err = datadir.Of(c).OpenRows(store.Options{From: "pacer profile run"}); err != nil {
				return nil, err
			}
		}
		return query.RowsOf(ctx, db, f)
	}, func(ctx context.Context, accelerator string) (string, error) {
		if db != nil {
			return db.MeasuredText(ctx, accelerator)
		}
		return datadir.Of(c).MeasuredText(ctx, accelerator)
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if db != nil && db.DB != nil {
		notes, err := trust.RunNotes(c.Context, db.DB, s.Campaign.Source(), s.Campaign.Name+"#"+cmp.Or(s.Profiler.Label, "1")+"/")
		if err != nil {
			return err
		}
		s.Notes = append(s.Notes, notes...)
	}
	campaign.PrintRejected(c.App.ErrWriter, s.Rejected, campaign.MaxReasons)
	if len(s.Points) == 0 {
		return s.NoPoints()
	}
	if c.IsSet("max-points") {
		s.Campaign.Budget.Points = c.Int("max-points")
	}
	if c.IsSet("max-wall") {
		s.Campaign.Budget.Wall = c.Duration("max-wall")
	}
	switch {
	case db == nil: // nothing is stored
		return measure(c, s, func(campaign.Progress) {})
	case db.Served == nil:
		s.Profiler.Sink = db.DB // also a profiler.Journal
		return measure(c, s, func(campaign.Progress) {})
	}
	s.Profiler.Sink = db
	s.Notes = append(s.Notes, "rows and progress are posted to pacer serve at "+db.Served.Address())
	return measure(c, s, func(p campaign.Progress) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), time.Second)
		defer cancel()
		_ = db.Served.Do(ctx, http.MethodPost, "/v1/campaigns", p, nil) // the rows matter, and are not lost
	})
}

// checkBudget checks the flags that replace the budget of the file.
func checkBudget(c *cli.Context) error {
	if d := c.Duration("max-wall"); c.IsSet("max-wall") && d <= 0 {
		return fail.Usagef("run: --max-wall %s is not positive", d)
	}
	if !c.IsSet("max-points") {
		return nil
	}
	return command.InRange(c, "max-points", c.Int("max-points"), 1<<20)
}

// measure runs the campaign and prints its summary, also after an interruption.
func measure(c *cli.Context, s *campaign.Session, report func(campaign.Progress)) error {
	own := s.OwnRows()
	s.PrintNotes(c.App.ErrWriter)
	fmt.Fprintln(c.App.ErrWriter, s.Intent(profiler.State{Label: s.Profiler.Label, Done: len(own), Points: s.Count}))
	show := campaign.NewDisplay(c.App.ErrWriter, s.Campaign)
	o, reporter := s.Profiler, campaign.NewReporter(s)
	o.Progress = func(e profiler.Event) {
		if e.Last != nil {
			own = append(own, *e.Last)
		}
		show.Event(e)
		report(reporter.Event(e))
	}
	state, err := profiler.Run(c.Context, s.Campaign, o)
	show.Finish()
	report(reporter.State(state))
	if state.Campaign == "" { // it never began
		return campaign.SetupError(err)
	}
	r := s.Summarize(state, own, command.Global(c, "data"))
	if printErr := command.Print(c, console.Result{JSON: r, CSV: campaign.TallyCSV([]campaign.Tally{r.Tally}),
		Table: func(w io.Writer) error { return printRun(w, r) }}); printErr != nil {
		return errors.Join(err, printErr)
	}
	if err != nil && state.Stopped == profiler.Interrupted {
		return fmt.Errorf("profile: campaign %s interrupted; its %s are stored, the same command goes on",
			s.Campaign.Name, spec.Count(state.Done, "point"))
	}
	if err == nil {
		err = s.Unusable(own)
	}
	return campaign.SetupError(err)
}

func printRun(w io.Writer, r campaign.Summary) error {
	half := map[spec.Key]campaign.ModelAccuracy{}
	for _, k := range r.Known {
		half[spec.Key{Model: k.Model, Accelerator: k.Accelerator}] = k
	}
	table := [][]string{{"model", "accelerator", "points", "outcomes", "noisy", "in doubt", "90 % interval", "device-hours"}}
	for _, m := range r.Models {
		k := half[spec.Key{Model: m.Model, Accelerator: m.Accelerator}]
		table = append(table, []string{m.Model, m.Accelerator, strconv.Itoa(m.Points), m.Outcomes.String(), strconv.Itoa(m.Noisy), strconv.Itoa(m.Doubted),
			campaign.PlusMinus(k.HalfWidth), campaign.DeviceHours(m.DeviceHours)})
	}
	if len(r.Models) > 0 {
		if err := console.WriteTable(w, table); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%s of %d, %s of wall time. Ended: %s.\n", spec.Count(r.Points, "point"), r.Space, campaign.Duration(r.WallSec), r.Stopped)
	if r.Points > 0 {
		fmt.Fprintf(w, "Next: %s\n", strings.Join(r.Next, "\n      "))
	}
	return nil
}
