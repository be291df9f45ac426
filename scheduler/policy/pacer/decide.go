package pacer

import (
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
)

// carryOut grants what the plan begins with. Where the placer finds no room for
// what the plan has room for, the job waits, and the jobs preempted for it stay.
func (o *decision) carryOut(plan *lookahead.Schedule) {
	var stopped []int // tasks
	for i, p := range o.jobs {
		if plan.Assignments[i].Keep {
			o.d.Grants = append(o.d.Grants, p.Grant)
		} else if p.Grant != nil {
			o.free.Give(p.Grant.Slots)
			stopped = append(stopped, i)
		}
	}
	started := map[int]bool{}
	for _, i := range plan.Order {
		if plan.Assignments[i].Start == 0 {
			started[i] = o.start(i, &plan.Assignments[i])
		}
	}
	for _, i := range stopped {
		switch p := o.jobs[i]; {
		case started[i]:
		case o.free.Take(p.Grant.Slots):
			o.d.Grants = append(o.d.Grants, p.Grant)
		default:
			o.why(p, "makes way: ends in %.0f s instead of %.0f", plan.Assignments[i].End, o.problem.Tasks[i].Left)
		}
	}
}

// shortest is the least time to the next decision where nothing happens.
const shortest = 10 * time.Second

// recheck returns when to decide again if nothing happens: once a job has not ended that
// should have. 0 = never, where ends are known.
func (o *decision) recheck(plan *lookahead.Schedule) time.Duration {
	if !o.guess {
		return 0
	}
	next := math.Inf(1)
	for i := range plan.Assignments {
		if c := &plan.Assignments[i]; c.Keep || c.Start == 0 {
			next = min(next, c.End)
		}
	}
	if math.IsInf(next, 1) {
		return 0
	}
	return o.s.Now + max(time.Duration(next*float64(time.Second)), shortest)
}

// start starts a job, or starts it anew, and reports whether there was room.
func (o *decision) start(task int, c *lookahead.Assignment) bool {
	p := o.jobs[task]
	g := o.belief.PlaceConfig(o.free, p.Job, &p.options[c.Candidate], p.blind)
	if g == nil && p.blind {
		g = o.belief.PlaceBlind(o.free, o.s.Cluster, p.Job)
	}
	if g == nil || !o.free.Take(g.Slots) {
		return false
	}
	o.d.Grants = append(o.d.Grants, g)
	switch {
	case p.blind && p.Job.Duration == 0:
		o.why(p, "nothing is predicted of it: as submitted, on %s", g.Shape.Devices)
	case p.Grant == nil:
		o.why(p, "ends in %.0f s on %s", c.End, g.Shape.Devices)
	default:
		o.why(p, "ends in %.0f s on %s instead of %.0f on %s", c.End, g.Shape.Devices, o.problem.Tasks[task].Left, p.Grant.Shape.Devices)
	}
	return true
}

func (o *decision) why(p *plannedJob, format string, args ...any) {
	o.d.Because(o.s, p.Job.ID, format, args...)
}

func (o *decision) warn(text string) {
	if text != "" && !slices.Contains(o.d.Warnings, text) {
		o.d.Warnings = append(o.d.Warnings, text)
	}
}
