package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Options describe a simulation. Text has the syntax of the flags of pacer simulate;
// the zero value of every field but Workload and Cluster is its default.
type Options struct {
	Workload  string // FILE[:FORMAT], or synthetic:OPTIONS
	Window    string // part of the jobs, A-B; "" = all
	LoadScale string // divides the times between submissions; "" = 1
	Cluster   string // such as 8x8xA800, or a YAML file
	Policy    string // NAME[:key[=value]...][,...]; "" = fifo
	Scheduler string // YAML file with policy, admission, placement, round and compat

	Truth      string // "" = rubick:measured for a rubick workload, else duration
	Belief     string // "" = fitted:rubick under a rubick truth, else perfect
	Substitute string // model that jobs of unknown models run as; "" = they are errors
	HostSpeeds string // CSV file of speeds by CPUs and memory of hosts; "" = they have no effect
	LossNoise  string // deviation of ln(loss) of the jobs' logs; "" = 0.02

	StartCost       string // seconds, or MODEL=SECONDS,...; "" = that of Compat, or 260 under a rubick truth, else 0
	Costs           string // FILE.csv or state[:restart=S][:gbytes=G], in place of StartCost; "" = StartCost
	ResizeCost      string // seconds of a change that keeps devices; "" = a start
	CheckpointEvery string // seconds of training; "" = only when a job is stopped or moved
	Failures        string // UP/DOWN, TYPE=UP/DOWN,... or FILE.csv; "" = none
	Maintenance     string // NODES@FROM/TO,... or FILE.csv; "" = none
	Spot            string // as Failures, then :notice=SECONDS; "" = no node is taken back
	NodeSigma       string // deviation of ln(speed) of nodes; "" = 0
	Stragglers      string // EVERY/LAST/SPEED; "" = none

	Admission string // NAME[:key=value...]; "" = accept-all
	Placement string // "" = that of Compat, else packed
	Round     string // seconds between decisions; "" = that of Compat, else whenever something happens
	Compat    string // NAME[:QUIRK=false...] of another simulator; "" = Pacer's own semantics
	Score     string // FIRST-LAST job numbers that count; "" = all
	Replay    string // recording of pacer schedule, with jobs and cluster; or CSV file of recorded decisions; "" = neither

	Seed uint64 // of all randomness

	// Given replaces what the caller has already made.
	Given Given
	// Data is where stored measurements and fitted models are; zero = there are none.
	Data Data
	// Warn receives what should be seen but stops nothing; nil drops it.
	Warn func(Warning)
}

// Given are parts of a simulation made by the caller. A zero field is made from the
// option of the same name.
type Given struct {
	Jobs          []spec.Job
	Cluster       spec.Cluster
	Truth, Belief *Source
}

// Data gives access to stored measurements and fitted models.
type Data struct {
	Rows   func(context.Context, store.Filter) ([]spec.Measurement, error) // nil = no rows
	Fitted func() (*registry.Registry, error)                              // nil = none
}

func (d Data) rows(ctx context.Context, f store.Filter) ([]spec.Measurement, error) {
	if d.Rows == nil {
		return nil, nil
	}
	return d.Rows(ctx, f)
}

// Warning is what should be seen but stops nothing.
type Warning struct {
	Kind string // "warning", or "skipped" for a row of a file that cannot be used
	Text string
}

// MaxReported bounds the warnings of one kind that are printed.
const MaxReported = 20

// warn reports up to MaxReported texts, and how many more there are of what.
func warn[T any](o *Options, kind, more string, texts []T) {
	if o.Warn == nil {
		return
	}
	for i, text := range texts {
		if i == MaxReported {
			o.Warn(Warning{kind, fmt.Sprintf("%d more %s", len(texts)-i, more)})
			return
		}
		o.Warn(Warning{kind, fmt.Sprint(text)})
	}
}

// setting is an option by the name of its flag.
type setting struct {
	name  string
	value func(*Options) *string
}

