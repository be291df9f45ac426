package trust

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// Command is pacer store.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "store",
		Usage: "choose which stored measurements to believe: quarantine, forget, release, list",
		Description: `A wrong row spoils every prediction near it. Quarantine keeps such rows but does
not use them: they are neither fitted, scored, looked up nor replayed. Forget
deletes them, and they stay away when their file is imported again. Release ends
both. Each change is on disk, whole, when the command ends:

   pacer store quarantine --source lab --origin n7.csv --reason "throttled"
   pacer store quarantine --outliers --dry-run
   pacer store ls
   pacer store release --source lab
   pacer fit --family hybrid`,
		Subcommands: []*cli.Command{
			changeCommand("quarantine", "keep measurements, but do not use them", `The rows stay stored and are counted as left out by pacer fit. Exported files and
pacer serve return them as doubted ("quarantined: REASON"). A row that is imported
again stays quarantined. --outliers selects the rows with a step time that the
other rows of their model and accelerator contradict, from any source, as fitted
by family hybrid; each is quarantined with the factor as the reason:

   pacer store quarantine --outliers --model gpt2-xl --dry-run`),
			changeCommand("forget", "delete measurements for good, and refuse them when they are imported again", `Deleted rows are gone: look first with --dry-run. What remains of each is a hash
and its origin, so that importing its file again, from any folder, does not bring
it back; the import says how many rows were refused, and why. Other measurements
of the same plans are welcome: a campaign measures forgotten points anew. To keep
the rows, quarantine them.

   pacer store forget --source campaign/smoke --reason "driver 1.2" --dry-run`),
			changeCommand("release", "end the quarantine of measurements, and admit forgotten ones again", `Quarantined rows are used again, exactly as before. Forgotten rows are not brought
back by it: import their file again. Fitted models do not change until the next
pacer fit.`),
			listCommand(),
			backupCommand(),
			restoreCommand(),
			verifyCommand(),
			compactCommand(),
		},
	}
}

// selectionFlags select rows, forgotten ones included.
func selectionFlags() []cli.Flag {
	return append(command.FilterFlags(),
		&cli.StringSliceFlag{Name: "origin", Usage: "select measurements with `ORIGIN`: one row such as runs.csv:7, or all of a file or run, such as runs.csv (repeatable)", Category: command.CategoryMeasurements})
}

func selectionOf(c *cli.Context) Selection {
	return Selection{Filter: command.StoreFilter(c), Origins: c.StringSlice("origin")}
}

func changeCommand(verb, usage, description string) *cli.Command {
	flags := append(selectionFlags(), &cli.BoolFlag{Name: "dry-run", Usage: "print what would change, and change nothing"})
	switch verb {
	case "quarantine":
		flags = append(flags,
			&cli.BoolFlag{Name: "outliers", Usage: "select, of these, the measurements that the others contradict", Category: command.CategoryMeasurements},
			&cli.StringFlag{Name: "reason", Usage: "record `TEXT` as the reason; required without --outliers", DefaultText: "none"})
	case "forget":
		flags = append(flags, &cli.StringFlag{Name: "reason", Usage: "record `TEXT` as the reason", DefaultText: "none"})
	}
	return &cli.Command{
		Name: verb, Usage: usage, Description: description, Flags: flags, Before: command.NoArgs,
		Action: func(c *cli.Context) error { return runChange(c, datadir.Of(c), verb) },
	}
}

func runChange(c *cli.Context, d *datadir.Dir, verb string) error {
	ch := Change{Selection: selectionOf(c), Verb: verb, Reason: c.String("reason"), Outliers: c.Bool("outliers"), DryRun: c.Bool("dry-run")}
	switch {
	case ch.none() && !ch.Outliers:
		return fail.Usagef("%s: no measurements are selected, want --source, --model, --accelerator or --origin (pacer store ls lists sources)", verb)
	case verb == "quarantine" && ch.Reason == "" && !ch.Outliers:
		return fail.Usagef("quarantine: no --reason is given, want why the measurements are not believed")
	}
	res, err := ch.Apply(c.Context, d)
	if err != nil {
		return err
	}
	if err := command.Print(c, res.Result(ch.DryRun || ch.Outliers)); err != nil || ch.DryRun || res.Changed == 0 {
		return err
	}
	refits, err := res.Refits(d)
	for _, r := range refits {
		fmt.Fprintln(c.App.ErrWriter, "note: fitted models do not change by themselves:", r)
	}
	return err
}

func listCommand() *cli.Command {
	return &cli.Command{
		Name:  "ls",
		Usage: "count stored measurements by source, state, reason and provenance",
		Description: `States: used; in doubt, by a rule of the data set or because no device is that
fast; quarantined and forgotten, by pacer store. The columns by, from and at are
the user that stored the rows, the file or command they came from, and the last
time; for quarantined and forgotten rows, the user and time of that. They are
empty for rows of earlier releases.`,
		Flags: selectionFlags(), Before: command.NoArgs,
		Action: func(c *cli.Context) error {
			gs, err := List(c.Context, datadir.Of(c), selectionOf(c))
			if err != nil {
				return err
			}
			return command.Print(c, ListResult(gs))
		},
	}
}
