package study

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Study is what is compared, on what, how often.
type Study struct {
	Name        string
	Description string
	Cluster     string // as the flag --cluster has it
	Workloads   []Workload
	Schedulers  []Scheduler
	Loads       []float64 // empty = as recorded; see Scenario
	Seeds       []uint64
	Arrivals    Arrivals
	Noise       float64 // see Scenario
	Confidence  float64 // of the intervals, in (0, 1)
	Baseline    string  // the scheduler the others are compared with
	// Settings are flags of the simulation with their values, for every
	// scheduler that does not say otherwise.
	Settings map[string]string
}

// Workload is where jobs come from.
type Workload struct {
	Name string
	Jobs string // FILE[:FORMAT], or synthetic[:KEY=VALUE,...]
}

// Drawn reports whether every seed has other jobs.
func (w Workload) Drawn() bool {
	kind, _, _ := strings.Cut(w.Jobs, ":")
	return kind == "synthetic"
}

// Scheduler is a composition under test.
type Scheduler struct {
	Name   string // in results; that of the policy or file unless it is given
	Policy string // NAME[:key[=value]...], "" = what the file says
	// File is where the composition is written down, "" = nowhere (package compose).
	File     string
	Settings map[string]string
	Baseline string // the scheduler this one is compared with, "" = the study's
}

// Arrivals says when jobs arrive.
type Arrivals string

// The arrivals there are.
const (
	Recorded Arrivals = "recorded" // when the workload says
	Poisson  Arrivals = "poisson"  // in the workload's order, as a Poisson process of its rate drawn from the seed
)

// Cell is one run of a study: indexes into Workloads and Schedulers, a load
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

// Unvaried returns the workloads that every seed runs alike, but for what
// policies draw.
func (s *Study) Unvaried() []string {
	var out []string
	if s.Arrivals != Poisson && s.Noise == 0 && len(s.Seeds) > 1 {
		for _, w := range s.Workloads {
			if !w.Drawn() {
				out = append(out, w.Name)
			}
		}
	}
	return out
}

// baseline names the scheduler that p is compared with.
func (s *Study) baseline(p *Scheduler) string { return cmp.Or(p.Baseline, s.Baseline) }
