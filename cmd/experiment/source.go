package experiment

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Source says how fast jobs run: as the truth to the engine, as the belief to the
// policies. Truth and belief are separate sources even if they have one name.
type Source struct {
	Name string
	// speeds are factors on the workload's durations by accelerator, 1 where absent.
	// Only a source of durations has them.
	speeds map[string]float64
	// predictor is nil for a source of durations.
	predictor perfmodel.Predictor
	// pairs returns what predicts colocated jobs in one run with a seed; nil = jobs do not
	// share devices.
	pairs func(seed uint64) scheduler.Colocator
	// keys are the configurations that may be granted; nil = any.
	keys []spec.Config
	// known are the (model, accelerator) pairs of a table, configs its configurations;
	// nil = the source is not a table.
	known   []spec.Key
	configs []spec.Config
	// servers are speeds of jobs with parameter servers; nil = the source has none.
	servers *measured.Servers
	// tables are those of Pollux or Sia, else nil.
	tables *goodput.Tables
	// noise is the standard deviation of the logarithm of a random error on the speed of each
	// configuration, for a belief; 0 = none.
	noise float64
	// learning is set for a belief that learns while jobs run.
	learning *learning
	// nearest returns a predictor for one run; it counts its look-ups.
	nearest func() *measured.Nearest
	// doubts are values that are hard to believe.
	doubts []string
}

// Predicted returns a source that answers with p, for any configuration.
func Predicted(name string, p perfmodel.Predictor) *Source { return &Source{Name: name, predictor: p} }

// Listed returns a source of measured configurations. Others cannot be granted.
func Listed(name string, rows []spec.Measurement) *Source {
	s := &Source{Name: name}
	s.setTable(measured.New(rows))
	s.keys = s.configs
	return s
}

// setTable makes s answer from a table.
func (s *Source) setTable(t *measured.Table) {
	s.predictor, s.configs = t, t.Configs()
	for _, c := range s.configs {
		s.known = append(s.known, c.Key())
	}
	slices.SortFunc(s.known, perfmodel.CompareKeys)
	s.known = slices.Compact(s.known)
}

// truth returns the truth of one run with a seed.
func (s *Source) truth(cl spec.Cluster, seed uint64) sim.Truth {
	switch {
	case s.tables != nil:
		return goodput.NewTruth(s.tables, cl)
	case s.nearest != nil:
		return sim.Predicted{Predictor: s.nearest(), Cluster: cl}
	case s.predictor != nil:
		return sim.Predicted{Predictor: s.predictor, Cluster: cl, Pairs: s.colocator(seed)}
	}
	return sim.Durations{Speeds: s.speeds}
}

// colocator returns what predicts colocated jobs, nil if jobs do not share devices.
func (s *Source) colocator(seed uint64) scheduler.Colocator {
	if s.pairs == nil {
		return nil
	}
	return s.pairs(seed)
}

// space is what may be granted if s is the truth; nil = what the planner enumerates.
func (s *Source) space() planner.Space {
	switch {
	case s.tables != nil:
		return goodput.Space{Tables: s.tables}
	case s.keys != nil:
		return planner.NewMeasured(s.keys)
	}
	return nil
}

// newOracle returns the planner of the policy of one run with a seed.
func newOracle(belief, truth *Source, seed uint64) scheduler.Oracle {
	if belief.tables != nil {
		return goodput.NewOracle(belief.tables)
	}
	p := planner.New(belief.noisy(seed), planner.Options{Space: truth.space()})
	if belief.pairs == nil || truth.pairs == nil {
		return p
	}
	return pairedOracle{p, belief.pairs(seed), truth.pairs(seed)}
}

// pairedOracle is a planner that predicts colocated jobs too. The truth says which pairs
// may share devices, the belief how fast they run.
type pairedOracle struct {
	*planner.Planner
	belief, truth scheduler.Colocator
}

func (o pairedOracle) Beside(a, b spec.Config) (float64, error) {
	if _, err := o.truth.Beside(a, b); err != nil {
		return 0, err
	}
	return o.belief.Beside(a, b)
}

// Ran reports a pair that ran to a belief that learns.
func (o pairedOracle) Ran(a, b spec.Config) bool {
	l, ok := o.belief.(scheduler.PairLearner)
	return ok && l.Ran(a, b)
}
