package pacer

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/lookahead"
)

// advance makes the plan made last the one before. If that was now already, it is not,
// so that asking twice gives the same answer.
func (o *decision) advance() {
	if o.last.at < o.s.Now {
		o.before = o.last
	}
	o.taskOf = make(map[spec.JobID]int, len(o.jobs))
	for i, p := range o.jobs {
		o.taskOf[p.Job.ID] = i
	}
}

// prices puts those of the plan before the way the search takes them.
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

// hint puts the plan before the way the search takes it.
func (o *decision) hint() (h lookahead.Hint) {
	for _, l := range o.before.entries {
		i, ok := o.taskOf[l.job]
		if !ok {
			continue
		}
		way := slices.IndexFunc(o.jobs[i].options, func(w candidate.Config) bool { return w.Group == l.group && w.Shape.Devices == l.shape })
		h.Order = append(h.Order, i)
		h.Candidates = append(h.Candidates, lookahead.Intent{Candidate: way, Strict: l.strict})
	}
	return h
}

func (o *decision) remember(plan *lookahead.Schedule) {
	o.last = warmStart{at: o.s.Now, prices: plan.Prices}
	for _, p := range o.jobs {
		o.last.jobs = append(o.last.jobs, p.Job.ID)
	}
	for _, i := range plan.Order {
		way := &o.jobs[i].options[plan.Assignments[i].Candidate]
		o.last.entries = append(o.last.entries, entry{o.jobs[i].Job.ID, way.Group, way.Shape.Devices, plan.Strict[i]})
	}
}
