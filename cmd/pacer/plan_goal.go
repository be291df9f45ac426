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
	g := ask.Goal{
		Objective: c.String("objective"), TargetSamplesPerS: c.Float64("target"), MinDevices: c.Int("min-devices"), PricePerHour: c.Float64("price-per-hour"),
		Teaching: ask.Teaching{MinBatch: c.Int("min-batch"), MaxBatch: c.Int("max-batch"), NoiseScale: c.Float64("noise-scale"), InitialBatch: c.Int("initial-batch"), Risk: c.Float64("risk")},
	}
	if c.IsSet("min-devices") {
		if err := inRange(c, "min-devices", g.MinDevices, r.Devices); err != nil {
			return err
		}
	}
	for _, flag := range []string{"target", "price-per-hour", "noise-scale"} {
		if v := c.Float64(flag); c.IsSet(flag) && !(v > 0 && v < 1e15) {
			return usagef("%s: --%s %g is not positive", c.Command.Name, flag, v)
		}
	}
	if err := needs(c, planner.MinDevices, "target"); err != nil {
		return err
	}
	if err := needs(c, planner.Goodput, "noise-scale", "initial-batch"); err != nil {
		return err
	}
	if c.IsSet("risk") && !(g.Risk > 0 && g.Risk <= 0.5) {
		return usagef("%s: --risk %g is not in (0, 0.5]", c.Command.Name, g.Risk)
	}
	switch planner.Objective(g.Objective) {
	case "", planner.Throughput, planner.Cost:
	case planner.MinDevices:
		if g.TargetSamplesPerS == 0 {
			return usagef("%s: --objective min-devices needs --target SAMPLES/S", c.Command.Name)
		}
	case planner.Goodput:
		if g.NoiseScale == 0 {
			return usagef("%s: --objective goodput needs --noise-scale SAMPLES", c.Command.Name)
		}
	default:
		return usagef("%s: --objective %s is not one of %v", c.Command.Name, g.Objective, planner.Objectives())
	}
	return asFlag(c, g.Set(r))
}

// needs reports a flag that says nothing under another objective.
func needs(c *cli.Context, objective planner.Objective, flags ...string) error {
	for _, f := range flags {
		if c.IsSet(f) && c.String("objective") != string(objective) {
			return usagef("%s: --%s goes with --objective %s", c.Command.Name, f, objective)
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

// move answers the question of moveFlags about going over to the best plan, or to
// the one of --to; nil if it is not asked.
func (q *question) move(c *cli.Context, best spec.Config) (*ask.MoveRow, error) {
	if c.String("from") == "" {
		for _, f := range []string{"to", "remaining", "restart-s", "storage-gbytes", "in-place"} {
			if c.IsSet(f) {
				return nil, usagef("%s: --%s needs --from PLAN, what the job runs by", c.Command.Name, f)
			}
		}
		return nil, nil
	}
	for _, f := range []string{"restart-s", "storage-gbytes"} {
		if v := c.Float64(f); c.IsSet(f) && !(v > 0 && v < 1e9) {
			return nil, usagef("%s: --%s %g is not positive", c.Command.Name, f, v)
		}
	}
	if v := c.Float64("remaining"); c.IsSet("remaining") && !(v > 0 && v < 1e18) {
		return nil, usagef("%s: --remaining %g is not a positive number of samples", c.Command.Name, v)
	}
	if !(c.Float64("remaining") > 0) {
		return nil, usagef("%s: --from needs --remaining SAMPLES, how many are still to be trained", c.Command.Name)
	}
	g := ask.Going{From: c.String("from"), To: c.String("to"), Remaining: c.Float64("remaining"), RestartS: c.Float64("restart-s"),
		StorageGBytes: c.Float64("storage-gbytes"), InPlace: c.Bool("in-place")}
	m, err := g.Move(best)
	var bad *ask.FieldError
	if errors.As(err, &bad) {
		return nil, usagef("%s: --%s: %v", c.Command.Name, bad.Field, bad.Err)
	}
	if err != nil {
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
