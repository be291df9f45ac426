package lookahead

import (
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Slot is some devices of one node.
type Slot struct {
	Node, Devices int
	Host          spec.Host // taken of the node with them
}

// Candidate is a candidate configuration of a task.
type Candidate struct {
	Group   int
	Counts  []int     // devices on each of its nodes, most first
	Devices int       // their sum
	Host    spec.Host // that each of them takes of its node
	Seconds float64   // from its start to its end, the cost of starting included
	Idle    float64   // of those, before it makes progress
	// By is when it should start at the latest, s from now, in each of the cases the
	// task should be on time in; ascending, none = whenever.
	By []float64
}

// Task is a job to be scheduled.
type Task struct {
	Candidates []Candidate // that fit on the idle cluster; none = it is left out
	Held       []Slot      // what it holds, in one group; none = it waits
	Left       float64     // s until it ends if it keeps what it holds
	Ready      float64     // of those, before it makes progress
	Fixed      bool        // it must keep that
	Weight     float64     // of its completion time
	Age        float64     // s since it came
	Alone      float64     // s that it would take on its own, from coming to its end; with a Power > 1
	Work       float64     // device-seconds that it takes at the least, none of them idle
	Tardy      float64     // how late it is if it keeps what it holds: Lateness in all cases together
	Late       float64     // what a second of Lateness costs
}

// Problem is the tasks to be scheduled, the nodes, and the objective.
type Problem struct {
	Nodes []Node
	Tasks []Task

	Price float64 // of a device-second
	End   float64 // weight of the time at which everything is done
	// Power is that of the ratio (Age + end) / Alone of a task in its cost: 1, or 0, for the
	// sum of completion times, more for less in the mean and less of the worst ratio.
	Power float64

	// Value is what a device-second of Work is worth that is done within so many
	// seconds, Window.
	Value, Window float64
}

// Node is a node of the cluster with what is free on it, or held by tasks.
type Node struct {
	Group, Devices int
	Host           spec.Host // zero = as much as is asked for
}

// Gap returns by how much the cost of plan may be above the least, as a part of
// what its times and device-seconds cost; what early work is worth is not taken
// off that. It is +Inf if no bound was asked for, or there is no plan.
func (p *Problem) Gap(plan *Schedule) float64 {
	if math.IsInf(plan.Cost, 1) {
		return inf
	}
	whole := plan.Cost
	for i := range p.Tasks {
		whole += p.Value * p.Tasks[i].Work
	}
	if plan.Cost <= plan.Bound {
		return 0
	}
	return (plan.Cost - plan.Bound) / whole
}

// Assignment is the part of a schedule for one task.
type Assignment struct {
	Keep      bool    // it keeps what it holds
	Candidate int     // else: which way it runs in, -1 = it is left out
	Start     float64 // s from now
	End       float64 // s from now, +Inf if left out
	Slots     []Slot  // what it has from Start on, meaningful if it starts now
}

// Schedule is a solution of a Problem.
type Schedule struct {
	Cost        float64
	Bound       float64      // no plan costs less; -Inf if none was asked for
	Assignments []Assignment // by task
	Order       []int        // those not kept, as they have their turn
	Strict      []bool       // by task: later tasks do not start before it
	Prices      Prices       // that prove Bound
	Steps       int          // of work that went into it
}

// run is the run of a task.
type run struct {
	start, from, end float64 // s from now: it has devices, makes progress, is done
	late             float64 // Lateness in all cases together
	devices          int
}

// kept is the run of a task that keeps its devices.
func (t *Task) kept() run {
	return run{start: -inf, from: t.Ready, end: t.Left, late: t.Tardy, devices: devices(t.Held)}
}

// at is the run of a task in w from a time on.
func (w *Candidate) at(start float64) run {
	return run{start: start, from: start + w.Idle, end: start + w.Seconds, late: w.late(start), devices: w.Devices}
}

// grave is how many seconds late count in full.
const grave = 100

// Lateness is what it counts for to be so many seconds late in one case: those after the first hundred count a tenth. A
// promise that is broken is not made good by being broken less; were it all the same, tasks that are far behind in one
// unlikely case would go before those that are about to be late in all.
func Lateness(seconds float64) float64 {
	if seconds > grave {
		return grave + (seconds-grave)/10
	}
	return max(seconds, 0)
}

// late returns the Lateness of a task that starts then in w, in all cases together.
func (w *Candidate) late(start float64) (sum float64) {
	for _, by := range w.By {
		if start <= by {
			break
		}
		sum += Lateness(start - by)
	}
	return sum
}

// leastLate returns by how much t is late at the least, whatever is done.
func (t *Task) leastLate() float64 {
	least := inf
	if len(t.Held) > 0 {
		least = t.Tardy
	}
	for i := range t.Candidates {
		least = min(least, t.Candidates[i].late(0))
	}
	return least
}

// cost is what a task costs that runs so.
func (p *Problem) cost(t *Task, r run) float64 {
	start := 0.0
	if r.start > 0 {
		start = r.start
	}
	c := p.waiting(t, r.end) + p.Price*(r.end-start)*float64(r.devices) + t.Late*r.late
	from, end := r.from, r.end
	if p.Value > 0 && from < p.Window {
		done := 1.0
		if end > p.Window {
			done = (p.Window - from) / (end - from)
		}
		c -= p.Value * t.Work * done
	}
	return c
}

// waiting is what a task costs that ends at a time, for that alone: as much more than
// if it ended now as
//
//	Weight * Alone / Power * ((Age + end) / Alone)^Power
//
// is. It grows the faster, the later that is.
func (p *Problem) waiting(t *Task, end float64) float64 {
	if p.Power <= 1 {
		return t.Weight * end
	}
	return t.Weight * t.Alone / p.Power * (power((t.Age+end)/t.Alone, p.Power) - power(t.Age/t.Alone, p.Power))
}

// urgency is how fast waiting grows at an end.
func (p *Problem) urgency(t *Task, end float64) float64 {
	if p.Power <= 1 {
		return t.Weight
	}
	return t.Weight * power((t.Age+end)/t.Alone, p.Power-1)
}

// Urgency is how much more t costs a second later than it can end at the soonest.
func (p *Problem) Urgency(t *Task) float64 { return p.urgency(t, t.soonest()) }

// soonest returns when t ends at the soonest, s from now; 0 if it is left out.
func (t *Task) soonest() float64 {
	soonest := inf
	if len(t.Held) > 0 {
		soonest = t.Left
	}
	for i := range t.Candidates {
		soonest = min(soonest, t.Candidates[i].Seconds)
	}
	if soonest == inf {
		return 0
	}
	return soonest
}

func power(x, p float64) float64 {
	switch p {
	case 1:
		return x
	case 2:
		return x * x
	}
	return math.Pow(x, p)
}

// starting is what a task costs that starts in a way at a time. It grows by its urgency
// a second at least, the later that is: nothing is gained by waiting.
func (p *Problem) starting(t *Task, w *Candidate, at float64) float64 {
	return p.cost(t, w.at(at))
}

// keeping is what a task costs that keeps what it holds.
func (p *Problem) keeping(t *Task) float64 {
	return p.cost(t, t.kept())
}

// least is what a task costs at the least that runs in a way from now on.
func (p *Problem) least(t *Task, w *Candidate) float64 { return p.starting(t, w, 0) }

// area returns the device-seconds of w.
func (w *Candidate) area() float64 { return w.Seconds * float64(w.Devices) }

var inf = math.Inf(1)
