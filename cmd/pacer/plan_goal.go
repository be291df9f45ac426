package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// goalFlags say what a plan is chosen for.
func goalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "objective", Usage: "`WHAT` is best: throughput; cost, least device time a sample; min-devices, fewest for a target; goodput, throughput x statistical efficiency", DefaultText: "throughput"},
		&cli.IntFlag{Name: "min-devices", Usage: "try from `N` to --devices devices", DefaultText: "--devices; 1 with --objective cost and min-devices"},
		&cli.Float64Flag{Name: "target", Usage: "`SAMPLES/S` that --objective min-devices must reach", DefaultText: "none"},
		&cli.Float64Flag{Name: "price-per-hour", Usage: "of one device, in any `CURRENCY`", DefaultText: "1: costs are in device-hours"},
		&cli.IntFlag{Name: "min-batch", Usage: "least global batch of `SAMPLES`, instead of --global-batch", DefaultText: "none"},
		&cli.IntFlag{Name: "max-batch", Usage: "largest global batch of `SAMPLES`", DefaultText: "none"},
		&cli.Float64Flag{Name: "noise-scale", Usage: "gradient noise scale in `SAMPLES`, for --objective goodput (McCandlish et al. 2018)", DefaultText: "none"},
		&cli.IntFlag{Name: "initial-batch", Usage: "global batch of `SAMPLES` the hyperparameters are for", DefaultText: "--min-batch"},
		&cli.Float64Flag{Name: "risk", Usage: "compare plans by the speed they fall short of with probability `P`; 0.05 is the lower bound of the 90 % interval", DefaultText: "the median"},
	}
}

// readGoal reads goalFlags into r.
func readGoal(c *cli.Context, r *planner.Request) error {
	if err := notZero(c, "min-devices", "target", "price-per-hour", "min-batch", "max-batch", "noise-scale", "initial-batch", "risk"); err != nil {
		return err
	}
	g := ask.Goal{
		Objective: c.String("objective"), Target: c.Float64("target"), MinDevices: c.Int("min-devices"), PricePerHour: c.Float64("price-per-hour"),
		Teaching: ask.Teaching{MinBatch: c.Int("min-batch"), MaxBatch: c.Int("max-batch"), NoiseScale: c.Float64("noise-scale"), InitialBatch: c.Int("initial-batch"), Risk: c.Float64("risk")},
	}
	return asFlag(c, g.Set(r))
}

// notZero reports a flag given as 0, which is what flags are that are not given.
func notZero(c *cli.Context, flags ...string) error {
	for _, f := range flags {
		if c.IsSet(f) && (c.Value(f) == 0 || c.Value(f) == 0.0) {
			return usagef("%s: --%s 0 is not positive", c.Command.Name, f)
		}
	}
	return nil
}

// moveFlags ask whether a running job should change over.
func moveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "the job runs as `PLAN`: is going over to the best plan worth it?", DefaultText: "it does not run yet"},
		&cli.StringFlag{Name: "to", Usage: "with --from, go over to `PLAN`", DefaultText: "the best one"},
		&cli.Float64Flag{Name: "remaining", Usage: "`SAMPLES` still to be trained, with --from", DefaultText: "none"},
		&cli.Float64Flag{Name: "restart-s", Usage: "`SECONDS` a restart takes beside reading and writing the checkpoint", DefaultText: "30"},
		&cli.Float64Flag{Name: "storage-gbytes", Usage: "checkpoint storage in `GBYTE/S` for the whole job", DefaultText: "2 a node"},
		&cli.BoolFlag{Name: "in-place", Usage: "devices exchange their state over their links, without a checkpoint"},
	}
}

// readGoing reads moveFlags.
func readGoing(c *cli.Context) (ask.Going, error) {
	g := ask.Going{From: c.String("from"), To: c.String("to"), Remaining: c.Float64("remaining"), RestartS: c.Float64("restart-s"),
		StorageGBytes: c.Float64("storage-gbytes"), InPlace: c.Bool("in-place")}
	if err := notZero(c, "remaining", "restart-s", "storage-gbytes"); err != nil {
		return g, err
	}
	err := g.Check()
	var bad *ask.FieldError
	if errors.As(err, &bad) && bad.Err != nil {
		return g, usagef("%s: %s: %w", c.Command.Name, flagOf(bad.Field), bad.Err)
	}
	return g, asFlag(c, err)
}

// move answers the question of moveFlags about going over to the best plan, or to
// the one of --to; nil if it is not asked.
func (q *question) move(c *cli.Context, best spec.Config) (*ask.MoveRow, error) {
	m, err := q.going.Move(best)
	if m == nil || err != nil {
		return nil, err
	}
	if a, b := m.From.Plan.GlobalBatch(), m.To.Plan.GlobalBatch(); a != b {
		fmt.Fprintf(c.App.ErrWriter, "warning: the plans have global batches of %d and %d; samples are compared, not what they teach\n", a, b)
	}
	moving, err := q.planner.Migrate(c.Context, *m)
	if err != nil {
		return nil, err
	}
	row := ask.NewMoveRow(m, moving)
	return &row, nil
}
