package study

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Study is the schedulers to compare, with workloads, loads and seeds.
type Study struct {
	Name        string
	Description string
	Cluster     string // in the syntax of --cluster
	Workloads   []Workload
	Schedulers  []Scheduler
	Loads       []float64 // empty = as recorded; see Scenario
	Seeds       []uint64
	Arrivals    Arrivals
	Noise       float64 // see Scenario
	Confidence  float64 // confidence of the intervals, in (0, 1)
	Baseline    string  // the scheduler that others are compared with
	// Settings are the values of simulation flags. Those of a scheduler override
	// them.
	Settings map[string]string
}

// Workload is a source of jobs.
type Workload struct {
	Name string
	Jobs string // FILE[:FORMAT], or synthetic[:KEY=VALUE,...]
}

// Synthetic reports whether jobs are drawn from the seed.
func (w Workload) Synthetic() bool {
	kind, _, _ := strings.Cut(w.Jobs, ":")
	return kind == "synthetic"
}

// Scheduler is a policy under test with its settings.
type Scheduler struct {
	Name   string // name in results; default: that of the policy or file
	Policy string // NAME[:key[=value]...], "" = that of File
	// File is a scheduler file, see package compose; "" = none.
	File     string
	Settings map[string]string
	Baseline string // the scheduler that this one is compared with, "" = the study's
}

// Arrivals is a rule for the arrivals of jobs.
type Arrivals string

const (
	Recorded Arrivals = "recorded" // those of the workload
	Poisson  Arrivals = "poisson"  // a Poisson process with the workload's order and rate, drawn from the seed
)

// Cell is one run of a study: indices of Workloads and Schedulers, a load
// (0 = as recorded) and a seed.
type Cell struct {
	Workload, Scheduler int
	Load                float64
	Seed                uint64
}

// Cells lists the runs of s: workloads, then loads, schedulers and seeds.
func (s *Study) Cells() []Cell {
	loads := s.Loads
	if len(loads) == 0 {
		loads = []float64{0}
	}
	var out []Cell
	for w := range s.Workloads {
		for _, load := range loads {
			for p := range s.Schedulers {
				for _, seed := range s.Seeds {
					out = append(out, Cell{w, p, load, seed})
				}
			}
		}
	}
	return out
}

// Describe names a cell for messages.
func (s *Study) Describe(c Cell) string {
	text := fmt.Sprintf("%s on %s", s.Schedulers[c.Scheduler].Name, s.Workloads[c.Workload].Name)
	if c.Load > 0 {
		text += fmt.Sprintf(" at load %s", report.Number(c.Load))
	}
	return fmt.Sprintf("%s, seed %d", text, c.Seed)
}

// Unvaried returns the workloads that are the same for every seed, apart from random
// choices of policies.
func (s *Study) Unvaried() []string {
	var out []string
	if s.Arrivals != Poisson && s.Noise == 0 && len(s.Seeds) > 1 {
		for _, w := range s.Workloads {
			if !w.Synthetic() {
				out = append(out, w.Name)
			}
		}
	}
	return out
}

// baseline returns the name of the scheduler that p is compared with.
func (s *Study) baseline(p *Scheduler) string { return cmp.Or(p.Baseline, s.Baseline) }
