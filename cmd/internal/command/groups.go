package command

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/urfave/cli/v2"
)

// Group is a flag that holds several settings, KEY=VALUE,... Inside the program each setting
// is a flag of its own.
type Group struct {
	Name  string
	Parts func() []cli.Flag
	// Split turns the value into settings KEY=VALUE; nil = the flag is a GroupFlag.
	Split func(value string) ([]string, error)
	// Verbatim values may have a +; in others it stands for a comma.
	Verbatim bool
}

// Groups are the groups of a program.
type Groups []Group

// lookup returns the group of a flag, false if it has none.
func (gs Groups) lookup(name string) (Group, bool) {
	i := slices.IndexFunc(gs, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return Group{}, false
	}
	return gs[i], true
}

// of returns the group that a flag holds, false for any other flag.
func (gs Groups) of(f cli.Flag) (Group, bool) {
	g, ok := gs.lookup(f.Names()[0])
	_, list := f.(*cli.StringSliceFlag)
	_, text := f.(*cli.StringFlag)
	return g, ok && (g.Split == nil && list || g.Split != nil && text)
}

// expand returns c with the settings of its groups as flags.
func (gs Groups) expand(c *cli.Context) (*cli.Context, error) {
	set := flag.NewFlagSet(c.Command.Name, flag.ContinueOnError)
	var used []Group
	for _, f := range c.Command.Flags {
		g, ok := gs.of(f)
		if !ok {
			continue
		}
		used = append(used, g)
		for _, part := range g.Parts() {
			if err := part.Apply(set); err != nil {
				return c, err
			}
		}
	}
	if len(used) == 0 {
		return c, nil
	}
	for _, g := range used {
		if !c.IsSet(g.Name) {
			continue
		}
		if err := g.apply(c, set); err != nil {
			return c, err
		}
	}
	if err := set.Parse(append([]string{"--"}, c.Args().Slice()...)); err != nil { // keeps the arguments
		return c, err
	}
	out := cli.NewContext(c.App, set, c)
	out.Command = c.Command
	return out, nil
}

// apply sets the settings in the value of g.
func (g Group) apply(c *cli.Context, set *flag.FlagSet) error {
	items, err := g.items(c)
	if err != nil {
		return fail.Usagef("%s: --%s %q: %w", c.Command.Name, g.Name, c.Value(g.Name), err)
	}
	var keys []string
	for _, part := range g.Parts() {
		keys = append(keys, part.Names()[0])
	}
	given := map[string]bool{}
	for _, item := range items {
		key, value, ok := strings.Cut(item, "=")
		key = strings.ReplaceAll(key, "_", "-")
		switch {
		case !slices.Contains(keys, key):
			return fail.Usagef("%s: --%s: unknown key %q%s; there are: %s", c.Command.Name, g.Name, key, suggestion(key, keys), strings.Join(keys, ", "))
		case given[key]:
			return fail.Usagef("%s: --%s: %s is given twice", c.Command.Name, g.Name, key)
		case !ok:
			value = "true"
		}
		given[key] = true
		if key != g.Name && !g.Verbatim {
			value = strings.ReplaceAll(value, "+", ",")
		}
		if err := set.Set(key, value); err != nil {
			name := g.Name
			if key != g.Name {
				name += " " + key
			}
			return fail.Usagef("%s: --%s %q %s", c.Command.Name, name, value, NotA(g.Parts()[slices.Index(keys, key)], err.Error()))
		}
	}
	return nil
}

func (g Group) items(c *cli.Context) ([]string, error) {
	if g.Split != nil {
		return g.Split(c.String(g.Name))
	}
	return c.StringSlice(g.Name), nil
}

// GroupFlag is the flag of a group without Split.
func GroupFlag(name, does, example, category string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: fmt.Sprintf("%s: `KEY=VALUE,...` such as %s", does, example), Category: category}
}

// Help lists the settings of groups, for the description of a command.
func (gs Groups) Help(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		g, _ := gs.lookup(name)
		fmt.Fprintf(&b, "\n\nKeys of --%s, lists with + between values:\n\n", name)
		for _, part := range g.Parts() {
			p, ok := part.(cli.DocGenerationFlag)
			if !ok || part.Names()[0] == name {
				continue
			}
			text := strings.ReplaceAll(p.GetUsage(), "`", "")
			if d := p.GetDefaultText(); d != "" && p.TakesValue() {
				text += " (default: " + strings.Trim(d, `"`) + ")"
			}
			b.WriteString(Entry(part.Names()[0], text))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// anyFlag matches a flag in a message.
var anyFlag = regexp.MustCompile(`--[a-z]+(-[a-z]+)*`)

// rename writes the settings of groups in a message as on the command line: --space zero.
func (gs Groups) rename(text string) string {
	return anyFlag.ReplaceAllStringFunc(text, func(name string) string {
		for _, g := range gs {
			for _, part := range g.Parts() {
				if p := part.Names()[0]; "--"+p == name && p != g.Name {
					return "--" + g.Name + " " + p
				}
			}
		}
		return name
	})
}
