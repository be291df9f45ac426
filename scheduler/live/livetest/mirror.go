package livetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Actor is a real cluster. A test plays the processes of its jobs.
type Actor interface {
	live.Cluster
	// Submit adds a held job.
	Submit(j *spec.Job) error
	// End lets the processes of a running job end.
	End(id spec.JobID) error
	// Hurry is called now and then while the cluster has not done to a job what it should.
	Hurry(id spec.JobID) error
}

// Mirror is a real cluster beside one in memory. The clock of the latter is that of both. Submissions, writes and ends go to both. An
// observation is the real one, once it equals that in memory: nodes, jobs, phases, devices and records. Only times and the
// progress of jobs are those in memory, since a real cluster has no clock but its own. The time of a submission must stay.
type Mirror struct {
	*Cluster
	Real Actor
	// Patience is how long the real cluster may take to become equal.
	Patience time.Duration

	specs  map[spec.JobID]spec.Job
	since  map[spec.JobID]time.Time // submissions, as the real cluster said first
	failed error                    // of Submit or Advance
}

// NewMirror returns a mirror of a real cluster that has the nodes of a trace and no jobs.
func NewMirror(t *Trace, a Actor) *Mirror {
	return &Mirror{Cluster: New(Epoch, t.Nodes()...), Real: a, Patience: spectest.Patience(30 * time.Second), specs: map[spec.JobID]spec.Job{}, since: map[spec.JobID]time.Time{}}
}

// Submit implements Stage.
func (m *Mirror) Submit(j spec.Job, cost time.Duration, work float64, rate func(plan string, slots live.Slots) float64) {
	m.specs[j.ID] = j
	m.Cluster.Submit(j, cost, work, rate)
	m.fail(m.Real.Submit(&j))
}

// Advance implements Stage.
func (m *Mirror) Advance(to time.Time) {
	before := m.Jobs()
	m.Cluster.Advance(to)
	here := map[spec.JobID]bool{}
	for _, j := range m.Jobs() {
		here[j.Spec.ID] = true
	}
	for _, j := range before {
		if !here[j.Spec.ID] {
			m.fail(m.Real.End(j.Spec.ID))
		}
	}
}

// fail keeps the first error for the next observation.
func (m *Mirror) fail(err error) {
	if m.failed == nil {
		m.failed = err
	}
}

// Observe implements live.Cluster.
func (m *Mirror) Observe(ctx context.Context) (*live.State, error) {
	want, err := m.Cluster.Observe(ctx)
	if err != nil {
		return nil, err
	}
	began, hurried := time.Now(), time.Now()
	for {
		if m.failed != nil {
			return nil, m.failed
		}
		got, err := m.Real.Observe(ctx)
		if err != nil {
			return nil, err
		}
		got.Jobs = slices.DeleteFunc(got.Jobs, func(j live.Job) bool { return j.Phase == live.Ended })
		id, difference := m.differs(got, want)
		if difference == "" {
			return m.inTime(got, want), nil
		}
		if time.Since(began) > m.Patience {
			return nil, fmt.Errorf("livetest: not equal after %v: %s", m.Patience, difference)
		}
		if id != "" && time.Since(hurried) > 150*time.Millisecond {
			hurried = time.Now()
			if err := m.Real.Hurry(id); err != nil {
				return nil, err
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// differs returns a difference between observations, "" if there is none, and the job that it is of.
func (m *Mirror) differs(got, want *live.State) (spec.JobID, string) {
	if len(got.Faults) > 0 {
		return "", fmt.Sprintf("%s: %v", got.Faults[0].Object, got.Faults[0].Err)
	}
	nodes := map[string]live.Node{}
	for _, n := range want.Nodes {
		n.Type.Count = 0
		nodes[n.Name] = n
	}
	for _, n := range got.Nodes {
		n.Type.Count = 0
		if n != nodes[n.Name] || len(got.Nodes) != len(nodes) {
			return "", fmt.Sprintf("%d nodes, node %+v, want %d, %+v", len(got.Nodes), n, len(nodes), nodes[n.Name])
		}
	}
	jobs := map[spec.JobID]*live.Job{}
	for i := range want.Jobs {
		jobs[want.Jobs[i].Spec.ID] = &want.Jobs[i]
	}
	for i := range got.Jobs {
		g := &got.Jobs[i]
		id := g.Spec.ID
		w := jobs[id]
		delete(jobs, id)
		if w == nil {
			return id, fmt.Sprintf("job %s is %s, and has ended in memory", id, g.Phase)
		}
		if g.Phase != w.Phase || g.Slots.String() != w.Slots.String() || g.Record.String() != w.Record.String() {
			return id, fmt.Sprintf("job %s is %s on %q with the record %s, in memory %s on %q with %s", id, g.Phase, g.Slots, g.Record, w.Phase, w.Slots, w.Record)
		}
		request := m.specs[id]
		request.Submit = g.Spec.Submit
		if g.Spec != request {
			return "", fmt.Sprintf("job %s requests %+v, want %+v", id, g.Spec, request)
		}
		if first, seen := m.since[id]; seen && !first.Equal(g.Submitted) {
			return "", fmt.Sprintf("job %s was submitted at %v, and said %v before", id, g.Submitted, first)
		}
		m.since[id] = g.Submitted
	}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		return id, fmt.Sprintf("job %s does not exist, in memory it is %s", id, jobs[id].Phase)
	}
	return "", ""
}

// inTime returns the real observation with times and progress of the other.
func (m *Mirror) inTime(got, want *live.State) *live.State {
	jobs := map[spec.JobID]*live.Job{}
	for i := range want.Jobs {
		jobs[want.Jobs[i].Spec.ID] = &want.Jobs[i]
	}
	for i := range got.Jobs {
		g := &got.Jobs[i]
		w := jobs[g.Spec.ID]
		g.Submitted, g.Started, g.Done = w.Submitted, w.Started, w.Done
	}
	return got
}

// inMemory returns a job as it is in memory.
func (m *Mirror) inMemory(id spec.JobID) *live.Job {
	for _, j := range m.Jobs() {
		if j.Spec.ID == id {
			return &j
		}
	}
	return &live.Job{Spec: spec.Job{ID: id}} // gone
}

// Record implements live.Cluster.
func (m *Mirror) Record(ctx context.Context, j *live.Job, r live.Record) error {
	if err := m.Real.Record(ctx, j, r); err != nil {
		return err
	}
	return m.Cluster.Record(ctx, m.inMemory(j.Spec.ID), r)
}

// Start implements live.Cluster.
func (m *Mirror) Start(ctx context.Context, j *live.Job, r live.Record) error {
	if err := m.Real.Start(ctx, j, r); err != nil {
		return err
	}
	return m.Cluster.Start(ctx, m.inMemory(j.Spec.ID), r)
}

// Stop implements live.Cluster.
func (m *Mirror) Stop(ctx context.Context, j *live.Job) error {
	if err := m.Real.Stop(ctx, j); err != nil {
		return err
	}
	return m.Cluster.Stop(ctx, m.inMemory(j.Spec.ID))
}
