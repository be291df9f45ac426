package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Occupation is what jobs outside the simulation want on a node from a time on, until the next one of that node. They take
// nothing away from a job of the simulation: they wait for devices that it holds, and get them before others do.
type Occupation struct {
	At time.Duration
	scheduler.Slot
}

// disturbed reports whether nodes go down, others occupy devices or users cancel jobs.
func (c *Config) disturbed() bool { return c.hasOutages() || len(c.Others)+len(c.Cancel) > 0 }

// validateOthers returns an error for an occupation of a node that does not exist or is too small.
func (c *Config) validateOthers() error {
	at := time.Duration(0)
	for _, o := range c.Others {
		if o.Node < 0 || o.Node >= c.Cluster.Nodes() {
			return fmt.Errorf("sim: others on node %d, the cluster has %d", o.Node, c.Cluster.Nodes())
		}
		g := &c.Cluster.Groups[c.Cluster.GroupOf(o.Node)]
		if o.Devices < 0 || o.Devices > g.Devices || !g.Host().Covers(o.Host) || o.At < at {
			return fmt.Errorf("sim: others on node %d at %v have %d devices and %v, want at most what the node has, in order of time", o.Node, o.At, o.Devices, o.Host)
		}
		at = o.At
	}
	return nil
}

// expectOthers plans what others do.
func (e *engine) expectOthers() {
	for i, o := range e.Others {
		e.queue.add(event{at: max(o.At, e.now), kind: occupation, index: i})
	}
	if len(e.Cancel) == 0 {
		return
	}
	for i := range e.result.Jobs {
		j := &e.result.Jobs[i].Job
		if at, ok := e.Cancel[j.ID]; ok {
			e.queue.add(event{at: max(at, e.arrives(j), e.now), kind: cancellation, index: i})
		}
	}
}

// occupations lets others take and give back devices as planned for this instant.
func (e *engine) occupations() {
	for any := false; ; any = true {
		ev, ok := e.due(occupation)
		if !ok {
			break
		}
		if !any && e.idle > 0 { // they may be what a job waits for
			e.idle = min(e.idle, maxIdle-wakesAfterOutage)
		}
		o := &e.Others[ev.index]
		if e.wanted == nil {
			e.wanted = map[int]scheduler.Slot{}
		}
		e.wanted[o.Node] = o.Slot
	}
	for _, node := range slices.Sorted(maps.Keys(e.wanted)) {
		if e.occupy(e.wanted[node]) {
			delete(e.wanted, node)
		}
	}
}

// occupy gives others what they want of a node, or as many of the devices as are free. It reports whether they have all.
func (e *engine) occupy(want scheduler.Slot) bool {
	for n := want.Devices; n >= 0; n-- {
		s := want
		if s.Devices = n; n < want.Devices {
			part := float64(n) / float64(want.Devices)
			s.Host = spec.Host{MilliCPUs: int64(float64(want.Host.MilliCPUs) * part), Bytes: int64(float64(want.Host.Bytes) * part)}
		}
		if e.ledger.Occupy(s) {
			return n == want.Devices
		}
	}
	return false // not even a part of the host is free
}

// cancellations ends the jobs that their users cancel at this instant, and reports whether there was one.
func (e *engine) cancellations() (any bool) {
	for {
		ev, ok := e.due(cancellation)
		if !ok {
			return any
		}
		r := &e.result.Jobs[ev.index]
		if r.Finished || r.Rejected != "" {
			continue
		}
		any = true
		if j := e.byOrder[ev.index]; j == nil {
			e.withdraw(ev.index)
		} else if j.advance(e.now); j.state.Grant != nil && j.state.Done >= j.work { // no round has noticed it yet
			e.complete(j, j.ends)
			continue
		} else {
			e.cancel(j)
		}
		r.End, r.Cancelled = e.now, true
		r.Unfinished = fmt.Sprintf("cancelled after %v", (e.now - r.Job.Submit).Round(time.Second))
		if r.Scored {
			e.scored--
		}
	}
}

// withdraw takes a job out of the line that admission holds it in.
func (e *engine) withdraw(record int) {
	for _, l := range e.lines {
		if i := slices.Index(l.records, record); i >= 0 {
			l.records = slices.Delete(l.records, i, i+1)
			if e.outside--; i < l.reported {
				l.reported--
			}
		}
	}
	delete(e.suspended, record)
	e.observe(Cancelled, &e.result.Jobs[record].Job, nil, "")
}

// cancel takes a job, advanced to now, out of the system.
func (e *engine) cancel(j *job) {
	grant := j.state.Grant
	if grant != nil {
		e.drop(j)
	}
	j.state.Phase = scheduler.Finished
	e.observe(Cancelled, j.state.Job, grant, "")
	e.leave(j, grant)
	e.unpair(grant)
	e.ended = append(e.ended, j.state)
}
