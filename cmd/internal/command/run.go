package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// consoleKey is the key of the console of a run in the metadata of its app.
const consoleKey = "console"

// Run runs a program and returns its exit code. makeApp builds it; groups are its flags that
// hold several settings.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, makeApp func() *cli.App, groups Groups) int {
	asJSON := wantsJSON(args)
	terminal := console.New(stdout, stderr, asJSON)
	defer terminal.Finish()
	app := Prepare(makeApp(), groups)
	app.Reader, app.Writer, app.ErrWriter = stdin, terminal.Out(), terminal.Err()
	app.Metadata = map[string]any{consoleKey: terminal}
	err := wrongVerb(app, args)
	if err == nil {
		err = app.RunContext(ctx, flagsFirst(app, args))
	}
	if err != nil {
		printError(ctx, terminal.Err(), err, asJSON, groups)
	}
	return fail.Code(err)
}

// Prepare completes an app: every command accepts the global flags too, after its name,
// reports usage errors alike, and has a description that fits.
func Prepare(app *cli.App, groups Groups) *cli.App {
	app.Description, app.Flags = fill(app.Description), append(app.Flags, GlobalFlags()...)
	app.UseShortOptionHandling, app.Suggest = true, true
	app.ExitErrHandler = func(*cli.Context, error) {} // Run decides
	app.OnUsageError, app.Action = usageError, noVerb
	share(app.Commands, groups)
	return app
}

func share(cmds []*cli.Command, groups Groups) {
	for _, c := range cmds {
		c.OnUsageError, c.Description = usageError, fill(c.Description)
		if len(c.Subcommands) > 0 {
			share(c.Subcommands, groups)
			if c.Action == nil {
				c.Action = noSubcommand
			}
			continue
		}
		c.Flags, c.Action = append(c.Flags, GlobalFlags()...), prepared(c.Action, groups)
	}
}

// prepared expands the groups of flags, checks --output and shows the progress of a long
// action.
func prepared(action cli.ActionFunc, groups Groups) cli.ActionFunc {
	return func(c *cli.Context) error {
		if o, ok := c.App.Metadata[consoleKey].(*console.Console); ok {
			o.Start(c.Command.FullName(), Global(c, "progress") == "true")
		}
		c, err := groups.expand(c)
		if err == nil {
			err = checkOutput(c)
		}
		if err != nil {
			return err
		}
		return action(c)
	}
}

// ShowProgress replaces the progress line of a long run; nil ends it.
func ShowProgress(c *cli.Context, status func() string) {
	if o, ok := c.App.Metadata[consoleKey].(*console.Console); ok {
		o.Show(status)
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
	return fail.Usagef("%s: say what, one of: %s", c.Command.Name, strings.Join(commandNames(c.Command.Subcommands), ", "))
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

// flagsFirst moves flags that follow arguments before them, because urfave/cli stops reading
// flags at the first argument: `import rubick DIR --data D` works like
// `import rubick --data D DIR`.
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

// leaf splits args at the innermost command they name and returns that command's flags and
// subcommands.
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
	f := findFlag(name, flags)
	if strings.Contains(name, "=") || f == nil {
		return false
	}
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

// Global returns the value of a global flag, given before or after the verb.
func Global(c *cli.Context, name string) string {
	for _, ctx := range c.Lineage() {
		for _, set := range ctx.LocalFlagNames() {
			if set == name || name == "output" && set == "o" {
				return fmt.Sprint(ctx.Value(name))
			}
		}
	}
	return fmt.Sprint(c.Value(name))
}
