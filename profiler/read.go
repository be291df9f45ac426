package profiler

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// ReadCampaign reads a campaign file. Messages contain file, line and column. model looks up a name in the
// catalog. The error joins all mistakes in the file; the campaign is valid only if it is nil.
func ReadCampaign(file string, text []byte, model func(name string) (spec.Model, error)) (Campaign, error) {
	r := &campaignReader{File: yamlfile.File{Name: file, Package: "profiler", Kind: "campaign"}, catalog: model}
	top := r.Parse(text)
	if r.Count() == 0 {
		r.campaign(top)
	}
	if r.Count() == 0 {
		r.check()
	}
	if err := r.Err(); err != nil {
		return Campaign{}, err
	}
	return r.c, nil
}

// campaignReader decodes the nodes of a file into c. It keeps the nodes that are checked after all are read.
type campaignReader struct {
	yamlfile.File
	catalog func(name string) (spec.Model, error)
	c       Campaign

	models, runner, space yamlfile.Node
	accelerator           yamlfile.Node
	tp, pp, plans         []yamlfile.Node // one node per element of the lists in c.Space
	pointKeys             []yamlfile.Entry
	spaceKeys             []yamlfile.Entry
}

// namePattern matches names that are safe in paths, sources and labels.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkName(what, s string) error {
	if !namePattern.MatchString(s) {
		return fmt.Errorf("%s %q is not 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit", what, s)
	}
	return nil
}

// CheckLabel returns why s is not a valid Options.Label.
func CheckLabel(s string) error {
	if err := checkName("label", s); err != nil {
		return fmt.Errorf("profiler: %w", err)
	}
	return nil
}

// campaign reads the top-level keys.
func (r *campaignReader) campaign(top yamlfile.Node) {
	named := false
	for _, e := range top.Entries("name", "description", "models", "accelerator", "space", "choose",
		"family", "until", "budget", "point", "runner") {
		if !e.Value.Given() {
			r.Fail(e.At, "%s has no value", e.Key)
			continue
		}
		switch n := e.Value; e.Key {
		case "name":
			r.c.Name, named = n.Text(), true
			if err := checkName("name", r.c.Name); r.c.Name != "" && err != nil {
				n.Fail("%w", err)
			}
		case "description":
			r.c.Description = n.Text()
		case "models":
			r.models = n
		case "accelerator":
			r.accelerator = n
			if r.c.Space.Accelerator = n.Text(); strings.EqualFold(r.c.Space.Accelerator, AnyGPU) {
				r.c.Space.Accelerator = AnyGPU
			}
		case "space":
			r.space = n
		case "choose":
			r.c.Choose = yamlfile.Word(n, Adaptive, Random, Grid)
		case "family":
			r.c.Family = yamlfile.Word(n, family.Names()...)
		case "until":
			r.until(n)
		case "budget":
			r.budget(n)
		case "point":
			r.point(n)
		case "runner":
			r.runner = n
		}
	}
	if !named && r.Count() == 0 {
		top.Fail("the campaign has no name, want a line like name: my-campaign")
	}
	r.readRunner(r.runner) // before the models, since replayed models may have any name
	r.readSpace(r.space)
	r.readModels(r.models)
}

func (r *campaignReader) until(n yamlfile.Node) {
	for _, e := range n.Entries("interval") {
		r.c.Until.Interval = e.Value.Number(0, false, 10)
	}
}

// Limits of values in a file; larger values are mistakes.
const (
	maxPoints      = 1_000_000 // of a budget, and of the product of a space
	maxDeviceHours = 1e9
	maxSteps       = 1_000_000
	maxThreads     = 1 << 16
)

func (r *campaignReader) budget(n yamlfile.Node) {
	for _, e := range n.Entries("points", "device_hours", "wall") {
		switch e.Key {
		case "points":
			r.c.Budget.Points = e.Value.Whole(1, maxPoints)
		case "device_hours":
			r.c.Budget.DeviceHours = e.Value.Number(0, false, maxDeviceHours)
		case "wall":
			r.c.Budget.Wall = e.Value.Duration()
		}
	}
}

