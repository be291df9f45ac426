package livetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Cluster is a cluster in memory. Its time is set by Advance. Jobs start as soon as they are
// released and their devices are free, and stop at once, unless Slow.
type Cluster struct {
	mu    sync.Mutex
	now   time.Time
	nodes []live.Node
	jobs  map[spec.JobID]*entry
	past  []*live.State // observations before the last writes, latest last

	// Slow makes starts and stops wait for the next Advance.
	Slow bool
	// Stale is by how many writes an observation may be old.
	Stale func() int
	// Before, if set, is called before each write, counted from 1. If it returns an error the
	// write does nothing and returns it.
	Before func(n int) error
	// After, if set, is called after each write, which returns its error.
	After func(n int) error
	// Violation receives what no controller may do.
	Violation func(text string)

	submitted int
	revision  int // rises with every change of a job
	cancelled []spec.JobID
	writes    int
	// Starts counts the runs begun, and Lost those ended without a Stop.
	Starts, Lost int
}

// entry is a job of the cluster.
type entry struct {
	live.Job
	Work  float64 // steps in all
	Rate  func(plan string, slots live.Slots) float64
	Cost  time.Duration // from a start until training
	begun float64       // steps at the start of the present run
	vers  int           // the revision of its last change
}

// New returns a cluster of nodes at a time.
func New(now time.Time, nodes ...live.Node) *Cluster {
	return &Cluster{now: now, nodes: nodes, jobs: map[spec.JobID]*entry{}, Violation: func(text string) { panic(text) }}
}

// Submit adds a held job with its work in steps, and its speed in steps/s.
func (c *Cluster) Submit(j spec.Job, cost time.Duration, work float64, rate func(plan string, slots live.Slots) float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
	c.submitted++
	e := &entry{Job: live.Job{Spec: j, UID: fmt.Sprint(c.submitted), Submitted: c.now}, Work: work, Rate: rate, Cost: cost}
	c.jobs[j.ID] = e
	c.touch(e)
}

// touch records a change of a job.
func (c *Cluster) touch(j *entry) {
	c.revision++
	j.vers = c.revision
}

// Delete cancels a job.
func (c *Cluster) Delete(id spec.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
	delete(c.jobs, id)
	c.cancelled = append(c.cancelled, id)
	c.revision++
	c.settle()
}

// Edit changes a job as its owner or an operator does.
func (c *Cluster) Edit(id spec.JobID, change func(*live.Job)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
	if j := c.jobs[id]; j != nil {
		change(&j.Job)
		c.touch(j)
		c.settle()
	}
}

// SetNode changes a node. Jobs that run on it are held again if it is down.
func (c *Cluster) SetNode(name string, change func(*live.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.Name != name {
			continue
		}
		change(n)
		for _, j := range c.jobs {
			if _, on := j.Slots[name]; on && n.Mode == live.Down {
				c.halt(j)
				c.Lost++
			}
		}
	}
	c.settle()
}

// RemoveNode takes a node without jobs out of the cluster, until AddNode.
func (c *Cluster) RemoveNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
	c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(n live.Node) bool { return n.Name == name })
}

// AddNode adds a node.
func (c *Cluster) AddNode(n live.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
	c.nodes = append(slices.Clone(c.nodes), n)
	c.settle()
}

// Jobs returns the jobs in the system, by ID.
func (c *Cluster) Jobs() []live.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state().Jobs
}

// Writes returns the number of writes so far, failed ones included.
func (c *Cluster) Writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// Now is the clock.
func (c *Cluster) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NextEnd returns when the next job completes if nothing changes; false if none will.
func (c *Cluster) NextEnd() (at time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		if end, runs := j.end(); runs && (!ok || end.Before(at)) {
			at, ok = end, true
		}
	}
	return at, ok
}

// Advance moves the clock, ends the jobs that are done by then, and lets starts and stops take
// place.
func (c *Cluster) Advance(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep()
	c.now = to
	for id, j := range c.jobs {
		if end, runs := j.end(); runs && !end.After(to) {
			delete(c.jobs, id)
			c.revision++
		} else if j.Phase == live.Stopping {
			c.halt(j)
		}
	}
	c.settleAll()
}

// end returns when a running job is done.
func (j *entry) end() (time.Time, bool) {
	if j.Phase != live.Running {
		return time.Time{}, false
	}
	rate := j.Rate(j.Record.RunPlan, j.Slots)
	return j.Started.Add(j.Cost + max(1, time.Duration((j.Work-j.begun)/rate*1e9+0.5))), true
}

// steps returns the steps a job has done.
func (j *entry) steps(now time.Time) float64 {
	if trained := now.Sub(j.Started) - j.Cost; j.Phase == live.Running && trained > 0 {
		return min(j.begun+j.Rate(j.Record.RunPlan, j.Slots)*trained.Seconds(), j.Work)
	}
	return j.begun
}

// released reports whether a job may start at any time.
func (j *entry) released() bool { return j.Phase == live.Releasing || j.Phase == live.Released }

// halt stops the run of a job.
func (c *Cluster) halt(j *entry) {
	j.begun = j.steps(c.now)
	j.Phase, j.Slots, j.Started, j.PartlyDone = live.Held, nil, time.Time{}, false
	c.touch(j)
}

// settle lets starts take place unless they are slow.
func (c *Cluster) settle() {
	if !c.Slow {
		c.settleAll()
	}
}

