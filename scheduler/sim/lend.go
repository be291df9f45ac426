package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// admitLenders applies a rule to the first job of each line, in the order of the rule, until it
// admits none of them. Jobs may be evicted for others; they wait in their line again.
func (e *engine) admitLenders(ctx context.Context, rule scheduler.Lender) error {
	if e.suspended == nil {
		e.suspended, e.toldHeld = map[int]*job{}, map[int]bool{}
	}
	held := map[*line]bool{} // lines with a first job that is refused
	for {
		var lines []*line
		var heads []*spec.Job
		for _, l := range e.lines {
			if !held[l] && len(l.records) > 0 {
				e.sortLine(l, rule)
				lines = append(lines, l)
				heads = append(heads, &e.result.Jobs[l.records[0]].Job)
			}
		}
		if len(lines) == 0 {
			break
		}
		l := lines[rule.First(e.ledger.Snapshot(e.now), heads)]
		ok, err := e.admit(ctx, l, l.records[0], true)
		if err != nil {
			return err
		}
		if !ok && e.evictFor(rule, &e.result.Jobs[l.records[0]].Job) {
			ok, err = e.admit(ctx, l, l.records[0], true)
			if err != nil {
				return err
			}
		}
		if held[l] = !ok; ok {
			l.records = l.records[1:]
			e.outside--
		}
	}
	for _, l := range e.lines {
		e.reportHeld(l)
	}
	return nil
}

// sortLine orders a line by the rule, then by arrival.
func (e *engine) sortLine(l *line, rule scheduler.Lender) {
	slices.SortFunc(l.records, func(a, b int) int {
		x, y := &e.result.Jobs[a].Job, &e.result.Jobs[b].Job
		switch {
		case rule.Less(x, y):
			return -1
		case rule.Less(y, x):
			return 1
		}
		return cmp.Compare(a, b)
	})
}

// reportHeld emits an event for each job of a line that has none yet.
func (e *engine) reportHeld(l *line) {
	for _, r := range l.records {
		if !e.toldHeld[r] {
			e.toldHeld[r] = true
			e.observe(Held, &e.result.Jobs[r].Job, nil, l.why)
		}
	}
}

// evictFor evicts the jobs that the rule names so that j is admitted. It reports whether there are
// any.
func (e *engine) evictFor(rule scheduler.Lender, j *spec.Job) bool {
	jobs, why := rule.Evict(e.ledger.Snapshot(e.now), j)
	for _, s := range slices.Clone(jobs) {
		e.suspend(e.byID[s.Job.ID], why)
	}
	return len(jobs) > 0
}

// suspend takes a job out of the system, with its progress, back into its line.
func (e *engine) suspend(j *job, why string) {
	j.advance(e.now)
	grant, record := j.state.Grant, j.state.Order
	if grant != nil {
		r := &e.result.Jobs[record]
		r.Preemptions++
		r.Evictions++
		j.state.Restarts++
		e.drop(j)
		e.emit(Event{At: e.now, Kind: Evicted, Job: j.state.Job, Node: -1, Grant: grant, Why: why})
	}
	again := *j // policies may keep the state of the job that leaves
	again.current, again.state.Phase = current{}, scheduler.Waiting
	j.state.Phase = scheduler.Finished
	e.leave(j, grant)
	e.unpair(grant)
	e.suspended[record], e.toldHeld[record] = &again, true
	l := e.line(again.state.Job)
	l.records = append(l.records, record)
	l.why = why
	e.outside++
	e.observe(Held, again.state.Job, nil, why)
}
