package sim

import (
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// Costs are the times that jobs hold devices without training. Values below 0 count as
// 0. The engine charges all of a Start when the job gets its devices, the checkpoint
// at its last stop included, since a stop frees devices at once.
type Costs interface {
	// Start returns the time until a job that gets devices begins to train.
	Start(s Start) time.Duration
	// Checkpoint returns the pause in training for a checkpoint of j on g.
	Checkpoint(j *spec.Job, g *scheduler.Grant) time.Duration
}

// Start is a job that gets devices: its first ones, new ones, or others.
type Start struct {
	Job *spec.Job
	// From is the grant of its progress so far, nil if it has none.
	From *scheduler.Grant
	// To is its new grant; nil if it is not known yet.
	To *scheduler.Grant
	// Failed says that a node of From went down, so that nothing was saved at its end.
	Failed bool
	// Running says that the job trains on From until the start.
	Running bool
}

// Resizing are costs of jobs that resize without a restart if they keep some devices:
// the processes there stay, and send their state to the new ones. All other starts
// cost as Costs says.
type Resizing struct {
	Costs
	Resize time.Duration
}

// Start returns the lesser of the start cost and Resize for a running job that keeps a
// node, else the start cost.
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

// Reshards reports whether the checkpoint must be resharded: the plan changes, or may.
func (s *Start) Reshards() bool {
	return s.From != nil && (s.To == nil || s.From.Plan.Normal() != s.To.Plan.Normal())
}

// PerStart are costs that are equal for every start of a job. Checkpoints are free.
type PerStart func(spec.Job) time.Duration

// Start returns the constant of the job.
func (f PerStart) Start(s Start) time.Duration { return f(*s.Job) }

// Checkpoint returns 0.
func (PerStart) Checkpoint(*spec.Job, *scheduler.Grant) time.Duration { return 0 }

// ModelCosts are the parts of a start cost.
type ModelCosts struct {
	Launch     time.Duration // processes, communicators, compilation: every start
	Checkpoint time.Duration // writing a checkpoint: at every stop and move, and while it runs
	Restore    time.Duration // reading it: every start but the first
	Reshard    time.Duration // resharding it: every start with another plan than before
}

// CostTable are costs by model.
type CostTable struct {
	Models map[string]ModelCosts // by Model.Name
	Others *ModelCosts           // costs of models not in Models, nil = unknown
}

// Missing returns the models without costs; they start at no cost.
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

// Start adds up the parts that apply to s.
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

// Checkpoint returns the checkpoint cost of the job's model.
func (t *CostTable) Checkpoint(j *spec.Job, _ *scheduler.Grant) time.Duration {
	return t.of(j).Checkpoint
}

// StateCosts are costs by the size of a job's state, as in planner.Move. The state is
// written to storage that all nodes share, and read from it, at a rate per node. Each
// device reads the part that the new plan needs, so resharding has no extra cost. The
// state of a model without a number of parameters takes no time.
type StateCosts struct {
	RestartSec float64 // the constant part; 0 = that of planner.MoveCosts
	NodeBps    float64 // rate to and from storage, bytes/s per node; 0 = that of planner.MoveCosts
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

// move returns the cost of a migration between grants; either may be nil = none.
func (c *StateCosts) move(j *spec.Job, from, to *scheduler.Grant) planner.Migration {
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

// startCost returns the start cost of j on a grant, nil if not known yet. running says
// that j trains on its last grant until then.
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

// progress returns the progress of j, advanced to now, on g if it begins to train at
// begin.
func (e *engine) progress(j *job, g *scheduler.Grant, stages []Stage, begin time.Duration) progress {
	c := progress{stages: stages, round: e.RoundSec, speed: e.gang(g), every: e.CheckpointEvery}
	if c.every > 0 {
		c.write = e.write(j, g)
	}
	return c.start(e.now, begin, j.state.Done)
}

// write returns the duration of a checkpoint of j on g.
func (e *engine) write(j *job, g *scheduler.Grant) time.Duration {
	if e.Costs == nil {
		return 0
	}
	return bounded(e.Costs.Checkpoint(j.state.Job, g))
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), never) }
