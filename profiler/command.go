package profiler

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// CommandSpec is the user's own training command, for the runner "command". Its texts may have placeholders such as
// {dp}, see Placeholders; {{dp}} stands for {dp}, and ${NAME} is left to the shell.
type CommandSpec struct {
	Args          []string // program and arguments; a single one is a line for the shell
	Env           []string // "KEY=value", sorted
	Dir           string   // working directory, "" = that of this process
	WarmUp, Timed int      // training steps that are not measured, and that are; 0 = 5 and 20
	// Emit is the framework of package planner/launch for which the settings of each point are written to {emit};
	// "" = none.
	Emit string
	// Framework is the training stack of the measurements, in the form of package stack; "" = that of Emit, or not
	// recorded.
	Framework string
}

// Shell reports whether the command is a line for the shell.
func (c CommandSpec) Shell() bool { return len(c.Args) == 1 }

// Steps returns the training steps that the command should make.
func (c CommandSpec) Steps() int { return c.WarmUp + c.Timed }

// EndsItself reports whether the command receives its number of steps.
func (c CommandSpec) EndsItself() bool { return c.Emit != "" || c.Has("steps") }

// Has reports whether a text of c has the placeholder.
func (c CommandSpec) Has(placeholder string) bool {
	return slices.ContainsFunc(c.texts(), func(text string) bool {
		return slices.Contains(placeholdersIn(text), placeholder)
	})
}

// Hash identifies the command, its variables and settings.
func (c CommandSpec) Hash() string {
	all := fmt.Sprintf("%q %q %q %d %d %q %q", c.Args, c.Env, c.Dir, c.WarmUp, c.Timed, c.Emit, c.Framework)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(all)))[:16]
}

func (c CommandSpec) texts() []string { return append(slices.Clone(c.Args), c.Env...) }

// String returns the command in one line, without its variables.
func (c CommandSpec) String() string { return strings.Join(c.Args, " ") }

// Places are the values of a point that its configuration does not have.
type Places struct {
	Steps     int
	Address   string // of node 0
	Port      int
	Node      int    // number of this node
	Out, Emit string // paths
}

// placeholders are the names with their values.
var placeholders = []struct {
	name, doc string
	value     func(c *spec.Config, at Places) string
}{
	{"dp", "data parallel degree", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.DP) }},
	{"tp", "tensor parallel degree", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.TP) }},
	{"pp", "pipeline parallel degree", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.PP) }},
	{"cp", "context parallel degree", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.CP) }},
	{"ep", "expert parallel degree", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.EP) }},
	{"mb", "samples of a micro-batch", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.MicroBatch) }},
	{"ga", "micro-batches per step", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.AccumSteps) }},
	{"gbs", "samples per step", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.GlobalBatch()) }},
	{"zero", "ZeRO stage", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Plan.ZeRO) }},
	{"sp", "1 with sequence parallelism, else 0", func(c *spec.Config, _ Places) string {
		return strconv.Itoa(map[bool]int{true: 1}[c.Plan.SequenceParallel])
	}},
	{"recompute", "none, selective or full", func(c *spec.Config, _ Places) string { return string(c.Plan.Recompute) }},
	{"offload", "none, optimizer or params", func(c *spec.Config, _ Places) string { return string(c.Plan.Offload) }},
	{"precision", "number format, such as bf16", func(c *spec.Config, _ Places) string { return string(c.Plan.Precision) }},
	{"model", "name of the model", func(c *spec.Config, _ Places) string { return c.Model.Name }},
	{"seq", "tokens per sample", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Seq()) }},
	{"steps", "warmup_steps + timed_steps", func(_ *spec.Config, at Places) string { return strconv.Itoa(at.Steps) }},
	{"nproc", "devices per node", func(c *spec.Config, _ Places) string { return strconv.Itoa(c.Shape.Most()) }},
	{"nodes", "nodes", func(c *spec.Config, _ Places) string { _, n, _, _ := c.Shape.Stats(); return strconv.Itoa(n) }},
	{"node", "number of this node, from 0", func(_ *spec.Config, at Places) string { return strconv.Itoa(at.Node) }},
	{"address", "address of node 0", func(_ *spec.Config, at Places) string { return at.Address }},
	{"port", "a free TCP port of node 0", func(_ *spec.Config, at Places) string { return strconv.Itoa(at.Port) }},
	{"out", "an empty directory, removed afterwards", func(_ *spec.Config, at Places) string { return at.Out }},
	{"emit", "the file that emit wrote", func(_ *spec.Config, at Places) string { return at.Emit }},
}

// Placeholders returns the names of all placeholders.
func Placeholders() []string {
	out := make([]string, len(placeholders))
	for i, p := range placeholders {
		out[i] = p.name
	}
	return out
}

// placeholder matches {{name}}, ${name} and {name}, in this order.
var placeholder = regexp.MustCompile(`\{\{[A-Za-z][A-Za-z0-9_]*\}\}|\$\{[A-Za-z][A-Za-z0-9_]*\}|\{[A-Za-z][A-Za-z0-9_]*\}`)

// placeholdersIn returns the names that text has in braces.
func placeholdersIn(text string) (names []string) {
	for _, found := range placeholder.FindAllString(text, -1) {
		if found[0] == '{' && found[1] != '{' {
			names = append(names, found[1:len(found)-1])
		}
	}
	return names
}

// checkPlaceholders returns an error for the first unknown placeholder in text.
func checkPlaceholders(text string) error {
	for _, name := range placeholdersIn(text) {
		if known := Placeholders(); !slices.Contains(known, name) {
			return fmt.Errorf("unknown placeholder {%s}, nearest is {%s}; write {{%s}} for the text {%s}",
				name, named.Nearest(name, known, 1)[0], name, name)
		}
	}
	return nil
}

// Expand returns the arguments and variables for a point. A line for the shell becomes the arguments of sh.
func (c CommandSpec) Expand(x spec.Config, at Places) (args, env []string) {
	x.Plan = x.Plan.Normal()
	at.Steps = cmp.Or(at.Steps, c.Steps())
	quote := func(s string) string { return s }
	for _, text := range c.Env {
		env = append(env, expand(text, &x, at, quote))
	}
	if c.Shell() {
		return []string{"/bin/sh", "-c", expand(c.Args[0], &x, at, shellQuote)}, env
	}
	for _, text := range c.Args {
		args = append(args, expand(text, &x, at, quote))
	}
	return args, env
}

func expand(text string, c *spec.Config, at Places, quote func(string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case found[0] == '$':
			return found
		case found[1] == '{':
			return found[1 : len(found)-1]
		}
		for _, p := range placeholders {
			if p.name == found[1:len(found)-1] {
				return quote(p.value(c, at))
			}
		}
		return found // ReadCampaign has refused it
	})
}

// plainWord matches words that the shell leaves alone.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,+-]+$`)

func shellQuote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
