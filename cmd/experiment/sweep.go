package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/study"
)

// StudySettings are the names of the options that a study may set.
var StudySettings = []string{"truth", "substitute-model", "belief", "host-speeds", "loss-noise", "start-cost", "costs", "resize-cost", "checkpoint-every",
	"failures", "node-sigma", "stragglers", "admission", "placement", "round", "score", "compat", "window", "load-scale"}

// Sweep is a study with the simulations it is made of.
type Sweep struct {
	study.Study
	cells   [][]cell // by workload and scheduler
	program string   // digest of this program
}

// cell is the simulation of a workload under a scheduler, for all seeds.
type cell struct {
	*Simulation
	compat   bool     // with another simulator's semantics
	identity []string // what decides its results, beside cluster, jobs and policy
}

// OpenSweep reads the file of a study and everything it names. Data and Warn are those of
// o; the study sets all other options.
func OpenSweep(ctx context.Context, path string, o Options) (*Sweep, error) {
	text, err := query.ReadFile("study", path, maxStudyFile)
	if err != nil {
		return nil, err
	}
	read, err := study.Read(path, text, StudySettings)
	if err != nil {
		return nil, invalidBecause("study", path, err)
	}
	return NewSweep(ctx, read, o)
}

// NewSweep reads everything that a study names. Data and Warn are those of o.
func NewSweep(ctx context.Context, read study.Study, o Options) (s *Sweep, err error) {
	s = &Sweep{Study: read}
	if err := s.readSchedulers(); err != nil {
		return nil, err
	}
	if s.program, err = programDigest(); err != nil {
		return nil, err
	}
	for _, w := range s.unvaried() {
		warn(&o, "warning", "", []string{fmt.Sprintf("seeds change nothing of workload %s but what policies draw: set arrivals: poisson or noise", w)})
	}
	return s, s.resolve(ctx, o)
}

// readSchedulers reads the files of schedulers. Settings that a file leaves out are those
// of the study.
func (s *Sweep) readSchedulers() error {
	for i := range s.Schedulers {
		p := &s.Schedulers[i]
		if p.File == "" {
			continue
		}
		values, err := readSchedulerFile(p.File)
		if err != nil {
			return err
		}
		p.Policy = values["policy"]
		delete(values, "policy")
		maps.Copy(p.Settings, values)
	}
	return nil
}

// unvaried returns the workloads that run alike under every seed with some scheduler,
// failures included.
func (s *Sweep) unvaried() []string {
	for _, p := range s.Schedulers {
		if !drawnFailures(s.settings(p)) {
			return s.Unvaried()
		}
	}
	return nil
}

// settings are those of a scheduler, and the study's where it has none.
func (s *Sweep) settings(p study.Scheduler) map[string]string {
	out := maps.Clone(s.Settings)
	maps.Copy(out, p.Settings)
	return out
}

// resolve makes a simulation for every workload and scheduler. Those with equal settings
// share what was read for them.
func (s *Sweep) resolve(ctx context.Context, o Options) error {
	for _, w := range s.Workloads {
		known := map[string]*cell{}
		var cells []cell
		for _, p := range s.Schedulers {
			settings := s.settings(p)
			key := fmt.Sprintf("%q", settingWords(settings))
			if known[key] == nil {
				base, err := s.simulation(ctx, o, w, p, settings)
				if err != nil {
					return fmt.Errorf("%s on %s: %w", p.Name, w.Name, err)
				}
				known[key] = base
			}
			own := *known[key]
			sim := *own.Simulation
			own.Simulation = &sim
			var err error
			if sim.Policies, err = builtin.Policies.Parse(p.Policy); err != nil {
				return invalidBecause("policy", p.Policy, err)
			}
			if err := sim.composition.supports(sim.Policies); err != nil {
				return fmt.Errorf("%s on %s: %w", p.Name, w.Name, err)
			}
			read := builtin.Policies.Files(sim.Policies[0])
			if f := sim.options.HostSpeeds; f != "" {
				read = append(read, f)
			}
			files, err := filesDigest(read)
			if err != nil {
				return err
			}
			own.identity = append(slices.Clone(own.identity), files...)
			cells = append(cells, own)
		}
		s.cells = append(s.cells, cells)
	}
	return nil
}

// settingWords writes settings as NAME=VALUE, sorted.
func settingWords(settings map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		out = append(out, k+"="+settings[k])
	}
	return out
}

// simulation reads a simulation with these settings and the first seed.
func (s *Sweep) simulation(ctx context.Context, o Options, w study.Workload, p study.Scheduler, settings map[string]string) (*cell, error) {
	own := Options{Workload: w.Jobs, Cluster: s.Cluster, Policy: p.Policy, Seed: s.Seeds[0], Data: o.Data, Warn: o.Warn}
	if err := own.setAll(settings); err != nil {
		return nil, err
	}
	sim, err := New(ctx, own)
	if err != nil {
		return nil, err
	}
	for _, note := range sim.Notes {
		warn(&o, "warning", "", []string{w.Name + ": " + note})
	}
	sim.options.Warn = nil // rows were reported once
	sources, err := o.Data.sourcesDigest(ctx, sim.truth.Name, sim.belief.Name)
	return &cell{Simulation: sim, compat: own.Compat != "", identity: append(settingWords(settings), "program="+s.program,
		"truth="+sim.truth.Name, "belief="+sim.belief.Name, "start="+sim.failures.costsText, fmt.Sprintf("tables=%x", sim.failures.files), "worlds="+sources)}, err
}

// Setup makes a run of the study ready.
func (s *Sweep) Setup(ctx context.Context, c study.Cell) (study.Setup, error) {
	own := s.cells[c.Workload][c.Scheduler]
	sim, err := own.ForSeed(ctx, c.Seed)
	if err != nil {
		return study.Setup{}, err
	}
	config, err := sim.Runs()[0].Config(ctx)
	return study.Setup{Config: config, Score: sim.Score, Candidates: own.candidates(), Identity: own.identity, Reference: sim.backfillRun}, err
}

// candidates returns the configurations that jobs may run in; nil if they cannot be listed.
// Fitted truths predict any plan, and other simulators' semantics and the effect of hosts have no bounds.
func (c *cell) candidates() study.Candidates {
	switch {
	case c.compat || c.hosts != nil:
		return nil
	case c.truth.predictor == nil && c.truth.tables == nil: // durations
		return study.AsRequested(c.Cluster)
	case c.truth.servers != nil:
		return study.ParamServer(c.Cluster, c.truth.servers.Configs())
	case c.truth.keys != nil:
		return study.Listed(c.Cluster, c.truth.keys)
	}
	return nil
}

// Bad counts rows of workloads that cannot be used.
func (s *Sweep) Bad() (n int) {
	for _, cells := range s.cells {
		n += cells[0].Bad
	}
	return n
}