// settleAll starts the released jobs with free devices, by ID.
func (c *Cluster) settleAll() {
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		j := c.jobs[id]
		switch {
		case j.Phase == live.Releasing:
			j.Phase = live.Released
			c.touch(j)
		case j.Phase == live.Released && c.free(j.Record.RunSlots, id):
			j.Phase, j.Slots, j.Started = live.Running, maps.Clone(j.Record.RunSlots), c.now
			c.touch(j)
			c.Starts++
		}
	}
}

// free reports whether devices are free, apart from what a job itself holds.
func (c *Cluster) free(s live.Slots, but spec.JobID) bool {
	for name, n := range s {
		i := slices.IndexFunc(c.nodes, func(n live.Node) bool { return n.Name == name })
		if i < 0 || c.nodes[i].Mode != live.Up {
			return false
		}
		left := c.nodes[i].Type.Devices - c.nodes[i].UsedDevices
		for id, j := range c.jobs {
			if id == but {
				continue
			}
			if j.released() {
				left -= j.Record.RunSlots[name]
			}
			left -= j.Slots[name]
		}
		if left < n {
			return false
		}
	}
	return true
}

// ours reports whether jobs of the cluster leave devices free.
func (c *Cluster) ours(s live.Slots) bool {
	for name, n := range s {
		for _, j := range c.jobs {
			n += j.Slots[name]
			if j.released() {
				n += j.Record.RunSlots[name]
			}
		}
		i := slices.IndexFunc(c.nodes, func(n live.Node) bool { return n.Name == name })
		if i < 0 || n > c.nodes[i].Type.Devices {
			return false
		}
	}
	return true
}

// keep saves the present state for stale observations.
func (c *Cluster) keep() {
	if c.Stale != nil {
		c.past = append(c.past, c.state())
	}
}

// Observe implements live.Cluster.
func (c *Cluster) Observe(context.Context) (*live.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Stale != nil {
		if back := c.Stale(); back > 0 && len(c.past) >= back {
			return c.past[len(c.past)-back], nil
		}
	}
	return c.state(), nil
}

// state returns the present state.
func (c *Cluster) state() *live.State {
	revision := c.revision
	s := &live.State{Nodes: slices.Clone(c.nodes), Cancelled: slices.Clone(c.cancelled), OlderThan: func(version string) bool {
		n, err := strconv.Atoi(version)
		return err == nil && revision < n
	}}
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		j := c.jobs[id]
		out := j.Job
		out.Done, out.Version = j.steps(c.now), fmt.Sprint(j.vers)
		out.Slots = maps.Clone(j.Slots)
		s.Jobs = append(s.Jobs, out)
	}
	return s
}

// write makes one write to the job of an observation. What change returns is a violation, if not empty.
func (c *Cluster) write(o *live.Job, change func(j *entry) string) error {
	c.mu.Lock()
	c.writes++
	n := c.writes
	c.mu.Unlock()
	if c.Before != nil {
		if err := c.Before(n); err != nil {
			return err
		}
	}
	c.mu.Lock()
	j := c.jobs[o.Spec.ID]
	if j == nil {
		c.mu.Unlock()
		return live.ErrGone
	}
	if fmt.Sprint(j.vers) != o.Version {
		c.mu.Unlock()
		return fmt.Errorf("version %s, now %d: %w", o.Version, j.vers, live.ErrConflict)
	}
	c.keep()
	violation := change(j)
	c.touch(j)
	version := fmt.Sprint(j.vers)
	c.settle()
	c.mu.Unlock()
	if violation != "" {
		c.Violation(violation)
	}
	if c.After != nil {
		if err := c.After(n); err != nil {
			return err
		}
	}
	o.Version = version
	return nil
}

// Record implements live.Cluster.
func (c *Cluster) Record(_ context.Context, o *live.Job, r live.Record) error {
	return c.write(o, func(j *entry) string {
		j.Job.Record = r
		return ""
	})
}

// Start implements live.Cluster.
func (c *Cluster) Start(_ context.Context, o *live.Job, r live.Record) error {
	return c.write(o, func(j *entry) (violation string) {
		switch {
		case j.Phase != live.Held:
			violation = fmt.Sprintf("job %s is started while %s", o.Spec.ID, j.Phase)
		case !c.ours(r.RunSlots):
			violation = fmt.Sprintf("job %s is started on %s, which is not free", o.Spec.ID, r.RunSlots)
		}
		j.Job.Record, j.Phase = r, live.Released
		if c.Slow {
			j.Phase = live.Releasing
		}
		return violation
	})
}

// Stop implements live.Cluster.
func (c *Cluster) Stop(_ context.Context, o *live.Job) error {
	return c.write(o, func(j *entry) (violation string) {
		r := &j.Job.Record
		if j.Phase == live.Running && !j.PartlyDone && r.Plan == r.RunPlan && maps.Equal(r.Slots, r.RunSlots) {
			violation = fmt.Sprintf("job %s is stopped, though it runs with its target", o.Spec.ID)
		}
		switch {
		case j.Phase == live.Releasing:
			violation = fmt.Sprintf("job %s is stopped while %s", o.Spec.ID, j.Phase)
		case j.Phase == live.Running && c.Slow:
			j.Phase = live.Stopping
		case j.Phase == live.Running || j.Phase == live.Released:
			c.halt(j)
		}
		return violation
	})
}

// Watch implements live.Cluster. Tests call Tick themselves.
func (c *Cluster) Watch(context.Context) (<-chan struct{}, error) { return nil, nil }
