package paramserver

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Settle turns the Counts of jobs into grants. A job with the Counts and group of its
// present grant keeps it. The others are placed in ascending number of tasks, each evenly on
// the fewest nodes, where a step takes the least time (Peng et al., Optimus, EuroSys 2018,
// section 4.2). If not all fit that way, each job stays where the rule put its tasks.
func (f *Packing) Settle() {
	var keepers, others []*PackedJob
	for _, t := range f.Jobs {
		switch {
		case t.Has.Replicas < 1 || t.Has.Servers < 1:
		case f.GroupHeld(t) == t.Group && CountsOf(t.Grant) == t.Has:
			keepers = append(keepers, t)
		default:
			others = append(others, t)
		}
	}
	slices.SortStableFunc(others, func(a, b *PackedJob) int { return cmp.Compare(a.Has.Tasks(), b.Has.Tasks()) })
	repacked := f.emptied()
	for i, t := range slices.Concat(keepers, others) {
		copied := &PackedJob{JobState: t.JobState, Group: t.Group}
		fits := false
		if i < len(keepers) {
			fits = repacked.Keep(copied)
		} else {
			fits = repacked.placeTogether(copied, t.Has) || repacked.Give(copied, t.Has)
		}
		if !fits {
			f.grantAll(func(t *PackedJob) []task { return t.Tasks })
			return
		}
		repacked.Jobs = append(repacked.Jobs, copied)
	}
	tasks := map[*scheduler.JobState][]task{}
	for _, t := range repacked.Jobs {
		tasks[t.JobState] = t.Tasks
	}
	f.grantAll(func(t *PackedJob) []task { return tasks[t.JobState] })
}

// CountsOf returns the workers and parameter servers of a grant.
func CountsOf(g *scheduler.Grant) Counts {
	return Counts{g.Plan.Normal().DP, g.Plan.ParamServers}
}

// emptied returns the cluster without jobs.
func (f *Packing) emptied() *Packing {
	out := &Packing{Cluster: f.Cluster, nodes: slices.Clone(f.nodes), canStart: f.canStart}
	for i := range out.nodes {
		n := &out.nodes[i]
		g := &f.Cluster.Groups[n.group]
		n.devices, n.host = g.Devices, g.Host()
	}
	return out
}

// placeTogether places the tasks of t on the fewest nodes, most free CPUs first, that can
// hold them distributed round-robin, servers first.
func (f *Packing) placeTogether(t *PackedJob, want Counts) bool {
	group := t.Group
	var nodes []int
	for i := range f.nodes {
		if n := &f.nodes[i]; !n.down && n.group == group {
			nodes = append(nodes, i)
		}
	}
	slices.SortStableFunc(nodes, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.nodes[b].host.MilliCPUs, f.nodes[a].host.MilliCPUs), cmp.Compare(f.nodes[b].devices, f.nodes[a].devices))
	})
	for k := 1; k <= min(len(nodes), want.Tasks()); k++ {
		fits := true
		for i := 0; i < want.Tasks() && fits; i++ {
			node, more := nodes[i%k], OneServer
			if i >= want.Servers {
				more = OneReplica
			}
			fits = f.giveOnNode(t, node, more)
		}
		if fits {
			return true
		}
		f.TakeBack(t, 0)
		t.Group = group
	}
	return false
}

// grantAll makes the grants of all jobs from their tasks. A grant equal to the present one
// is the present one.
func (f *Packing) grantAll(of func(*PackedJob) []task) {
	for _, t := range f.Jobs {
		if t.Has.Replicas < 1 || t.Has.Servers < 1 {
			continue
		}
		if t.Granted = grantOf(t.Job, of(t)); t.Granted.Same(t.Grant) {
			t.Granted = t.Grant
		}
	}
}

// grantOf returns the grant of tasks to j.
func grantOf(j *spec.Job, tasks []task) *scheduler.Grant {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.node, b.node) })
	g := &scheduler.Grant{Job: j.ID}
	n := Counts{}
	for _, t := range tasks {
		if len(g.Slots) == 0 || g.Slots[len(g.Slots)-1].Node != t.node {
			g.Slots = append(g.Slots, scheduler.Slot{Node: t.node})
		}
		s := &g.Slots[len(g.Slots)-1]
		devices, host := takes(j, t.server)
		s.Devices, s.Host = s.Devices+devices, s.Host.Plus(host)
		switch {
		case t.server:
			s.Servers++
			n.Servers++
		default:
			s.Workers += 1 - devices
			n.Replicas++
		}
	}
	counts := make([]int, len(g.Slots))
	for i, s := range g.Slots {
		counts[i] = s.Devices
	}
	g.Shape, g.Plan = spec.NewShape(counts...), j.ParamServerPlan(n.Replicas, n.Servers)
	return g
}

// Free returns the share of the scarcer of devices and CPUs that is left.
func (f *Packing) Free() float64 {
	devices, cpus, allDevices, allCPUs := 0, 0.0, 0, 0.0
	for i := range f.nodes {
		n := &f.nodes[i]
		g := &f.Cluster.Groups[n.group]
		allDevices += g.Devices
		allCPUs += 1000 * float64(g.CPUs)
		if !n.down {
			devices += n.devices
			cpus += float64(n.host.MilliCPUs)
		}
	}
	share := float64(devices) / float64(max(allDevices, 1))
	if allCPUs > 0 {
		share = min(share, cpus/allCPUs)
	}
	return share
}
