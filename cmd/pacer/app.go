package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
)

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	console := newConsole(stdout, stderr, wantsJSON(args))
	defer console.finish()
	stderr = console.err
	app := newApp(stdin, console.out, stderr)
	app.Metadata = map[string]any{consoleKey: console}
	err := wrongVerb(app, args)
	if err == nil {
		err = app.RunContext(ctx, flagsFirst(app, args))
	}
	if err != nil {
		printError(ctx, stderr, err, wantsJSON(args))
	}
	return exitCode(err)
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:  "pacer",
		Usage: "how fast a training job will run, on what, split how",
		Description: `Measurements go into a store, performance models are fitted on them, plans
and schedulers are judged with the models. A first answer needs no data:

   pacer plan --model llama3-8b --accelerator h100 -n 16 --global-batch 128

Measurements of your own machine:

   pacer profile run bench/campaigns/cpu-smoke.yaml

From measurements to a scheduling study:

   pacer import rubick DIR        DIR is a clone of the published data
   pacer fit --family rubick
   pacer simulate --workload FILE --cluster 8x8xA800 --policy fifo,rubick

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no answer, 4 done in part.`,
		Reader:                 stdin,
		Writer:                 stdout,
		ErrWriter:              stderr,
		Flags:                  globalFlags(),
		Version:                versionString(),
		UseShortOptionHandling: true,
		Suggest:                true,
		Commands: []*cli.Command{
			demoCommand(), importCommand(), exportCommand(), profileCommand(), fitCommand(), predictCommand(),
			planCommand(), curveCommand(), fitCheckCommand(), simulateCommand(), sweepCommand(), learnCommand(), reportCommand(), serveCommand(), lsCommand(), benchCommand(), versionCommand(),
		},
		ExitErrHandler: func(*cli.Context, error) {}, // run decides
		OnUsageError:   usageError,
		Action:         noVerb,
	}
	share(app.Commands)
	return app
}

// share gives every command the global flags too, so that they are accepted
// after the verb, one way to report usage errors, and a description that fits.
func share(cmds []*cli.Command) {
	for _, c := range cmds {
		c.OnUsageError, c.Description = usageError, fill(c.Description)
		if len(c.Subcommands) > 0 {
			share(c.Subcommands)
			if c.Action == nil {
				c.Action = noSubcommand
			}
			continue
		}
		c.Flags, c.Action = append(c.Flags, globalFlags()...), timed(c.Action)
	}
}

// timed shows the progress of an action that takes long.
func timed(action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if o, ok := c.App.Metadata[consoleKey].(*console); ok {
			o.start(c.Command.FullName(), global(c, "progress") == "true")
		}
		c, err := expand(c)
		if err != nil {
			return err
		}
		return action(c)
	}
}

func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "data", Usage: "keep the store and the fitted models in `DIR`", DefaultText: "$XDG_DATA_HOME/pacer", Category: "Global"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "print the result as `FORMAT`: table, json or csv; with json errors are JSON on standard error too", Category: "Global"},
		&cli.Int64Flag{Name: "seed", Value: 1, Usage: "derive all randomness from `N`", Category: "Global"},
		&cli.BoolFlag{Name: "progress", Usage: "print progress to standard error every 2 s, also where that is not a terminal", Category: "Global"},
	}
}

func noVerb(c *cli.Context) error {
	if c.Args().Present() {
		return unknownVerb(c.Args().First(), c.App.Commands)
	}
	return cli.ShowAppHelp(c)
}

func noSubcommand(c *cli.Context) error {
	if c.Args().Present() {
		return unknownVerb(c.Args().First(), c.Command.Subcommands)
	}
	return usagef("%s: say what, one of: %s", c.Command.Name, strings.Join(commandNames(c.Command.Subcommands), ", "))
}

func commandNames(cmds []*cli.Command) []string {
	var names []string
	for _, c := range cmds {
		if !c.Hidden && c.Name != "help" {
			names = append(names, c.Name)
		}
	}
	return names
}

// flagsFirst moves flags that follow arguments before them, because urfave/cli
// stops reading flags at the first argument: `import rubick DIR --data D` works
// like `import rubick --data D DIR`.
func flagsFirst(app *cli.App, args []string) []string {
	head, rest, flags, _ := leaf(app, args)
	var moved, plain []string
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		if a == "--" {
			plain = append(plain, rest[i:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			plain = append(plain, a)
			continue
		}
		moved = append(moved, a)
		if takesValue(flags, a) && i+1 < len(rest) {
			i++
			moved = append(moved, rest[i])
		}
	}
	return append(append(head, moved...), plain...)
}

// leaf splits args at the innermost command they name and returns that
// command's flags and subcommands.
func leaf(app *cli.App, args []string) (head, rest []string, flags []cli.Flag, cmds []*cli.Command) {
	cmds, flags = app.Commands, app.Flags
	i := 1
	for i < len(args) {
		a := args[i]
		if len(a) > 1 && a[0] == '-' {
			i++
			if takesValue(flags, a) {
				i++
			}
			continue
		}
		next := findCommand(cmds, a)
		if next == nil {
			break
		}
		cmds, flags = next.Subcommands, next.Flags
		i++
		if len(cmds) == 0 {
			break
		}
	}
	i = min(i, len(args))
	return args[:i:i], args[i:], flags, cmds
}

func findCommand(cmds []*cli.Command, name string) *cli.Command {
	for _, c := range cmds {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// takesValue reports whether the flag written as arg is followed by its value.
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				_, isBool := f.(*cli.BoolFlag)
				return !isBool
			}
		}
	}
	return false
}

// global returns the value of a global flag, given before or after the verb.
func global(c *cli.Context, name string) string {
	for _, ctx := range c.Lineage() {
		for _, set := range ctx.LocalFlagNames() {
			if set == name || name == "output" && set == "o" {
				return fmt.Sprint(ctx.Value(name))
			}
		}
	}
	return fmt.Sprint(c.Value(name))
}

// dataDir returns the data directory and creates nothing.
func dataDir(c *cli.Context) (string, error) {
	if d := global(c, "data"); d != "" {
		return d, nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "pacer"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no data directory: set --data DIR: %w", err)
	}
	return filepath.Join(home, ".local", "share", "pacer"), nil
}

// noteNoData says once that the directory of --data does not exist, where a
// command reads what it finds there.
func noteNoData(c *cli.Context) {
	const key = "no data noted"
	dir := global(c, "data")
	if dir == "" || c.App.Metadata[key] != nil {
		return
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		c.App.Metadata[key] = true
		fmt.Fprintf(c.App.ErrWriter, "warning: --data %s does not exist, so nothing is stored there\n", dir)
	}
}

func seed(c *cli.Context) uint64 {
	var n int64
	_, _ = fmt.Sscan(global(c, "seed"), &n) // an Int64Flag's own text
	return uint64(n)
}

// noArgs is the Before of commands that take flags only.
func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("%s takes no arguments, got %q", c.Command.Name, c.Args().First())
	}
	return nil
}
