package scheduler

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// System is the jobs of an engine, as Check reads them.
type System interface {
	// Find returns the job of an ID in the system, nil = there is none.
	Find(id spec.JobID) *JobState
	// Holding yields the jobs with a grant, in the order of the stops of a decision without
	// Keep.
	Holding() iter.Seq[*JobState]
}

// Changes are those of a decision: the jobs that lose their grant, and the jobs with another
// grant than they hold, in the order of the grants.
type Changes struct{ Stops, Starts []Change }

// All returns the changes as Ledger.Apply takes them.
func (c Changes) All() []Change { return append(c.Stops[:len(c.Stops):len(c.Stops)], c.Starts...) }

// Check returns the changes of a decision at now, which hold until the next call with l. The
// error names the first job with an invalid change: unknown, granted devices twice, a grant on
// nodes that are down or of other devices than its plan needs, or sharing devices with a job
// that does not share them. Whether devices are free is checked by Ledger.Apply.
func Check(l *Ledger, jobs System, now time.Duration, d *Decision) (Changes, error) {
	l.round++
	if err := l.findStarts(jobs, d); err != nil {
		return Changes{}, err
	}
	if err := l.findStops(jobs, d); err != nil {
		return Changes{}, err
	}
	if d.Wake != 0 && d.Wake <= now {
		return Changes{}, fmt.Errorf("wake-up at %v is not after now", d.Wake)
	}
	return l.found, l.found.checkPairs()
}

// stamp marks a job as named by the decision, and reports whether it was before.
func (l *Ledger) stamp(j *JobState) (before bool) {
	if before = l.stamped(j); before {
		return true
	}
	if more := j.Order + 1 - len(l.stamps); more > 0 {
		l.stamps = append(l.stamps, make([]uint64, more)...)
	}
	l.stamps[j.Order] = l.round
	return false
}

func (l *Ledger) stamped(j *JobState) bool {
	return j.Order < len(l.stamps) && l.stamps[j.Order] == l.round
}

func (l *Ledger) findStarts(jobs System, d *Decision) error {
	l.found.Starts = l.found.Starts[:0]
	for _, g := range d.Grants {
		if g == nil {
			return errors.New("a nil grant")
		}
		j := jobs.Find(g.Job)
		switch {
		case j == nil:
			return fmt.Errorf("job %s is granted devices but is not in the queue", g.Job)
		case l.stamp(j):
			return fmt.Errorf("job %s is granted devices twice", g.Job)
		}
		if g == j.Grant {
			continue
		}
		if err := l.CheckGrant(j.Job, g); err != nil {
			return err
		}
		if !g.Same(j.Grant) {
			l.found.Starts = append(l.found.Starts, Change{j, g})
		}
	}
	return nil
}

func (l *Ledger) findStops(jobs System, d *Decision) error {
	l.found.Stops = l.found.Stops[:0]
	if !d.Keep {
		if len(d.Stops) > 0 {
			return fmt.Errorf("job %s is stopped by name in a decision without Keep", d.Stops[0])
		}
		for j := range jobs.Holding() {
			if !l.stamped(j) {
				l.found.Stops = append(l.found.Stops, Change{Job: j})
			}
		}
		return nil
	}
	for _, id := range d.Stops {
		j := jobs.Find(id)
		switch {
		case j == nil || j.Grant == nil:
			return fmt.Errorf("job %s is stopped but has no devices", id)
		case l.stamp(j):
			return fmt.Errorf("job %s is stopped, but also granted devices or stopped twice", id)
		}
		l.found.Stops = append(l.found.Stops, Change{Job: j})
	}
	return nil
}

// CheckGrant returns an error that says why g is no valid grant of j on the nodes that are up,
// if no other job held devices.
func (l *Ledger) CheckGrant(j *spec.Job, g *Grant) error {
	counts := make([]int, 0, len(g.Slots))
	var held spec.Host
	for i := range g.Slots {
		if err := l.checkSlot(j, g, i); err != nil {
			return fmt.Errorf("job %s: %w", j.ID, err)
		}
		held = held.Plus(g.Slots[i].Host)
		counts = append(counts, g.Slots[i].Devices)
	}
	if len(counts) == 0 {
		return fmt.Errorf("job %s: a grant without devices", j.ID)
	}
	if got := spec.NewShape(counts...).Devices; got != g.Shape.Devices {
		return fmt.Errorf("job %s: slots are %s, but the shape is %s", j.ID, got, g.Shape.Devices)
	}
	if needs := g.Shape.Host(); !held.Covers(needs) {
		return fmt.Errorf("job %s: the shape needs %v, the slots have %v of hosts", j.ID, needs, held)
	}
	if err := checkPlan(j, g); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	if group := &l.cluster.Groups[l.free.Group[g.Slots[0].Node]]; !j.Accepts(group) {
		return fmt.Errorf("job %s: node %d has %s, the job requests %s", j.ID, g.Slots[0].Node, group.Accelerator.Name, j.Accelerator)
	}
	return nil
}

