package sim

import (
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Costs says how long jobs hold devices without training. Answers below 0 count
// as 0. The engine charges all of a Start when the job gets its devices: what
// was written when it was stopped too, since a stop frees devices at once.
type Costs interface {
	// Start returns how long a job that gets devices does not train yet.
	Start(s Start) time.Duration
	// Checkpoint returns how long training pauses for a checkpoint that j writes
	// while it runs on g.
	Checkpoint(j *spec.Job, g *scheduler.Grant) time.Duration
}

// Start is a job that gets devices: its first, some again, or others.
type Start struct {
	Job *spec.Job
	// From is what it made its progress on last, nil when there is none to keep.
	From *scheduler.Grant
	// To is what it gets; nil when that is not known yet, and may be anything.
	To *scheduler.Grant
	// Failed says that From went down, so that nothing was saved at its end.
	Failed bool
	// Running says that the job trains on From until then.
	Running bool
}

// Resizing are costs of jobs that need not be restarted to go on with other devices
// as long as some of them stay: the processes of these stay too, and send the others
// what they know. All else costs as it does.
type Resizing struct {
	Costs
	Resize time.Duration
}

// Start returns Resize for a running job that keeps something on some node, or what
// the start costs where that is less.
func (r Resizing) Start(s Start) time.Duration {
	cost := r.Costs.Start(s)
	if s.Running && (s.To == nil || meet(s.From, s.To)) {
		cost = min(cost, r.Resize)
	}
	return cost
}

// meet reports whether two grants have a node in common.
func meet(a, b *scheduler.Grant) bool {
	return slices.ContainsFunc(a.Slots, func(x scheduler.Slot) bool {
		return slices.ContainsFunc(b.Slots, func(y scheduler.Slot) bool { return x.Node == y.Node })
	})
}

// Reshards reports whether what is kept must be cut anew: the plan is another,
// or may be.
func (s *Start) Reshards() bool {
	return s.From != nil && (s.To == nil || s.From.Plan.Normal() != s.To.Plan.Normal())
}

// PerStart are costs that are the same for every start of a job. Checkpoints are
// free.
type PerStart func(spec.Job) time.Duration

// Start returns the constant of the job.
func (f PerStart) Start(s Start) time.Duration { return f(*s.Job) }

// Checkpoint returns 0.
func (PerStart) Checkpoint(*spec.Job, *scheduler.Grant) time.Duration { return 0 }

// ModelCosts are the parts a start is made of.
type ModelCosts struct {
	Launch     time.Duration // processes, communicators, compilation: every start
	Checkpoint time.Duration // writing a checkpoint: before every stop and move, and while it runs
	Restore    time.Duration // reading it: every start but the first
	Reshard    time.Duration // cutting it anew: every start with another plan than before
}

// CostTable are costs by model.
type CostTable struct {
	Models map[string]ModelCosts // by Model.Name
	Others *ModelCosts           // of models not among them, nil = nothing is known
}

// Missing returns the models among those named that nothing is known of; they
// start for nothing.
func (t *CostTable) Missing(models []string) []string {
	var out []string
	for _, m := range models {
		if _, ok := t.Models[m]; !ok && t.Others == nil {
			out = append(out, m)
		}
	}
	return out
}

func (t *CostTable) of(j *spec.Job) ModelCosts {
	if c, ok := t.Models[j.Model.Name]; ok {
		return c
	}
	if t.Others != nil {
		return *t.Others
	}
	return ModelCosts{}
}

// Start adds up the parts that s has.
func (t *CostTable) Start(s Start) time.Duration {
	c := t.of(s.Job)
	d := c.Launch
	if s.From != nil {
		d += c.Restore
		if !s.Failed {
			d += c.Checkpoint
		}
	}
	if s.Reshards() {
		d += c.Reshard
	}
	return d
}

// Checkpoint returns that of the job's model.
func (t *CostTable) Checkpoint(j *spec.Job, _ *scheduler.Grant) time.Duration {
	return t.of(j).Checkpoint
}

// StateCosts follow from how large the state of a job is: it is written to
// storage that all nodes share, and read from it, at a rate per node. The state
// is that of planner.Move, and whoever reads it reads what the new plan needs, so
// that resharding costs nothing more. Models need a number of parameters; of those
// without one the state takes no time.
type StateCosts struct {
	RestartSec float64 // what no byte accounts for; 0 = as planner.MoveCosts
	NodeBps    float64 // to and from storage, bytes/s of each node; 0 = as planner.MoveCosts
}

// Start returns the restart, the time to save on the nodes of From unless they
// failed, and to load on those of To.
func (c *StateCosts) Start(s Start) time.Duration {
	to := s.To
	if to == nil {
		to = s.From
	}
	m := c.move(s.Job, s.From, to)
	d := m.RestartSec
	if s.From != nil {
		d += m.LoadSec
		if !s.Failed {
			d += m.SaveSec
		}
	}
	return wholeNs(d)
}

// Checkpoint returns the time to save on the nodes of g.
func (c *StateCosts) Checkpoint(j *spec.Job, g *scheduler.Grant) time.Duration {
	return wholeNs(c.move(j, g, g).SaveSec)
}

// move prices going from one grant to another, either nil for none.
func (c *StateCosts) move(j *spec.Job, from, to *scheduler.Grant) planner.Moving {
	m := planner.Move{From: c.config(j, from), To: c.config(j, to), Moved: true}
	m.Costs = planner.MoveCosts{RestartSec: c.RestartSec, SaveBps: c.NodeBps * float64(nodes(from)), LoadBps: c.NodeBps * float64(nodes(to))}
	return m.Price()
}

func (c *StateCosts) config(j *spec.Job, g *scheduler.Grant) spec.Config {
	out := spec.Config{Model: j.Model, SeqLen: j.SeqLen, Plan: spec.Plan{}.Normal()}
	if g != nil {
		out.Plan, out.Shape = g.Plan, g.Shape
	}
	return out
}

// wholeNs turns s >= 0 into a Duration, to the nearest nanosecond, at most never.
func wholeNs(s float64) time.Duration { return time.Duration(math.Round(min(s*1e9, float64(never)))) }

func nodes(g *scheduler.Grant) int {
	if g == nil {
		return 0
	}
	return len(g.Slots)
}

// startCost returns what it costs j to get to, nil = what is not known yet, running
// on what it got last until then or not.
func (e *engine) startCost(j *job, to *scheduler.Grant, running bool) time.Duration {
	if e.Costs == nil {
		return 0
	}
	s := Start{Job: j.state.Job, From: j.last, To: to, Failed: j.failed, Running: running}
	if j.state.Grant == nil && j.state.Done == 0 {
		s.From, s.Running = nil, false
	}
	return bounded(e.Costs.Start(s))
}

// course returns how j, which was advanced to now, will get on with g when it
// begins to train at a time.
func (e *engine) course(j *job, g *scheduler.Grant, stages []Stage, begin time.Duration) course {
	c := course{stages: stages, whole: e.Quirks.WholeSeconds, speed: e.gang(g), every: e.CheckpointEvery}
	if c.every > 0 && e.Costs != nil {
		c.write = bounded(e.Costs.Checkpoint(j.state.Job, g))
	}
	return c.start(e.now, begin, j.state.Done)
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), never) }
