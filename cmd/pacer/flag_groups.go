package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// flagGroup is a flag that holds several settings, KEY=VALUE,... Inside the program each
// setting is a flag of its own.
type flagGroup struct {
	name  string
	parts func() []cli.Flag
	// split turns the value into items; nil = a list of KEY=VALUE with commas.
	split func(value string) ([]string, error)
}

var flagGroups = []flagGroup{
	{"network", interconnectFlags, nil},
	{"space", spaceFlags, nil},
	{"axes", axesFlags, nil},
	{"move", moveParts, nil},
	{"objective", objectiveParts, splitObjective},
	{"batch-range", batchRangeParts, splitRange},
	{"model", modelParts, splitModel},
}

// lookupGroup returns the group of a flag, false if it has none.
func lookupGroup(name string) (flagGroup, bool) {
	i := slices.IndexFunc(flagGroups, func(g flagGroup) bool { return g.name == name })
	if i < 0 {
		return flagGroup{}, false
	}
	return flagGroups[i], true
}

// groupOf returns the group that a flag holds, false for any other flag.
func groupOf(f cli.Flag) (flagGroup, bool) {
	g, ok := lookupGroup(f.Names()[0])
	_, list := f.(*cli.StringSliceFlag)
	return g, ok && list == (g.split == nil)
}

// expand returns c with the settings of its groups as flags.
func expand(c *cli.Context) (*cli.Context, error) {
	set := flag.NewFlagSet(c.Command.Name, flag.ContinueOnError)
	var groups []flagGroup
	for _, f := range c.Command.Flags {
		g, ok := groupOf(f)
		if !ok {
			continue
		}
		groups = append(groups, g)
		for _, part := range g.parts() {
			if err := part.Apply(set); err != nil {
				return c, err
			}
		}
	}
	if len(groups) == 0 {
		return c, nil
	}
	for _, g := range groups {
		if !c.IsSet(g.name) {
			continue
		}
		if err := g.apply(c, set); err != nil {
			return c, err
		}
	}
	out := cli.NewContext(c.App, set, c)
	out.Command = c.Command
	return out, nil
}

// apply sets the settings in the value of g.
func (g flagGroup) apply(c *cli.Context, set *flag.FlagSet) error {
	items, err := g.items(c)
	if err != nil {
		return usagef("%s: --%s %q: %w", c.Command.Name, g.name, c.Value(g.name), err)
	}
	var keys []string
	for _, part := range g.parts() {
		keys = append(keys, part.Names()[0])
	}
	given := map[string]bool{}
	for _, item := range items {
		key, value, ok := strings.Cut(item, "=")
		key = strings.ReplaceAll(key, "_", "-")
		if g.name == "model" && key == "name" {
			key = "model"
		}
		switch {
		case !slices.Contains(keys, key):
			return usagef("%s: --%s: unknown key %q%s; there are: %s", c.Command.Name, g.name, key, suggestion(key, keys), strings.Join(keys, ", "))
		case given[key]:
			return usagef("%s: --%s: %s is given twice", c.Command.Name, g.name, key)
		case !ok:
			value = "true"
		}
		given[key] = true
		if key != g.name {
			value = strings.ReplaceAll(value, "+", ",")
		}
		if err := set.Set(key, value); err != nil {
			i := slices.Index(keys, key)
			return usagef("%s: --%s %s %q %s", c.Command.Name, g.name, key, value, notA(g.parts()[i], err.Error()))
		}
	}
	return nil
}

func (g flagGroup) items(c *cli.Context) ([]string, error) {
	if g.split != nil {
		return g.split(c.String(g.name))
	}
	return c.StringSlice(g.name), nil
}

// splitObjective reads NAME[:KEY=VALUE...].
func splitObjective(value string) ([]string, error) {
	items := strings.Split(value, ":")
	items[0] = "objective=" + items[0]
	return items, nil
}

// splitRange reads MIN-MAX.
func splitRange(value string) ([]string, error) {
	lo, hi, ok := strings.Cut(value, "-")
	if !ok {
		return nil, fmt.Errorf("is not MIN-MAX, such as 64-2048")
	}
	return []string{"min-batch=" + lo, "max-batch=" + hi}, nil
}

// splitModel reads KEY=VALUE,... or a YAML or JSON file of such keys; any other value is the
// name of a model or its config.json.
func splitModel(value string) ([]string, error) {
	if _, err := os.Stat(value); err != nil && strings.Contains(value, "=") {
		return strings.Split(value, ","), nil
	}
	ext := strings.ToLower(filepath.Ext(value))
	if ext != ".yaml" && ext != ".yml" {
		return []string{"model=" + value}, nil
	}
	text, err := os.ReadFile(value)
	if err != nil {
		return nil, err
	}
	f := &yamlfile.File{Name: value, Package: "spec", Kind: "model"}
	keys, items := []string{"name"}, []string(nil)
	for _, part := range modelParts() {
		keys = append(keys, part.Names()[0], strings.ReplaceAll(part.Names()[0], "-", "_"))
	}
	for _, e := range f.Parse(text).Entries(keys...) {
		items = append(items, e.Key+"="+e.Value.Scalar())
	}
	return items, f.Err()
}

// modelParts are the name of a model and the numbers of a model of one's own.
func modelParts() []cli.Flag {
	return append(shapeFlags(), &cli.StringFlag{Name: "model"})
}

// groupFlag is the flag of a group of KEY=VALUE settings.
func groupFlag(name, does, example, category string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: fmt.Sprintf("%s: `KEY=VALUE,...` such as %s", does, example), Category: category}
}

// groupHelp lists the settings of groups, for the description of a command.
func groupHelp(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		g, _ := lookupGroup(name)
		fmt.Fprintf(&b, "\n\nKeys of --%s, lists with + between values:\n\n", name)
		for _, part := range g.parts() {
			p, ok := part.(cli.DocGenerationFlag)
			if !ok || part.Names()[0] == name {
				continue
			}
			text := strings.ReplaceAll(p.GetUsage(), "`", "")
			if d := p.GetDefaultText(); d != "" && p.TakesValue() {
				text += " (default: " + strings.Trim(d, `"`) + ")"
			}
			fmt.Fprintf(&b, "   %s\n", part.Names()[0])
			for _, line := range report.Wrap(text, helpWidth-8) {
				fmt.Fprintf(&b, "     %s\n", line)
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// anyFlag matches a flag in a message.
var anyFlag = regexp.MustCompile(`--[a-z]+(-[a-z]+)*`)

// withGroups writes the settings of groups in a message as they are given: --space zero.
func withGroups(text string) string {
	return anyFlag.ReplaceAllStringFunc(text, func(name string) string {
		for _, g := range flagGroups {
			for _, part := range g.parts() {
				if p := part.Names()[0]; "--"+p == name && p != g.name {
					return "--" + g.name + " " + p
				}
			}
		}
		return name
	})
}
