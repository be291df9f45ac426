package command

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// Categories of flags that several verbs have.
const (
	CategoryModel    = "Model"
	CategoryHardware = "Hardware"
	CategoryOutput   = "Output"
)

// TokenVariable holds the bearer token of a server, where no flag names a file of it.
const TokenVariable = "PACER_TOKEN"

// GlobalFlags are the flags of every command.
func GlobalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "data", Usage: "keep the store and the fitted models in `DIR`", DefaultText: "$XDG_DATA_HOME/pacer", Category: "Global"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "print the result as `FORMAT`: table, json or csv; with json errors are JSON on standard error too", Category: "Global"},
		&cli.Int64Flag{Name: "seed", Value: 1, Usage: "derive all randomness from `N`", Category: "Global"},
		&cli.BoolFlag{Name: "progress", Usage: "print progress to standard error every 2 s, also where that is not a terminal", Category: "Global"},
	}
}

// DevicesFlag is the number of devices.
func DevicesFlag(defaultText string) cli.Flag {
	return &cli.IntFlag{Name: "devices", Aliases: []string{"n"}, Usage: "use `N` devices", DefaultText: defaultText, Category: CategoryHardware}
}

// checkOutput rejects an unknown --output before any work is done.
func checkOutput(c *cli.Context) error {
	if f := Global(c, "output"); !slices.Contains(console.Formats, f) {
		return fail.Usagef("--output %q is not one of %s", f, strings.Join(console.Formats, ", "))
	}
	return nil
}

// Given returns the names of the flags on the command line, before or after the verb; output for -o.
func Given(c *cli.Context) (names []string) {
	for _, ctx := range c.Lineage() {
		for _, name := range ctx.LocalFlagNames() {
			if name == "o" {
				name = "output"
			}
			names = append(names, name)
		}
	}
	return names
}

// Print writes a result to standard output in the format of --output.
func Print(c *cli.Context, r console.Result) error { return r.Write(c.App.Writer, Global(c, "output")) }

// Seed is the value of --seed.
func Seed(c *cli.Context) uint64 {
	var n int64
	_, _ = fmt.Sscan(Global(c, "seed"), &n) // an Int64Flag's own text
	return uint64(n)
}

// NoArgs is the Before of commands that take flags only.
func NoArgs(c *cli.Context) error {
	if c.Args().Present() {
		return fail.Usagef("%s takes no arguments, got %q", c.Command.Name, c.Args().First())
	}
	return nil
}

// OnePath returns the only argument of a command, a path.
func OnePath(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 {
		return "", fail.Usagef("%s wants one argument, %s, got %d", c.Command.FullName(), what, c.NArg())
	}
	return filepath.Clean(c.Args().First()), nil
}

// InRange returns a usage error unless the value n of a flag is in 1..most.
func InRange(c *cli.Context, flag string, n, most int) error {
	if n < 1 || n > most {
		return fail.Usagef("%s: --%s %d is not in 1..%d", c.Command.Name, flag, n, most)
	}
	return nil
}

// NotNegative returns a usage error if a flag, an integer or a duration, is below 0.
func NotNegative(c *cli.Context, flag string) error {
	if c.Int(flag) < 0 || c.Duration(flag) < 0 {
		return fail.Usagef("%s: --%s %v is negative", c.Command.Name, flag, c.Value(flag))
	}
	return nil
}

// NotZero returns a usage error for a flag given as 0, which is also the value of a flag that
// is not given.
func NotZero(c *cli.Context, flags ...string) error {
	for _, f := range flags {
		if c.IsSet(f) && (c.Value(f) == 0 || c.Value(f) == 0.0) {
			return fail.Usagef("%s: --%s 0 is not positive", c.Command.Name, f)
		}
	}
	return nil
}

// List splits the comma-separated value of a flag; nil if it is not given.
func List(c *cli.Context, flag string) []string {
	if !c.IsSet(flag) {
		return nil
	}
	return strings.Split(c.String(flag), ",")
}

// Pairs reads KEY=VALUE,... of several uses of a flag.
func Pairs(c *cli.Context, flag string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range c.StringSlice(flag) {
		key, value, ok := strings.Cut(text, "=")
		if _, twice := out[key]; !ok || key == "" || twice {
			return nil, fail.Usagef("%s: --%s %q is not KEY=VALUE, each key once", c.Command.Name, flag, text)
		}
		out[key] = value
	}
	return out, nil
}

// Rows reads the number of rows to fit to, 0 = all.
func Rows(c *cli.Context, name string) (int, error) {
	r := c.String(name)
	if r == "all" {
		return 0, nil
	}
	n, err := strconv.Atoi(r)
	if err != nil || n < 1 {
		return 0, fail.Usagef("%s: --%s %q is neither all nor a number of at least 1", c.Command.Name, name, r)
	}
	return n, nil
}
