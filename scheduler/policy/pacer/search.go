package pacer

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
)

// index maps jobs to the tasks of the problem.
func (o *decision) index() {
	o.taskOf = make(map[spec.JobID]int, len(o.jobs))
	for i, p := range o.jobs {
		o.taskOf[p.Job.ID] = i
	}
}

// prices returns the prices of the warm start for the tasks of this problem.
func (o *decision) prices() lookahead.Prices {
	out := o.before.prices.Later((o.s.Now - o.before.at).Seconds())
	out.Ends = make([]float64, len(o.jobs))
	for i, price := range o.before.prices.Ends {
		if task, ok := o.taskOf[o.before.jobs[i]]; ok {
			out.Ends[task] = price
		}
	}
	return out
}

// hint returns the order and configurations of the warm start for the tasks of this problem.
func (o *decision) hint() (h lookahead.Hint) {
	for _, l := range o.before.entries {
		i, ok := o.taskOf[l.job]
		if !ok {
			continue
		}
		index := slices.IndexFunc(o.jobs[i].options, func(w candidate.Config) bool { return w.Group == l.group && w.Shape.Devices == l.shape })
		h.Order = append(h.Order, i)
		h.Candidates = append(h.Candidates, lookahead.Intent{Candidate: index, Strict: l.strict})
	}
	return h
}

// remember keeps a schedule for the next warm start.
func (o *decision) remember(schedule *lookahead.Schedule) {
	o.last = warmStart{at: o.s.Now, meanEnd: meanEnd(schedule), prices: schedule.Prices}
	for _, p := range o.jobs {
		o.last.jobs = append(o.last.jobs, p.Job.ID)
	}
	for _, i := range schedule.Order {
		c := &o.jobs[i].options[schedule.Assignments[i].Candidate]
		o.last.entries = append(o.last.entries, entry{o.jobs[i].Job.ID, c.Group, c.Shape.Devices, schedule.Strict[i]})
	}
}

// meanEnd returns the mean time in seconds until a job of a schedule ends, 0 without jobs.
func meanEnd(schedule *lookahead.Schedule) float64 {
	sum, jobs := 0.0, 0
	for i := range schedule.Assignments {
		if a := &schedule.Assignments[i]; a.Keep || a.Candidate >= 0 {
			sum, jobs = sum+a.End, jobs+1
		}
	}
	return sum / float64(max(jobs, 1))
}