func (r *campaignReader) point(n yamlfile.Node) {
	at := map[string]yamlfile.Node{}
	p := &r.c.Point
	r.pointKeys = n.Entries("timeout", "min_steps", "max_steps", "min_time", "max_time", "interval", "compile", "threads")
	for _, e := range r.pointKeys {
		at[e.Key] = e.Value
		switch e.Key {
		case "timeout":
			p.Timeout = e.Value.Duration()
		case "min_steps":
			p.MinSteps = e.Value.Whole(1, maxSteps)
		case "max_steps":
			p.MaxSteps = e.Value.Whole(1, maxSteps)
		case "min_time":
			p.MinTime = e.Value.Duration()
		case "max_time":
			p.MaxTime = e.Value.Duration()
		case "interval":
			p.Interval = e.Value.Number(0, false, 10)
		case "compile":
			p.Compile = e.Value.Flag()
		case "threads":
			p.Threads = e.Value.Whole(1, maxThreads)
		}
	}
	last := func(keys ...string) yamlfile.Node { // the node of a conflict: the first of the given keys that is present
		for _, k := range keys {
			if v, ok := at[k]; ok {
				return v
			}
		}
		return n
	}
	if d := p.Defaults(); d.MinSteps > d.MaxSteps {
		last("max_steps", "min_steps").Fail("min_steps=%d exceeds max_steps=%d", d.MinSteps, d.MaxSteps)
	} else if d.MinTime > d.MaxTime {
		last("min_time").Fail("min_time=%s exceeds max_time=%s", d.MinTime, d.MaxTime)
	} else if d.MaxTime >= d.Timeout {
		last("max_time", "timeout").Fail("max_time=%s leaves no time within timeout=%s to start and warm up", d.MaxTime, d.Timeout)
	}
}

// Names of the runners.
const (
	RunnerTorchrun  = "torchrun"
	RunnerCommand   = "command"
	RunnerReplay    = "replay"
	RunnerSynthetic = "synthetic"
)

func (r *campaignReader) readRunner(n yamlfile.Node) {
	if !n.Given() {
		return
	}
	names := []string{RunnerTorchrun, RunnerCommand, RunnerReplay, RunnerSynthetic}
	if !n.IsMapping() {
		r.c.Runner.Name = yamlfile.Word(n, names...)
	}
	var options []yamlfile.Entry
	if n.IsMapping() {
		for _, e := range n.Entries(append([]string{"name", "source", "noise", "delay"}, commandKeys...)...) {
			switch e.Key {
			case "name":
				r.c.Runner.Name = yamlfile.Word(e.Value, names...)
				continue
			case "source":
				r.c.Runner.Source = e.Value.Text()
			case "noise":
				r.c.Runner.Noise = e.Value.Number(0, true, 1)
			case "delay":
				r.c.Runner.Delay = e.Value.Duration()
			}
			options = append(options, e)
		}
		if r.c.Runner.Name == "" {
			n.Fail("the runner has no name, want torchrun, command, replay or synthetic")
			return
		}
	}
	for _, e := range options {
		if !hasOption(r.c.Runner.Name, e.Key) {
			r.Fail(e.At, "%s has no effect with runner %s", e.Key, r.c.Runner.Name)
		}
	}
	switch {
	case r.c.Runner.Name == RunnerReplay && r.c.Runner.Source == "":
		n.Fail("runner replay needs the source of the stored rows, such as runner: {name: replay, source: rubick}")
	case r.c.Runner.Name == RunnerCommand:
		r.readCommand(n, options)
	}
}

// hasOption reports whether a runner has the key.
func hasOption(runner, key string) bool {
	switch runner {
	case RunnerCommand:
		return slices.Contains(commandKeys, key)
	case RunnerReplay:
		return !slices.Contains(commandKeys, key)
	case RunnerSynthetic:
		return !slices.Contains(commandKeys, key) && key != "source"
	}
	return false
}
