package lookahead

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Slot is some devices of one node.
type Slot struct {
	Node, Devices int
	Host          spec.Host // host resources used with them
}

// Candidate is a candidate configuration of a task.
type Candidate struct {
	Group   int
	Counts  []int     // devices on each node, most first
	Devices int       // sum of Counts
	Host    spec.Host // host resources per device
	Seconds float64   // run time, including the start cost
	Idle    float64   // the part of Seconds before the task makes progress
	// By has the latest start for the task to be on time, in seconds from now, for
	// each scenario of its duration; ascending, empty = no deadline.
	By []float64
}

// Task is a job to be scheduled.
type Task struct {
	Candidates []Candidate // each fits on the idle cluster; none = the task is left out
	Held       []Slot      // devices it holds, in one group; none = it waits
	Left       float64     // seconds until it ends if it keeps Held
	Ready      float64     // the part of Left before it makes progress
	Fixed      bool        // it must keep Held
	Weight     float64     // weight of its completion time
	Age        float64     // seconds since its submission
	Alone      float64     // completion time on an idle cluster, in seconds; used if Power > 1
	Work       float64     // least device-seconds it needs, without idle ones
	Tardy      float64     // seconds it is late if it keeps Held, summed over scenarios
	Late       float64     // cost of a second of lateness in one scenario

	waited float64 // in a prepared Problem: (Age / Alone)^Power
}

// Problem is the tasks to be scheduled, the nodes, and the objective.
type Problem struct {
	Nodes []Node
	Tasks []Task

	Price float64 // cost of a device-second
	End   float64 // weight of the makespan
	// Power is the exponent of the slowdown (Age + end) / Alone of a task in its cost. 0 and
	// 1 minimize the sum of completion times; larger values favour the worst slowdown over
	// the mean.
	Power float64

	// Value is the worth of a device-second of Work done in the next Window seconds.
	Value, Window float64

	prepared bool // every task has waited
}

// prepare returns a copy of p that has of each task what does not depend on its end.
func (p *Problem) prepare() *Problem {
	if p.Power <= 1 {
		return p
	}
	out := *p
	out.prepared, out.Tasks = true, slices.Clone(p.Tasks)
	for i := range out.Tasks {
		t := &out.Tasks[i]
		t.waited = power(t.Age/t.Alone, p.Power)
	}
	return &out
}

// Node is a node of the cluster with its resources that are free or held by tasks.
type Node struct {
	Group, Devices int
	Host           spec.Host // zero = unlimited
}

// Gap returns the most that the cost of plan may exceed the least cost, relative to
// the cost of its times and device-seconds, without the worth of early work. It is
// +Inf without a bound or a schedule.
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
	Keep      bool    // the task keeps Held
	Candidate int     // else the index of its candidate, -1 = it is left out
	Start     float64 // seconds from now
	End       float64 // seconds from now, +Inf if left out
	Slots     []Slot  // its devices from Start on; only those of a start now are meaningful
}

// Schedule is a solution of a Problem.
type Schedule struct {
	Cost        float64
	Bound       float64      // no schedule costs less; -Inf without Options.Rounds
	Assignments []Assignment // by task
	Order       []int        // tasks to start, in order
	Strict      []bool       // by task: later tasks do not start before it
	Prices      Prices       // the prices that prove Bound
	Steps       int          // work of the search, in steps
}

// run is the times of a task in a schedule.
type run struct {
	start, from, end float64 // seconds from now at which it gets devices, makes progress, ends
	late             float64 // seconds late, summed over scenarios
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

// late returns the seconds by which a task that starts in w at start is late, summed over scenarios.
func (w *Candidate) late(start float64) (sum float64) {
	for _, by := range w.By {
		if start <= by {
			break
		}
		sum += start - by
	}
	return sum
}

// leastLate returns the least lateness that t can have.
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

// cost is the cost of a task with a run.
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

// waiting is the cost of a task's end time: f(end) - f(0) with
//
//	f(end) = Weight * Alone / Power * ((Age + end) / Alone)^Power
//
// It is convex in end.
func (p *Problem) waiting(t *Task, end float64) float64 {
	if p.Power <= 1 {
		return t.Weight * end
	}
	waited := t.waited
	if !p.prepared {
		waited = power(t.Age/t.Alone, p.Power)
	}
	return t.Weight * t.Alone / p.Power * (power((t.Age+end)/t.Alone, p.Power) - waited)
}

// urgency is the derivative of waiting at an end.
func (p *Problem) urgency(t *Task, end float64) float64 {
	if p.Power <= 1 {
		return t.Weight
	}
	return t.Weight * power((t.Age+end)/t.Alone, p.Power-1)
}

// Urgency is the cost of a second of delay at the earliest end of t.
func (p *Problem) Urgency(t *Task) float64 { return p.urgency(t, t.soonest()) }

// soonest returns the earliest end of t, in seconds from now; 0 if it is left out.
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

// starting is the cost of a task that starts at a time. It grows by at least the task's
// urgency per second, so waiting gains nothing.
func (p *Problem) starting(t *Task, w *Candidate, at float64) float64 {
	return p.cost(t, w.at(at))
}

// keeping is the cost of a task that keeps Held.
func (p *Problem) keeping(t *Task) float64 {
	return p.cost(t, t.kept())
}

// least is the least cost of a task with w, that of starting now.
func (p *Problem) least(t *Task, w *Candidate) float64 { return p.starting(t, w, 0) }

// area returns the device-seconds of w.
func (w *Candidate) area() float64 { return w.Seconds * float64(w.Devices) }

var inf = math.Inf(1)
