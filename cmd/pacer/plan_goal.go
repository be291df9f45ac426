package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// objectiveFlags say what a plan is chosen for.
func objectiveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "objective", Usage: "choose by `NAME[:KEY=VALUE...]`: throughput; cost, least device time a sample; min-devices:target=SAMPLES/S; goodput:noise-scale=SAMPLES, throughput x statistical efficiency", DefaultText: "throughput", Category: categoryObjective},
		&cli.IntFlag{Name: "min-devices", Usage: "try from `N` to --devices devices", DefaultText: "--devices; 1 with --objective cost and min-devices", Category: categoryObjective},
		batchRangeFlag(),
	}
}

// objectiveParts are the settings of --objective.
func objectiveParts() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "objective"},
		&cli.Float64Flag{Name: "target", Usage: "samples/s that min-devices must reach", DefaultText: "none"},
		&cli.Float64Flag{Name: "price-per-hour", Usage: "price of one device, in any currency", DefaultText: "1: costs are in device-hours"},
		&cli.Float64Flag{Name: "noise-scale", Usage: "gradient noise scale in samples, for goodput (McCandlish et al. 2018)", DefaultText: "none"},
		&cli.IntFlag{Name: "initial-batch", Usage: "global batch in samples that the hyperparameters are for", DefaultText: "the least of --batch-range"},
		&cli.Float64Flag{Name: "risk", Usage: "compare plans by the speed they fall short of with this probability; 0.05 is the lower bound of the 90 % interval", DefaultText: "the median"},
	}
}

// batchRangeParts are the settings of --batch-range.
func batchRangeParts() []cli.Flag {
	return []cli.Flag{&cli.IntFlag{Name: "min-batch"}, &cli.IntFlag{Name: "max-batch"}}
}

// readGoal reads the objective into r.
func readGoal(c *cli.Context, r *planner.Request) error {
	if err := command.NotZero(c, "min-devices", "target", "price-per-hour", "min-batch", "max-batch", "noise-scale", "initial-batch", "risk"); err != nil {
		return err
	}
	g := query.Goal{
		Objective: c.String("objective"), Target: c.Float64("target"), MinDevices: c.Int("min-devices"), PricePerHour: c.Float64("price-per-hour"),
		BatchRange: query.BatchRange{MinBatch: c.Int("min-batch"), MaxBatch: c.Int("max-batch"), NoiseScale: c.Float64("noise-scale"), InitialBatch: c.Int("initial-batch"), Risk: c.Float64("risk")},
	}
	return command.ForVerb(c, g.Set(r))
}

// moveFlags ask whether a running job should migrate.
func moveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "say whether a job that runs as `PLAN` should migrate to the best plan", DefaultText: "the job does not run yet", Category: "Migration"},
		command.GroupFlag("move", "describe the migration", "remaining=1e6,restart-s=60", "Migration"),
	}
}

// moveParts are the settings of --move.
func moveParts() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "remaining", Usage: "samples still to be trained", DefaultText: "none"},
		&cli.StringFlag{Name: "to", Usage: "the plan to migrate to, with + for commas", DefaultText: "the best one"},
		&cli.Float64Flag{Name: "restart-s", Usage: "seconds of a restart beside reading and writing the checkpoint", DefaultText: "30"},
		&cli.Float64Flag{Name: "storage-gbytes", Usage: "checkpoint storage in GB/s for the whole job", DefaultText: "2 a node"},
		&cli.BoolFlag{Name: "in-place", Usage: "devices exchange their state over their links, without a checkpoint"},
	}
}

// readMigration reads moveFlags.
func readMigration(c *cli.Context) (query.Migration, error) {
	g := query.Migration{From: c.String("from"), To: c.String("to"), Remaining: c.Float64("remaining"), RestartS: c.Float64("restart-s"),
		StorageGBytes: c.Float64("storage-gbytes"), InPlace: c.Bool("in-place")}
	if err := command.NotZero(c, "remaining", "restart-s", "storage-gbytes"); err != nil {
		return g, err
	}
	err := g.Check()
	var bad *query.FieldError
	if errors.As(err, &bad) && bad.Err != nil {
		return g, fail.Usagef("%s: %s: %w", c.Command.Name, command.FlagOf(bad.Field), bad.Err)
	}
	return g, command.ForVerb(c, err)
}

// move compares the running plan with the best plan, or with setting to of --move; nil
// without --from.
func (q *question) move(c *cli.Context, best spec.Config) (*query.MoveRow, error) {
	m, err := q.migration.Move(best)
	if m == nil || err != nil {
		return nil, err
	}
	if a, b := m.From.Plan.GlobalBatch(), m.To.Plan.GlobalBatch(); a != b {
		fmt.Fprintf(c.App.ErrWriter, "warning: the plans have global batches of %d and %d; samples are compared, not their statistical efficiency\n", a, b)
	}
	moving, err := q.planner.Migrate(c.Context, *m)
	if err != nil {
		return nil, err
	}
	row := query.NewMoveRow(m, moving)
	return &row, nil
}
