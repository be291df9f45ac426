package profiler

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
	"github.com/pacer-ml/pacer/planner/launch"
)

// Defaults and limits of a CommandSpec.
const (
	defaultWarmUp = 5
	defaultTimed  = 20
)

// commandKeys are the keys of runner command in addition to name.
var commandKeys = []string{"command", "env", "cwd", "warmup_steps", "timed_steps", "emit", "framework"}

// variable matches the names of environment variables.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readCommand reads the keys of runner command.
func (r *campaignReader) readCommand(n yamlfile.Node, keys []yamlfile.Entry) {
	c := &r.c.Runner.Command
	c.WarmUp, c.Timed = defaultWarmUp, defaultTimed
	for _, e := range keys {
		switch e.Key {
		case "command":
			for _, arg := range e.Value.List() {
				c.Args = append(c.Args, commandText(arg))
			}
			if e.Value.IsList() && c.Shell() { // a program without arguments, not a line
				c.Args = []string{"/usr/bin/env", c.Args[0]}
			}
		case "env":
			c.Env = readVariables(e.Value)
		case "cwd":
			c.Dir = e.Value.Text()
		case "warmup_steps":
			c.WarmUp = e.Value.Whole(1, maxSteps)
		case "timed_steps":
			c.Timed = e.Value.Whole(1, maxSteps)
		case "emit":
			c.Emit = yamlfile.Word(e.Value, emitNames()...)
		case "framework":
			c.Framework = e.Value.Text()
		}
	}
	if f, err := launch.Lookup(c.Emit); err == nil && c.Framework == "" {
		c.Framework = f.Stack
	}
	switch {
	case len(c.Args) == 0 && c.Emit == "megatron":
		c.Args = []string{"bash {emit}"}
	case len(c.Args) == 0:
		n.Fail("runner command needs the command, such as command: torchrun --nproc-per-node {nproc} train.py --batch-size {mb}")
	case c.Emit == "" && c.Has("emit"):
		n.Fail("the command has {emit}, and nothing is emitted: give emit one of %s", strings.Join(emitNames(), ", "))
	}
}

// commandText returns a text with known placeholders.
func commandText(n yamlfile.Node) string {
	text := n.Scalar()
	if err := checkPlaceholders(text); err != nil {
		n.Fail("%w", err)
	}
	return text
}

// readVariables reads a mapping of environment variables.
func readVariables(n yamlfile.Node) (env []string) {
	for _, e := range n.AnyEntries() {
		if !variable.MatchString(e.Key) {
			e.Value.Fail("%q is not the name of an environment variable", e.Key)
			continue
		}
		env = append(env, e.Key+"="+commandText(e.Value))
	}
	slices.Sort(env)
	return env
}

// emitNames returns the frameworks that emit may name.
func emitNames() (names []string) {
	for _, f := range launch.Frameworks() {
		names = append(names, f.Name)
	}
	return names
}
