package pacer

import (
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
)

// apply grants the starts of the schedule that are due now. If the placer finds no slots
// for a start the job waits, and jobs that were to be preempted for it keep their devices.
func (o *decision) apply(schedule *lookahead.Schedule) {
	var stopped []int // tasks
	for i, p := range o.jobs {
		if schedule.Assignments[i].Keep {
			o.d.Grants = append(o.d.Grants, p.Grant)
		} else if p.Grant != nil {
			o.free.Give(p.Grant.Slots)
			stopped = append(stopped, i)
		}
	}
	started := map[int]bool{}
	for _, i := range schedule.Order {
		if schedule.Assignments[i].Start == 0 {
			started[i] = o.start(i, &schedule.Assignments[i])
		}
	}
	for _, i := range stopped {
		switch p := o.jobs[i]; {
		case started[i]:
		case o.free.Take(p.Grant.Slots):
			o.d.Grants = append(o.d.Grants, p.Grant)
		default:
			o.why(p, "preempted by the schedule: ends in %.0f s instead of %.0f", schedule.Assignments[i].End, o.problem.Tasks[i].Left)
		}
	}
}

// minRecheck is the least time to the next decision without an event.
const minRecheck = 10 * time.Second

// recheck returns when to decide again without an event: at the next predicted end of a
// running job with a guessed end, since the guess may be wrong. 0 = never.
func (o *decision) recheck(schedule *lookahead.Schedule) time.Duration {
	next := math.Inf(1)
	for i := range schedule.Assignments {
		if c := &schedule.Assignments[i]; (o.guess || o.jobs[i].expected) && (c.Keep || c.Start == 0) {
			next = min(next, c.End)
		}
	}
	if math.IsInf(next, 1) {
		return 0
	}
	return o.s.Now + max(time.Duration(next*float64(time.Second)), minRecheck)
}

// start starts or restarts a job, and reports whether it fits.
func (o *decision) start(task int, c *lookahead.Assignment) bool {
	p := o.jobs[task]
	g := o.finder.PlaceConfig(o.free, p.Job, &p.options[c.Candidate], p.unpredicted)
	if g == nil && p.unpredicted {
		g = o.finder.PlaceBlind(o.free, o.s.Cluster, p.Job)
	}
	if g == nil || !o.free.Take(g.Slots) {
		return false
	}
	o.d.Grants = append(o.d.Grants, g)
	switch {
	case p.expected:
		o.why(p, "no prediction: runs as submitted, on %s, for an expected %.0f s", g.Shape.Devices, c.End-c.Start)
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
