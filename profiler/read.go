package profiler

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ReadCampaign reads a campaign file. file is its name for messages, which carry
// line and column; model looks a name of the catalog up. The error joins one for
// everything that is wrong; no point is measured of a campaign with one.
func ReadCampaign(file string, text []byte, model func(name string) (spec.Model, error)) (Campaign, error) {
	r := &campaignReader{yamlFile: yamlFile{name: file}, catalog: model}
	top := r.parse(text)
	if len(r.errs) == 0 {
		r.campaign(top)
	}
	if len(r.errs) == 0 {
		r.check()
	}
	if err := r.err(); err != nil {
		return Campaign{}, err
	}
	return r.c, nil
}

// campaignReader turns the nodes of a file into c. It keeps the nodes of what
// is checked once everything is read.
type campaignReader struct {
	yamlFile
	catalog func(name string) (spec.Model, error)
	c       Campaign

	models, runner, space yamlNode
	accelerator           yamlNode
	shapes, tp, pp, plans []yamlNode // as long as the lists in c.Space
	spaceKeys             []entry
}

// goodName is what fits in paths, sources and labels.
var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkName(what, s string) error {
	if !goodName.MatchString(s) {
		return fmt.Errorf("%s %q is not 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit", what, s)
	}
	return nil
}

// campaign reads the keys at the top of the file.
func (r *campaignReader) campaign(top yamlNode) {
	named := false
	for _, e := range top.entries("name", "description", "models", "accelerator", "space", "choose",
		"family", "until", "budget", "point", "runner") {
		if !e.value.given() {
			r.fail(e.at, "%s has no value", e.key)
			continue
		}
		switch n := e.value; e.key {
		case "name":
			r.c.Name, named = n.text(), true
			if err := checkName("name", r.c.Name); r.c.Name != "" && err != nil {
				n.fail("%w", err)
			}
		case "description":
			r.c.Description = n.text()
		case "models":
			r.models = n
		case "accelerator":
			r.accelerator = n
			if r.c.Space.Accelerator = n.text(); strings.EqualFold(r.c.Space.Accelerator, AnyGPU) {
				r.c.Space.Accelerator = AnyGPU
			}
		case "space":
			r.space = n
		case "choose":
			r.c.Choose = word(n, Adaptive, Random, Grid)
		case "family":
			r.c.Family = word(n, family.Names()...)
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
	if !named && len(r.errs) == 0 {
		top.fail("the campaign has no name, want a line like name: my-campaign")
	}
	r.readRunner(r.runner) // before the models: a replayed one may have any name
	r.readSpace(r.space)
	r.readModels(r.models)
}

func (r *campaignReader) until(n yamlNode) {
	for _, e := range n.entries("interval") {
		r.c.Until.Interval = e.value.number(0, false, 10)
	}
}

// Bounds of what a file may ask for: beyond them are mistakes.
const (
	maxPoints      = 1_000_000 // of a budget, and of the product of a space
	maxDeviceHours = 1e9
	maxSteps       = 1_000_000
	maxThreads     = 1 << 16
)

func (r *campaignReader) budget(n yamlNode) {
	for _, e := range n.entries("points", "device_hours", "wall") {
		switch e.key {
		case "points":
			r.c.Budget.Points = e.value.whole(1, maxPoints)
		case "device_hours":
			r.c.Budget.DeviceHours = e.value.number(0, false, maxDeviceHours)
		case "wall":
			r.c.Budget.Wall = e.value.duration()
		}
	}
}

func (r *campaignReader) point(n yamlNode) {
	at := map[string]yamlNode{}
	p := &r.c.Point
	for _, e := range n.entries("timeout", "min_steps", "max_steps", "min_time", "max_time", "interval", "compile", "threads") {
		at[e.key] = e.value
		switch e.key {
		case "timeout":
			p.Timeout = e.value.duration()
		case "min_steps":
			p.MinSteps = e.value.whole(1, maxSteps)
		case "max_steps":
			p.MaxSteps = e.value.whole(1, maxSteps)
		case "min_time":
			p.MinTime = e.value.duration()
		case "max_time":
			p.MaxTime = e.value.duration()
		case "interval":
			p.Interval = e.value.number(0, false, 10)
		case "compile":
			p.Compile = e.value.flag()
		case "threads":
			p.Threads = e.value.whole(1, maxThreads)
		}
	}
	last := func(keys ...string) yamlNode { // the place of a conflict: whichever is given
		for _, k := range keys {
			if v, ok := at[k]; ok {
				return v
			}
		}
		return n
	}
	if d := p.Defaults(); d.MinSteps > d.MaxSteps {
		last("max_steps", "min_steps").fail("min_steps=%d exceeds max_steps=%d", d.MinSteps, d.MaxSteps)
	} else if d.MinTime > d.MaxTime {
		last("min_time").fail("min_time=%s exceeds max_time=%s", d.MinTime, d.MaxTime)
	} else if d.MaxTime >= d.Timeout {
		last("max_time", "timeout").fail("max_time=%s leaves no time within timeout=%s to start and warm up", d.MaxTime, d.Timeout)
	}
}

// Names of the runners.
const (
	RunnerTorchrun  = "torchrun"
	RunnerReplay    = "replay"
	RunnerSynthetic = "synthetic"
)

func (r *campaignReader) readRunner(n yamlNode) {
	if !n.given() {
		return
	}
	names := []string{RunnerTorchrun, RunnerReplay, RunnerSynthetic}
	if !n.isMapping() {
		r.c.Runner.Name = word(n, names...)
	}
	var options []entry
	if n.isMapping() {
		for _, e := range n.entries("name", "source", "noise", "delay") {
			switch e.key {
			case "name":
				r.c.Runner.Name = word(e.value, names...)
				continue
			case "source":
				r.c.Runner.Source = e.value.text()
			case "noise":
				r.c.Runner.Noise = e.value.number(0, true, 1)
			case "delay":
				r.c.Runner.Delay = e.value.duration()
			}
			options = append(options, e)
		}
		if r.c.Runner.Name == "" {
			n.fail("the runner has no name, want torchrun, replay or synthetic")
			return
		}
	}
	for _, e := range options {
		if r.c.Runner.Name == RunnerTorchrun || r.c.Runner.Name == RunnerSynthetic && e.key == "source" {
			r.fail(e.at, "runner %s takes no %s", r.c.Runner.Name, e.key)
		}
	}
	if r.c.Runner.Name == RunnerReplay && r.c.Runner.Source == "" {
		n.fail("runner replay needs the source of the stored rows, such as runner: {name: replay, source: rubick}")
	}
}
