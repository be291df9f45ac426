package fgd

import (
	"cmp"
	"context"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy fgd.
var Info = policy.Info{
	Name:    "fgd",
	Doc:     "arrival order, each job on the nodes where fragmentation grows least (Weng et al., Fragmentation Gradient Descent, ATC 2023)",
	Options: options,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		v := d.Values(options)
		return &fgd{finder: candidate.NewFinder(d), backfill: v.Bool("backfill"), counts: map[request]int{}}, v.Err()
	},
}

var options = []policy.Option{
	{Name: "backfill", Default: "true", Doc: "skip jobs that do not fit; false: a job that does not fit blocks all behind it"},
}

// fgd starts waiting jobs in the order of arrival on the nodes where the fragmentation of the
// cluster grows least, and never stops a job. The fragmentation of a node is the devices that
// a typical job cannot use:
//
//	F = Σ_m p_m * (f if job m does not fit on the node, else 0)
//
//	p_m  part of all jobs so far that request as much as m
//	f    free devices of the node
//
// A job larger than a node counts as one of a whole node. Ties go to the node with fewer free
// devices, then to the first.
//
// Source: the artifact hkust-adsl/kubernetes-scheduler-simulator at commit 29a1e4c,
// pkg/utils/frag.go. Differs: there are no jobs on a part of a device; the typical jobs are all
// that arrived so far, the artifact's are given before.
type fgd struct {
	finder   *candidate.Finder
	backfill bool
	counts   map[request]int // of all jobs so far
	jobs     int
	next     int // JobState.Order of the next new job
}

// request is what a job requests on a node.
type request struct {
	devices int
	each    spec.Host // per device
}

// state is the free resources of the nodes, and the typical jobs in a fixed order.
type state struct {
	free    *scheduler.Inventory
	typical []typical
}

// typical is a request and its part of all.
type typical struct {
	request
	part float64
}

// Decide starts the waiting jobs that fit.
func (p *fgd) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Keep: true}
	p.observe(s)
	if len(s.Waiting) == 0 {
		return d, nil
	}
	st := p.state(s)
	for _, j := range s.Waiting {
		w, err := p.finder.AsSubmitted(ctx, s.Cluster, j.Job)
		if err != nil {
			return d, err
		}
		if w.Warning != "" {
			d.Warnings = append(d.Warnings, w.Warning)
		}
		g, grows := p.place(s, st, j.Job, w)
		if g == nil {
			d.Because(s, j.Job.ID, "%s do not fit", spec.Count(j.Job.Devices, "device"))
			if !p.backfill {
				break
			}
			continue
		}
		st.free.Take(g.Slots)
		d.Grants = append(d.Grants, g)
		d.Because(s, j.Job.ID, "fragmentation grows by %.3g devices", grows)
	}
	for j := range d.Unexplained(s) {
		if j.Grant == nil {
			d.Because(s, j.Job.ID, "behind a job that does not fit")
		}
	}
	return d, nil
}

// observe counts the requests of new jobs.
func (p *fgd) observe(s *scheduler.Snapshot) {
	next := p.next
	for _, j := range s.Jobs() {
		if j.Order >= p.next {
			p.counts[request{j.Job.Devices, j.Job.Host}]++
			p.jobs++
			next = max(next, j.Order+1)
		}
	}
	p.next = next
}

// state returns the state of a decision.
func (p *fgd) state(s *scheduler.Snapshot) *state {
	st := &state{free: s.Free()}
	for r, n := range p.counts {
		st.typical = append(st.typical, typical{r, float64(n) / float64(p.jobs)})
	}
	slices.SortFunc(st.typical, func(a, b typical) int {
		return cmp.Or(a.devices-b.devices, cmp.Compare(a.each.MilliCPUs, b.each.MilliCPUs), cmp.Compare(a.each.Bytes, b.each.Bytes))
	})
	return st
}

// place returns a grant for the first configuration of a job that fits, and how much
// fragmentation grows by it; nil if none fits.
func (p *fgd) place(s *scheduler.Snapshot, st *state, j *spec.Job, w *candidate.Set) (*scheduler.Grant, float64) {
	if w.Blind {
		for gi := range s.Cluster.Groups {
			if shape, ok := p.finder.Lay(st.free, gi, j, j.Devices); ok && j.Accepts(&s.Cluster.Groups[gi]) {
				if g, grows := st.find(j, &candidate.Config{Group: gi, Plan: candidate.OwnPlan(j), Shape: shape, Devices: j.Devices}); g != nil {
					return g, grows
				}
			}
		}
		return nil, 0
	}
	for i := range w.Configs {
		if g, grows := st.find(j, &w.Configs[i]); g != nil {
			return g, grows
		}
	}
	return nil, 0
}

// find returns the grant of a configuration on the nodes where fragmentation grows least: of
// the largest part of the shape first.
func (st *state) find(j *spec.Job, o *candidate.Config) (*scheduler.Grant, float64) {
	if st.free.FreeIn(o.Group) < o.Devices {
		return nil, 0
	}
	need := j.Host.Max(o.Host)
	g := &scheduler.Grant{Job: j.ID, Plan: o.Plan, Shape: o.Shape}
	used, grows := map[int]bool{}, 0.0
	first, end := st.free.Nodes(o.Group)
	size := st.free.Size(o.Group)
	for _, n := range o.Shape.PerNode() {
		best, least := -1, 0.0
		for node := first; node < end; node++ {
			free, host := st.free.Free[node], st.free.Host(node)
			if used[node] || free < n || host.Room(need, n) < n {
				continue
			}
			delta := st.fragments(size, free-n, host.Plus(need.Times(-n))) - st.fragments(size, free, host)
			if best < 0 || delta < least || delta == least && free < st.free.Free[best] {
				best, least = node, delta
			}
		}
		if best < 0 {
			return nil, 0
		}
		used[best] = true
		grows += least
		g.Slots = append(g.Slots, scheduler.Slot{Node: best, Devices: n, Host: need.Times(n)})
	}
	slices.SortFunc(g.Slots, func(a, b scheduler.Slot) int { return a.Node - b.Node })
	return g, grows
}

// fragments returns the fragmentation of a node of size devices with free devices and host
// resources.
func (st *state) fragments(size, free int, host spec.Host) (sum float64) {
	for _, m := range st.typical {
		if n := min(m.devices, size); free < n || host.Room(m.each, n) < n {
			sum += m.part * float64(free)
		}
	}
	return sum
}
