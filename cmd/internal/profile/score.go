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
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

func scoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "score",
		Usage:     "compare predictions that were recorded before a campaign with its measurements",
		ArgsUsage: "FILE",
		Description: `FILE was written by profile plan with --predict. Rows of the campaign and label
count if they were measured after the file was written. Example:

   pacer profile plan bench/campaigns/cpu-smoke.yaml --predict before.json
   pacer profile run bench/campaigns/cpu-smoke.yaml
   pacer profile score before.json`,
		Action: runScore,
	}
}

// score is the JSON of profile score.
type score struct {
	Campaign string                `json:"campaign"`
	Label    string                `json:"label"`
	Rows     int                   `json:"rows"`  // that the predictions were fitted to
	Older    int                   `json:"older"` // measured points that do not count, see Score
	Models   []campaign.ModelScore `json:"models"`
	Points   []campaign.Scored     `json:"points"`
}

func runScore(c *cli.Context) error {
	path, err := command.OnePath(c, "FILE")
	if err != nil {
		return err
	}
	p, err := campaign.ReadPredictions(path)
	if err != nil {
		return err
	}
	rows, err := datadir.Of(c).Rows(c.Context, store.Filter{Sources: []string{profiler.SourcePrefix + p.Campaign}})
	if err != nil {
		return err
	}
	var run []spec.Measurement
	for _, m := range rows {
		if m.Env[profiler.EnvRun] == p.Label {
			run = append(run, m)
		}
	}
	scored, older := p.Score(run)
	if len(scored) == 0 {
		return fail.NoAnswerf("profile: score: run %s of campaign %s has no usable row of a predicted point that was measured after %s (%s measured before)",
			p.Label, p.Campaign, p.Created.Format("2006-01-02 15:04:05 MST"), spec.Count(older, "point"))
	}
	out := score{p.Campaign, p.Label, p.Rows, older, campaign.ScoreModels(scored), scored}
	csv, err := console.CSV(scored)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{JSON: out, CSV: csv, Table: func(w io.Writer) error { return printScore(w, out, p) }})
}

func printScore(w io.Writer, s score, p campaign.Predictions) error {
	percent := func(v float64) string { return number.Fixed(100*v, 1) + " %" }
	table := [][]string{{"model", "accelerator", "points", "median error", "mean", "90 % below", "bias", "in interval", "memory"}}
	for _, m := range s.Models {
		table = append(table, []string{m.Model, m.Accelerator, strconv.Itoa(m.Points), percent(m.MedianError), percent(m.MeanError), percent(m.P90Error),
			percent(m.Bias), fmt.Sprintf("%d of %d", m.Within, m.Intervals), percent(m.MedianMem)})
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s, run %s: %d of %d predicted points were measured, predictions of %s by %s from %s.\n", s.Campaign, s.Label, len(s.Points),
		len(p.Points), p.Created.Format("2006-01-02 15:04:05 MST"), p.Family, spec.Count(p.Rows, "row"))
	if err == nil && s.Older > 0 {
		_, err = fmt.Fprintf(w, "%s measured before the predictions do not count.\n", spec.Count(s.Older, "point"))
	}
	return err
}
