package serve

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// variablePrefix begins the environment variable of a flag: PACER_SERVE_LISTEN is --listen.
const variablePrefix = "PACER_SERVE_"

// settle is the Before of the command. Flags that the command line does not give have the value of their
// environment variable, and those without one that of the file of --config.
func settle(c *cli.Context) error {
	if err := command.NoArgs(c); err != nil {
		return err
	}
	var names []string
	flags := map[string]cli.Flag{}
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; name != "config" && name != "help" {
			names, flags[name] = append(names, name), f
		}
	}
	given := command.Given(c)
	for _, name := range names {
		variable := variablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		value, ok := os.LookupEnv(variable)
		if !ok || slices.Contains(given, name) {
			continue
		}
		given = append(given, name)
		if err := c.Set(name, value); err != nil {
			return fail.Usagef("serve: $%s %q %s", variable, value, command.NotA(flags[name], err.Error()))
		}
	}
	if path := c.String("config"); path != "" {
		return readConfig(c, path, names, flags, given)
	}
	return nil
}

// readConfig sets the flags of names that are not given to the values of a YAML file. Its keys are names of flags.
func readConfig(c *cli.Context, path string, names []string, flags map[string]cli.Flag, given []string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fail.Usagef("serve: --config: %w", err)
	}
	f := &yamlfile.File{Name: path, Package: "serve", Kind: "configuration"}
	for _, e := range f.Parse(text).Entries(names...) {
		var values []string
		faults := f.Count()
		for _, n := range e.Value.List() {
			values = append(values, n.Scalar())
		}
		switch {
		case len(values) == 0 && !e.Value.Given():
			f.Fail(e.At, "%s has no value", e.Key)
		case slices.Contains(given, e.Key) || f.Count() > faults:
		default:
			if err := c.Set(e.Key, strings.Join(values, ",")); err != nil {
				e.Value.Fail("%s: %s %s", e.Key, e.Value.What(), command.NotA(flags[e.Key], err.Error()))
			}
		}
	}
	if err := f.Err(); err != nil {
		return fail.Usagef("%w", err)
	}
	return nil
}