// checkSlot checks slot i of a grant of j.
func (l *Ledger) checkSlot(j *spec.Job, g *Grant, i int) error {
	s, groups := g.Slots[i], l.free.Group
	if s.Node < 0 || s.Node >= len(groups) {
		return fmt.Errorf("node %d is not in 0..%d", s.Node, len(groups)-1)
	}
	if l.isDown(s.Node) {
		return fmt.Errorf("node %d is down", s.Node)
	}
	if least := min(s.Devices, s.Workers, s.Servers); least < 0 || s.Devices+s.Workers+s.Servers < 1 {
		return fmt.Errorf("%s of node %d", s.What(), s.Node)
	}
	if i > 0 && s.Node <= g.Slots[i-1].Node {
		return fmt.Errorf("node %d follows node %d, want slots ascending by node", s.Node, g.Slots[i-1].Node)
	}
	if groups[s.Node] != groups[g.Slots[0].Node] {
		return fmt.Errorf("nodes %d and %d are of different groups", g.Slots[0].Node, s.Node)
	}
	if need := j.HostFor(s.Devices+s.Workers, s.Servers); !s.Host.Covers(need) {
		return fmt.Errorf("%v of the host of node %d for %s, it needs %v", s.Host, s.Node, s.What(), need)
	}
	return nil
}

// checkPlan checks that the plan of a grant of j agrees with its slots.
func checkPlan(j *spec.Job, g *Grant) error {
	n, devices, workers := g.Plan.Devices(), g.Devices(), g.Workers()
	switch {
	case j.OnCPUs() && devices != 0:
		return fmt.Errorf("%s granted, its replicas run on CPUs alone", spec.Count(devices, "device"))
	case !j.OnCPUs() && workers != 0:
		return fmt.Errorf("%s on CPUs granted, its replicas run on devices", spec.Count(workers, "worker"))
	case j.OnCPUs() && n != workers:
		return fmt.Errorf("plan %s is for %s, %d are granted", g.Plan, spec.Count(n, "replica"), workers)
	case !j.OnCPUs() && n != devices:
		return fmt.Errorf("plan %s is for %s, %s are granted", g.Plan, spec.Count(n, "device"), g.Shape.Devices)
	case g.Plan.ParamServers != g.Servers():
		return fmt.Errorf("plan %s has %s, %d are granted", g.Plan, spec.Count(g.Plan.ParamServers, "parameter server"), g.Servers())
	}
	return nil
}

// checkPairs checks that jobs which share devices share the same ones with each other, and
// that if one job of a pair changes, so does the other.
func (c Changes) checkPairs() error {
	shares := func(c Change) bool {
		return c.Job.Grant != nil && c.Job.Grant.With != "" || c.To != nil && c.To.With != ""
	}
	var to map[spec.JobID]*Grant // nil = no job shares devices
	for _, list := range [][]Change{c.Stops, c.Starts} {
		for _, change := range list {
			if shares(change) && to == nil {
				to = c.byID()
			}
		}
	}
	if to == nil {
		return nil
	}
	for _, list := range [][]Change{c.Stops, c.Starts} {
		for _, change := range list {
			if from := change.Job.Grant; from != nil && from.With != "" {
				if _, changes := to[from.With]; !changes {
					return fmt.Errorf("job %s changes, but job %s shares its devices and does not: give that one a grant without sharing, or stop it", from.Job, from.With)
				}
			}
			if err := change.To.CheckPair(to); err != nil {
				return err
			}
		}
	}
	return nil
}

// byID returns the new grants by job.
func (c Changes) byID() map[spec.JobID]*Grant {
	out := make(map[spec.JobID]*Grant, len(c.Stops)+len(c.Starts))
	for _, change := range c.All() {
		out[change.Job.Job.ID] = change.To
	}
	return out
}

// CheckPair returns an error unless the colocated job of g, if any, has a grant in grants that
// shares the same devices with it.
func (g *Grant) CheckPair(grants map[spec.JobID]*Grant) error {
	if g == nil || g.With == "" || g.Shares(grants[g.With]) {
		return nil
	}
	return fmt.Errorf("job %s shares its devices with job %s in the decision, but not the reverse", g.Job, g.With)
}