var settings = []setting{
	{"workload", func(o *Options) *string { return &o.Workload }},
	{"window", func(o *Options) *string { return &o.Window }},
	{"load-scale", func(o *Options) *string { return &o.LoadScale }},
	{"cluster", func(o *Options) *string { return &o.Cluster }},
	{"policy", func(o *Options) *string { return &o.Policy }},
	{"scheduler", func(o *Options) *string { return &o.Scheduler }},
	{"truth", func(o *Options) *string { return &o.Truth }},
	{"belief", func(o *Options) *string { return &o.Belief }},
	{"substitute-model", func(o *Options) *string { return &o.Substitute }},
	{"host-speeds", func(o *Options) *string { return &o.HostSpeeds }},
	{"loss-noise", func(o *Options) *string { return &o.LossNoise }},
	{"start-cost", func(o *Options) *string { return &o.StartCost }},
	{"costs", func(o *Options) *string { return &o.Costs }},
	{"resize-cost", func(o *Options) *string { return &o.ResizeCost }},
	{"checkpoint-every", func(o *Options) *string { return &o.CheckpointEvery }},
	{"failures", func(o *Options) *string { return &o.Failures }},
	{"maintenance", func(o *Options) *string { return &o.Maintenance }},
	{"spot", func(o *Options) *string { return &o.Spot }},
	{"node-sigma", func(o *Options) *string { return &o.NodeSigma }},
	{"stragglers", func(o *Options) *string { return &o.Stragglers }},
	{"admission", func(o *Options) *string { return &o.Admission }},
	{"placement", func(o *Options) *string { return &o.Placement }},
	{"round", func(o *Options) *string { return &o.Round }},
	{"compat", func(o *Options) *string { return &o.Compat }},
	{"score", func(o *Options) *string { return &o.Score }},
	{"replay", func(o *Options) *string { return &o.Replay }},
}

// Settings returns the names that Set takes: those of the flags of pacer simulate.
func Settings() []string {
	var out []string
	for _, s := range settings {
		out = append(out, s.name)
	}
	return out
}

// Set sets an option by the name of its flag, such as start-cost.
func (o *Options) Set(name, value string) error {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name })
	if i < 0 {
		return invalid(name, value, "is no option of a simulation, nearest: %s", strings.Join(named.Nearest(name, Settings(), 3), ", "))
	}
	*settings[i].value(o) = value
	return nil
}

// setAll sets the options of a map.
func (o *Options) setAll(values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := o.Set(name, values[name]); err != nil {
			return err
		}
	}
	return nil
}

// Validate reports the first option that is missing, or wrong whatever the workload and
// the cluster are. It reads no file.
func (o *Options) Validate() error {
	switch {
	case o.Workload == "" && o.Given.Jobs == nil:
		return &FieldError{Field: "workload", Value: "", Why: "is missing"}
	case o.Cluster == "" && len(o.Given.Cluster.Groups) == 0:
		return &FieldError{Field: "cluster", Value: "", Why: "is missing"}
	}
	for _, f := range []struct {
		name, text string
		ok         func(float64) bool
		want       string
	}{
		{"load-scale", o.LoadScale, func(float64) bool { return true }, "a number"},
		{"loss-noise", o.LossNoise, func(v float64) bool { return v >= 0 && v <= 1 }, "a number in [0, 1]"},
		{"resize-cost", o.ResizeCost, func(v float64) bool { return v >= 0 && v < 1e9 }, "a number of seconds"},
		{"checkpoint-every", o.CheckpointEvery, func(v float64) bool { return v >= 1 && v < 1e9 }, "a number of seconds, at least 1"},
		{"round", o.Round, func(v float64) bool { return v > 0 && v < 1e9 }, "a number of seconds above 0"},
		{"node-sigma", o.NodeSigma, func(float64) bool { return true }, "a number"},
	} {
		if f.text == "" {
			continue
		}
		if v, err := strconv.ParseFloat(f.text, 64); err != nil || !f.ok(v) {
			return invalid(f.name, f.text, "is not %s", f.want)
		}
	}
	return nil
}

// number returns the number in text, which Validate has checked, or def if it is "".
func number(text string, def float64) float64 {
	if text == "" {
		return def
	}
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// FieldError says what is wrong with one option. Other options in its text are in
// braces, so that a caller can write them as flags.
type FieldError = query.FieldError

// fieldName is the name of an option in a FieldError.
func fieldName(setting string) string { return strings.ReplaceAll(setting, "-", "_") }

// invalid is the error of an option with a wrong value.
func invalid(name string, value any, format string, args ...any) error {
	return &FieldError{Field: fieldName(name), Value: value, Why: fmt.Sprintf(format, args...)}
}

// invalidBecause is the error of an option that err explains on its own.
func invalidBecause(name string, value any, err error) error {
	return &FieldError{Field: fieldName(name), Value: value, Err: err}
}

// noAnswer is the error of a valid simulation that cannot run.
func noAnswer(name string, value any, format string, args ...any) error {
	return &FieldError{Field: fieldName(name), Value: value, NoAnswer: true, Err: fmt.Errorf(format, args...)}
}

// givenKeys are the keys of a list of settings that were read so far.
type givenKeys map[string]bool

// add adds a key. It reports whether the list has the key already.
func (g givenKeys) add(key string) (duplicate bool) {
	duplicate = g[key]
	g[key] = true
	return duplicate
}
