package profile

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

func machineCommand() *cli.Command {
	return &cli.Command{
		Name:  "machine",
		Usage: "measure the parts of a training step on this machine, and correct the constants of predictions by them",
		Description: `Multiplications in the shapes and formats of layers and their shards, attention, one
layer, the vocabulary head, the optimizer, memory and the smallest step on one
device, collectives on two: a minute on a CPU. Later predictions, fits and campaigns for
this type of device, with the same data directory, begin with the measured constants. They
are printed beside those assumed before. Measuring again replaces them. Example:

   pacer profile machine --seconds 60`,
		Flags: []cli.Flag{
			devicesListFlag(),
			&cli.IntFlag{Name: "seconds", Value: 60, Usage: "measure for about `N` seconds, 1 to 3600, besides the start of PyTorch", Category: categoryCampaign},
			&cli.IntFlag{Name: "threads", Value: 1, Usage: "use `N` threads for each device if devices are CPUs, as in the campaigns to come", Category: command.CategoryHardware},
		},
		Before: command.NoArgs,
		Action: runMachine,
	}
}

// machineReport is the JSON of profile machine.
type machineReport struct {
	Accelerator string              `json:"accelerator"`
	At          time.Time           `json:"at"`
	Constants   []analytic.Constant `json:"constants"`
	Rows        []machineRow        `json:"rows"`
}

// machineRow is a measured part of a step.
type machineRow struct {
	spec.Microbenchmark
	Median float64 `json:"median_s"`
	Spread float64 `json:"spread"` // standard deviation of the logarithm of a repetition
}

func runMachine(c *cli.Context) (err error) {
	seconds, threads := c.Int("seconds"), c.Int("threads")
	if err := errors.Join(command.InRange(c, "seconds", seconds, 3600), command.InRange(c, "threads", threads, 1024)); err != nil {
		return err
	}
	db, err := datadir.Of(c).Open(store.Options{From: "pacer profile machine"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	b, notes, err := campaign.Microbenchmarks(c.Context, campaignOptions(c), time.Duration(seconds)*time.Second, threads)
	for _, n := range notes {
		fmt.Fprintln(c.App.ErrWriter, "note:", n)
	}
	if err != nil {
		return command.ForVerb(c, err)
	}
	r := machineReport{Accelerator: b.Accelerator.Name, At: b.At}
	if r.Constants, err = analytic.MeasuredConstants(&b); err != nil {
		return err
	}
	if err := db.PutMicrobenchmarks(c.Context, b); err != nil {
		return err
	}
	for _, row := range b.Rows {
		sec, spread := row.Median()
		r.Rows = append(r.Rows, machineRow{row, sec, spread})
	}
	csv, err := console.CSV(r.Constants)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{JSON: r, CSV: csv, Table: func(w io.Writer) error { return printMachine(w, r) }})
}

func printMachine(w io.Writer, r machineReport) error {
	table := [][]string{{"constant", "assumed", "measured", "ratio", "spread"}}
	for _, k := range r.Constants {
		table = append(table, []string{k.Name, number.Significant(k.Assumed, 3), number.Significant(k.Measured, 3), number.Significant(k.Ratio, 3),
			"±" + number.Significant(100*k.Spread, 2) + " %"})
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s on %s. Predictions for it begin with these constants.\n", spec.Count(len(r.Rows), "micro-benchmark"), r.Accelerator)
	return err
}
