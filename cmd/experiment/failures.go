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
	spot      func(seed uint64) sim.Failures // nil = none
	windows   sim.OutageTable                // of maintenance, nil = none
	others    []sim.Occupation               // as recorded
	cancelled map[spec.JobID]time.Duration   // as recorded
	speeds    sim.Variation                  // without its seed
	text      string                         // what goes wrong, as given
	files     [][sha256.Size]byte            // digests of the tables read
}

// config puts the failures of a seed into a run.
func (f *failures) config(c *sim.Config, seed uint64) {
	c.Costs, c.CheckpointEvery, c.Others, c.Cancel = f.costs, f.every, f.others, f.cancelled
	if f.outages != nil {
		c.Failures = f.outages(seed)
	}
	if f.spot != nil {
		c.Spot = f.spot(seed)
	}
	if f.windows != nil {
		c.Maintenance = f.windows
	}
	if f.speeds != (sim.Variation{}) {
		v := f.speeds
		v.Seed = seed
		c.Speeds = v
	}
}

// drawnFailures reports whether the failures of these settings follow from the seed.
func drawnFailures(settings map[string]string) bool {
	drawn := func(option string) bool { return settings[option] != "" && !isTable(cutNotice(settings[option])) }
	return settings["node-sigma"] != "" || settings["stragglers"] != "" || drawn("failures") || drawn("spot")
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
	var err error
	if f.outages, err = s.readOutages(&f, "failures", o.Failures, 0); err != nil {
		return f, err
	}
	if f.spot, err = s.readSpot(&f, o.Spot); err != nil {
		return f, err
	}
	if f.windows, err = s.readMaintenance(&f, o.Maintenance); err != nil {
		return f, err
	}
	if err := f.readSpeeds(o); err != nil {
		return f, err
	}
	f.text = failuresText(o)
	if s.composition.mode.Parts().Rules.Lockstep != nil && (f.every > 0 || f.outages != nil || f.spot != nil || f.windows != nil || f.speeds != (sim.Variation{})) {
		return f, invalid("compat", s.composition.mode.Name, "has no {checkpoint_every}, {failures}, {maintenance}, {spot}, {node_sigma} and {stragglers}: leave them out, or turn its quirk barrier off")
	}
	return f, nil
}

// failuresText repeats the options about failures.
func failuresText(o *Options) string {
	var words []string
	for _, f := range []struct{ name, text string }{
		{"failures", o.Failures}, {"maintenance", o.Maintenance}, {"spot", o.Spot}, {"checkpoint-every", o.CheckpointEvery}, {"node-sigma", o.NodeSigma}, {"stragglers", o.Stragglers},
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
