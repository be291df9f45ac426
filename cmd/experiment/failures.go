package experiment

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// failures are what starts cost, and what goes wrong with nodes.
type failures struct {
	costs     sim.Costs
	costsText string // as given, or the default
	every     time.Duration
	outages   func(seed uint64) sim.Failures // nil = none
	speeds    sim.Variation                  // without its seed
	text      string                         // what goes wrong, as given
	files     [][sha256.Size]byte            // digests of the tables read
}

// config puts the failures of a seed into a run.
func (f *failures) config(c *sim.Config, seed uint64) {
	c.Costs, c.CheckpointEvery = f.costs, f.every
	if f.outages != nil {
		c.Failures = f.outages(seed)
	}
	if f.speeds != (sim.Variation{}) {
		v := f.speeds
		v.Seed = seed
		c.Speeds = v
	}
}

// drawnFailures reports whether the failures of these settings follow from the seed.
func drawnFailures(settings map[string]string) bool {
	return settings["node-sigma"] != "" || settings["stragglers"] != "" || settings["failures"] != "" && !isTable(settings["failures"])
}

// isTable reports whether the value of an option names a file.
func isTable(text string) bool { return strings.EqualFold(filepath.Ext(text), ".csv") }

// readFailureOptions reads the options about costs and failures; startCost is the default
// of StartCost.
func (s *Simulation) readFailureOptions(o *Options, startCost time.Duration) (failures, error) {
	var f failures
	if err := s.readCosts(&f, startCost); err != nil {
		return f, err
	}
	if o.ResizeCost != "" {
		v := number(o.ResizeCost, 0)
		f.costs = sim.Resizing{Costs: f.costs, Resize: time.Duration(v * float64(time.Second))}
		f.costsText += fmt.Sprintf(", %g s for a change while it runs", v)
	}
	f.every = time.Duration(number(o.CheckpointEvery, 0) * float64(time.Second))
	if err := s.readOutages(&f, o.Failures); err != nil {
		return f, err
	}
	if err := f.readSpeeds(o); err != nil {
		return f, err
	}
	f.text = failuresText(o)
	if s.composition.mode.Parts().Rules.Lockstep != nil && (f.every > 0 || f.outages != nil || f.speeds != (sim.Variation{})) {
		return f, invalid("compat", s.composition.mode.Name, "has no {checkpoint_every}, {failures}, {node_sigma} and {stragglers}: leave them out, or turn its quirk barrier off")
	}
	return f, nil
}

// failuresText repeats the options about failures.
func failuresText(o *Options) string {
	var words []string
	for _, f := range []struct{ name, text string }{
		{"failures", o.Failures}, {"checkpoint-every", o.CheckpointEvery}, {"node-sigma", o.NodeSigma}, {"stragglers", o.Stragglers},
	} {
		if f.text != "" {
			words = append(words, f.name+" "+f.text)
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// maxTableFile bounds tables of costs and outages, in bytes.
const maxTableFile = 64 << 20

// readTable reads the file of an option and keeps its digest.
func (f *failures) readTable(option, path string) (*bytes.Reader, error) {
	text, err := query.ReadFile(option, path, maxTableFile)
	if err != nil {
		return nil, err
	}
	f.files = append(f.files, sha256.Sum256(text))
	return bytes.NewReader(text), nil
}

// readOutages reads UP/DOWN[,TYPE=UP/DOWN...] or FILE.csv.
func (s *Simulation) readOutages(f *failures, text string) error {
	if text == "" {
		return nil
	}
	if isTable(text) {
		r, err := f.readTable("failures", text)
		if err != nil {
			return err
		}
		table, err := sim.ReadOutages(r, text, s.Cluster.Nodes())
		if err != nil {
			return invalidBecause("failures", text, err)
		}
		f.outages = func(uint64) sim.Failures { return table }
		return nil
	}
	lives := map[string]sim.Lifetime{} // by accelerator, "" = all others
	for _, item := range strings.Split(text, ",") {
		kind, times, named := strings.Cut(item, "=")
		if !named {
			kind, times = "", item
		}
		up, down, _ := strings.Cut(times, "/")
		u, err1 := parseTime(up)
		d, err2 := parseTime(down)
		if err1 != nil || err2 != nil {
			return invalid("failures", text, ": %q is not UP/DOWN, mean times of at least a second each such as 30d/2h", times)
		}
		if _, twice := lives[kind]; twice {
			return invalid("failures", text, ": %q says it a second time", item)
		}
		if named && !s.hasAccelerator(kind) {
			return invalid("failures", text, ": the cluster is %s, without %s", ClusterText(s.Cluster), kind)
		}
		lives[kind] = sim.Lifetime{Up: u, Down: d}
	}
	of := func(g *spec.NodeGroup) sim.Lifetime {
		if l, ok := lives[g.Accelerator.Name]; ok {
			return l
		}
		return lives[""]
	}
	drawn, err := sim.NewLifetimes(s.Cluster, 0, of)
	f.outages = func(seed uint64) sim.Failures {
		l := drawn
		l.Seed = seed
		return l
	}
	return err
}

// readSpeeds reads NodeSigma and Stragglers.
func (f *failures) readSpeeds(o *Options) error {
	f.speeds.Sigma = number(o.NodeSigma, 0)
	name, value := "node-sigma", o.NodeSigma
	if o.Stragglers != "" {
		name, value = "stragglers", o.Stragglers
		if !f.readStragglers(o.Stragglers) {
			return invalid(name, value, "is not EVERY/LAST/SPEED, two mean times of at least a second and a speed above 0 and below 1, such as 10d/1h/0.5")
		}
	}
	if err := f.speeds.Validate(); err != nil {
		return invalidBecause(name, value, err)
	}
	return nil
}

// readStragglers reads EVERY/LAST/SPEED, false if text is something else.
func (f *failures) readStragglers(text string) bool {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return false
	}
	var errs [3]error
	f.speeds.Every, errs[0] = parseTime(parts[0])
	f.speeds.Last, errs[1] = parseTime(parts[1])
	f.speeds.Slow, errs[2] = strconv.ParseFloat(parts[2], 64)
	return errs == [3]error{}
}

// parseTime reads a time of at least a second, at most thirty years: a number with unit
// s, m, h or d, without one in seconds.
func parseTime(text string) (time.Duration, error) {
	unit := time.Second
	for suffix, u := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = number, u
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v*unit.Seconds() >= 1 && v*unit.Seconds() < 1e9) {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	return time.Duration(v * float64(unit)), nil
}
