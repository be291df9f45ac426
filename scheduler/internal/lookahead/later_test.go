package lookahead

// later returns p some seconds into a schedule, with more waiting tasks. The hint and
// the prices are those of that schedule.
func later(p *Problem, plan *Schedule, seconds float64, more []Task) (*Problem, Hint, Prices) {
	next, known, h := *p, plan.Prices.Later(seconds), Hint{}
	next.Tasks, known.Ends = nil, nil
	place := make([]int, len(p.Tasks))
	for i := range p.Tasks {
		k, c := p.Tasks[i], &plan.Assignments[i]
		place[i] = -1
		if c.End <= seconds {
			continue
		}
		if k.Held = nil; c.Start < seconds {
			left, ready := k.Left, k.Ready
			if !c.Keep {
				left, ready = c.End, c.Start+k.Candidates[c.Candidate].Idle
			}
			k.Held, k.Left, k.Ready = c.Slots, left-seconds, max(0, ready-seconds)
			k.Candidates = remaining(k.Candidates, min(1, k.Left/(left-ready)))
			k.Work *= min(1, k.Left/(left-ready))
		}
		place[i] = len(next.Tasks)
		next.Tasks = append(next.Tasks, k)
		known.Ends = append(known.Ends, plan.Prices.Ends[i])
	}
	for _, k := range more {
		k.Held, k.Left = nil, 0
		next.Tasks = append(next.Tasks, k)
	}
	for _, i := range plan.Order {
		if place[i] >= 0 {
			h.Order = append(h.Order, place[i])
			h.Candidates = append(h.Candidates, Intent{Candidate: plan.Assignments[i].Candidate, Strict: plan.Strict[i]})
		}
	}
	return &next, h, known
}

// remaining returns candidates with a part of the work left.
func remaining(candidates []Candidate, part float64) (out []Candidate) {
	for _, w := range candidates {
		w.Seconds = w.Idle + part*(w.Seconds-w.Idle)
		out = append(out, w)
	}
	return out
}
