package sim

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// line is the jobs that the admission rule holds, in the order they arrived.
type line struct {
	name     string
	records  []int
	reported int    // number of records with a Held event
	why      string // the rule's reason for holding the first
}

// submit processes the arrivals until now and reports whether there was one. It rejects
// jobs that can never run and those that the admission rule refuses.
func (e *engine) submit(ctx context.Context) (bool, error) {
	first := e.next
	for ; e.next < len(e.result.Jobs) && e.arrives(&e.result.Jobs[e.next].Job) <= e.now; e.next++ {
		r := &e.result.Jobs[e.next]
		if e.byOrder[e.next] != nil {
			continue // in the system before the run began
		}
		why := e.unfit(&r.Job)
		if rule, refuses := e.Admission.(scheduler.Refuser); refuses && why == "" {
			var err error
			if why, err = rule.Refuse(ctx, e.Cluster, &r.Job); err != nil {
				return false, fmt.Errorf("sim: admission of job %s at %v: %w", r.Job.ID, e.now, err)
			}
		}
		if why != "" {
			e.reject(r, why)
			continue
		}
		l := e.line(&r.Job)
		l.records = append(l.records, e.next)
		e.outside++
	}
	return e.next > first, nil
}

// line returns the line that holds j.
func (e *engine) line(j *spec.Job) *line {
	name := ""
	if h, ok := e.Admission.(scheduler.Holder); ok {
		name = h.Line(j)
	}
	for _, l := range e.lines {
		if l.name == name {
			return l
		}
	}
	e.lines = append(e.lines, &line{name: name})
	return e.lines[len(e.lines)-1]
}

// admitWaiting applies the admission rule to all held jobs. A refused job is rejected,
// or held with all behind it if the rule is a scheduler.Holder.
func (e *engine) admitWaiting(ctx context.Context) error {
	if rule, lends := e.Admission.(scheduler.Lender); lends {
		return e.admitLenders(ctx, rule)
	}
	_, holds := e.Admission.(scheduler.Holder)
	for _, l := range e.lines {
		in := 0
		for _, r := range l.records {
			ok, err := e.admit(ctx, l, r, holds)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			in++
		}
		e.outside -= in
		l.records = l.records[in:]
		l.reported = max(l.reported-in, 0)
		for ; l.reported < len(l.records); l.reported++ {
			e.observe(Held, &e.result.Jobs[l.records[l.reported]].Job, nil, l.why)
		}
	}
	return nil
}

// admit applies the rule to one job; false means that it stays held.
func (e *engine) admit(ctx context.Context, l *line, record int, holds bool) (bool, error) {
	r := &e.result.Jobs[record]
	if e.Admission == nil {
		return true, e.enter(ctx, record)
	}
	ok, why, err := e.Admission.Admit(ctx, e.ledger.Snapshot(e.now), r.Job)
	switch {
	case err != nil:
		return false, fmt.Errorf("sim: admission of job %s at %v: %w", r.Job.ID, e.now, err)
	case ok:
		return true, e.enter(ctx, record)
	}
	l.why = cmp.Or(why, "refused by admission")
	if !holds {
		e.reject(r, l.why)
	}
	return !holds, nil
}

func (e *engine) reject(r *JobRecord, why string) {
	r.Rejected = why
	e.observe(Rejected, &r.Job, nil, why)
	if r.Scored {
		e.scored--
	}
}

// unfit returns why a job could never run, "" if it could.
func (e *engine) unfit(j *spec.Job) string {
	if err := j.Validate(); err != nil {
		return err.Error()
	}
	return e.tooLarge(j)
}

// tooLarge returns why j could not run on the idle cluster with its requested devices, ""
// if it could. A job runs within one group.
func (e *engine) tooLarge(j *spec.Job) string {
	largest, most, found := 0, 0, false
	for i := range e.Cluster.Groups {
		if g := &e.Cluster.Groups[i]; j.Accepts(g) {
			largest, most, found = max(largest, g.Count*g.Devices), max(most, g.MostDevices(j.Host)), true
		}
	}
	switch {
	case found && j.HasParamServers():
		return e.unserved(j)
	case !found:
		return fmt.Sprintf("asks for accelerator %s, which the cluster does not have", j.Accelerator)
	case j.Devices > largest:
		return fmt.Sprintf("asks for %s, the cluster has %d of one type", spec.Count(j.Devices, "device"), largest)
	case j.Devices > most:
		return fmt.Sprintf("asks for %s with %v each, the cluster has CPUs and memory for %d of one type", spec.Count(j.Devices, "device"), j.Host, most)
	}
	return ""
}

// unserved returns why one replica and one parameter server of j do not fit on the
// idle nodes of a group, "" if they do.
func (e *engine) unserved(j *spec.Job) string {
	replica, server, device := j.HostFor(1, 0), j.HostFor(0, 1), min(j.Devices, 1)
	for i := range e.Cluster.Groups {
		g := &e.Cluster.Groups[i]
		has := g.Host()
		apart := g.Count > 1 && has.Covers(replica) && has.Covers(server)
		if j.Accepts(g) && g.Devices >= device && (apart || has.Covers(replica.Plus(server))) {
			return ""
		}
	}
	return fmt.Sprintf("one replica with %v and one parameter server with %v fit on no nodes of the cluster", replica, server)
}

// enter puts an admitted job into the queue.
func (e *engine) enter(ctx context.Context, record int) error {
	r := &e.result.Jobs[record]
	if j := e.suspended[record]; j != nil {
		delete(e.suspended, record)
		e.put(record, j)
		return nil
	}
	work, err := e.Truth.Steps(ctx, &r.Job)
	if err == nil && !finitePositive(work) {
		err = fmt.Errorf("%g steps of work", work)
	}
	if err != nil {
		return fmt.Errorf("sim: %s at %v: job %s (%s): %w", e.PolicyName, e.now, r.Job.ID, r.Job.Model.Name, err)
	}
	j := &job{scored: r.Scored, work: work, from: e.now}
	j.state = scheduler.JobState{Job: &r.Job, Order: record, Remaining: work, Since: e.now}
	if e.Remaining != nil {
		j.reported = func(done float64) float64 { return e.Remaining(e.Truth, &r.Job, done, work-done) }
		j.updateRemaining()
	}
	j.state.StartCost = e.startCost(j, nil, false)
	e.put(record, j)
	return nil
}

// put puts a job into the system.
func (e *engine) put(record int, j *job) {
	r := &e.result.Jobs[record]
	e.byID[r.Job.ID], e.byOrder[record] = j, j
	e.ledger.Enter(&j.state)
	e.observe(Submitted, &r.Job, nil, "")
}
