package paramserver

import (
	"iter"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Packing assigns replicas and parameter servers of jobs to nodes, starting from an empty
// cluster.
type Packing struct {
	Cluster *spec.Cluster
	nodes   []nodeRoom
	Jobs    []*PackedJob // by arrival
	Ended   bool         // set by GiveLeast: no job gets more
	// canStart reports whether a job may have one replica and one server in a group.
	canStart func(*spec.Job, *spec.NodeGroup) bool
}

// nodeRoom is the free capacity of a node.
type nodeRoom struct {
	group   int
	devices int
	host    spec.Host
	down    bool
}

// PackedJob is a job with the tasks assigned to it.
type PackedJob struct {
	*scheduler.JobState
	Arrival int
	usable  []bool // by group: whether the job accepts it and can start there; nil = not computed
	Group   int    // group of its nodes, -1 = no tasks
	Has     Counts
	Tasks   []task // in the order of assignment
	Granted *scheduler.Grant
	Why     string
}

// task is a replica or a parameter server on a node.
type task struct {
	node   int
	server bool
}

// NewPacking returns an empty cluster and the jobs in the system.
func NewPacking(s *scheduler.Snapshot, b *Speeds) *Packing {
	f := &Packing{Cluster: &s.Cluster, canStart: b.canStart}
	for gi := range s.Cluster.Groups {
		g := &s.Cluster.Groups[gi]
		for range g.Count {
			f.nodes = append(f.nodes, nodeRoom{group: gi, devices: g.Devices, host: g.Host()})
		}
	}
	for _, node := range s.Down {
		f.nodes[node].down = true
	}
	for i, j := range s.Jobs() {
		f.Jobs = append(f.Jobs, &PackedJob{JobState: j, Arrival: i, Group: -1})
	}
	return f
}

// accepted yields the groups that j accepts, with their numbers.
func (f *Packing) accepted(j *spec.Job) iter.Seq2[int, *spec.NodeGroup] {
	return func(yield func(int, *spec.NodeGroup) bool) {
		for gi := range f.Cluster.Groups {
			if g := &f.Cluster.Groups[gi]; j.Accepts(g) && !yield(gi, g) {
				return
			}
		}
	}
}

// GroupOf returns the group of the tasks of t.
func (f *Packing) GroupOf(t *PackedJob) *spec.NodeGroup { return &f.Cluster.Groups[t.Group] }

// GroupHeld returns the group of the present grant of t, -1 = none.
func (f *Packing) GroupHeld(t *PackedJob) int {
	if t.Grant == nil {
		return -1
	}
	return f.nodes[t.Grant.Slots[0].Node].group
}

// takes returns the resources of a replica or a parameter server of j.
func takes(j *spec.Job, server bool) (devices int, host spec.Host) {
	if server {
		return 0, j.ServerHost
	}
	return min(j.Devices, 1), j.Host
}

// fits reports whether resources are free on a node.
func (n *nodeRoom) fits(devices int, host spec.Host) bool {
	return !n.down && n.devices >= devices && n.host.Covers(host)
}

// load returns the load of a node: the sum of its used shares of devices and CPUs.
func (f *Packing) load(node int) float64 {
	n := &f.nodes[node]
	g := &f.Cluster.Groups[n.group]
	load := float64(g.Devices-n.devices) / float64(g.Devices)
	if g.CPUs > 0 {
		load += float64(1000*int64(g.CPUs)-n.host.MilliCPUs) / float64(1000*int64(g.CPUs))
	}
	return load
}

// mayUse reports whether t may run in a group: it accepts the group and can start there,
// and has no tasks in another group.
func (f *Packing) mayUse(t *PackedJob, group int) bool {
	if t.usable == nil {
		t.usable = make([]bool, len(f.Cluster.Groups))
		for gi, g := range f.accepted(t.Job) {
			t.usable[gi] = f.canStart(t.Job, g)
		}
	}
	return (t.Group < 0 || t.Group == group) && t.usable[group]
}

// leastLoaded returns the least loaded node that t may use and ok accepts, -1 = none.
func (f *Packing) leastLoaded(t *PackedJob, ok func(*nodeRoom) bool) int {
	best, least := -1, 0.0
	for i := range f.nodes {
		n := &f.nodes[i]
		if n.down || !f.mayUse(t, n.group) || !ok(n) {
			continue
		}
		if load := f.load(i); best < 0 || load < least {
			best, least = i, load
		}
	}
	return best
}

// mostSpareCPUs returns a node for a task of t that needs no device, such as a parameter
// server: the node with most CPUs beyond those that replicas of t would need on its free
// devices, so that no device is left without CPUs. Ties go to the least loaded node; -1 =
// none fits.
func (f *Packing) mostSpareCPUs(t *PackedJob, host spec.Host) int {
	devices, each := takes(t.Job, false)
	if devices == 0 {
		each = host
	}
	beyond := func(n *nodeRoom) int64 { return n.host.MilliCPUs - each.MilliCPUs*int64(n.devices) }
	most := int64(math.MinInt64)
	for i := range f.nodes {
		if n := &f.nodes[i]; n.fits(0, host) && f.mayUse(t, n.group) {
			most = max(most, beyond(n))
		}
	}
	return f.leastLoaded(t, func(n *nodeRoom) bool { return n.fits(0, host) && beyond(n) == most })
}

// Give assigns more tasks to t, all or none, and reports whether they fit. Tasks with a
// device go to the least loaded node that fits, the others to the node with most spare CPUs.
func (f *Packing) Give(t *PackedJob, more Counts) bool {
	before, group := len(t.Tasks), t.Group
	for i := range more.Tasks() {
		server := i >= more.Replicas
		devices, host := takes(t.Job, server)
		var node int
		if devices > 0 {
			node = f.leastLoaded(t, func(n *nodeRoom) bool { return n.fits(devices, host) })
		} else {
			node = f.mostSpareCPUs(t, host)
		}
		if node < 0 {
			f.TakeBack(t, before)
			t.Group = group
			return false
		}
		f.put(t, node, server)
	}
	return true
}

// giveOnNode is Give on one node.
func (f *Packing) giveOnNode(t *PackedJob, node int, more Counts) bool {
	if !f.room(t, node, more) {
		return false
	}
	for i := range more.Tasks() {
		f.put(t, node, i >= more.Replicas)
	}
	return true
}

// room reports whether more tasks of t fit on a node.
func (f *Packing) room(t *PackedJob, node int, more Counts) bool {
	devices, _ := takes(t.Job, false)
	return f.nodes[node].fits(devices*more.Replicas, t.Job.HostFor(more.Replicas, more.Servers))
}

// GiveLeast is Give on the least loaded node. If that node has no room the packing ends.
func (f *Packing) GiveLeast(t *PackedJob, more Counts) bool {
	if f.Ended {
		return false
	}
	node := f.leastLoaded(t, func(*nodeRoom) bool { return true })
	if node < 0 || !f.giveOnNode(t, node, more) {
		f.Ended = true
		return false
	}
	return true
}

// put puts a replica or a parameter server on a node that has room.
func (f *Packing) put(t *PackedJob, node int, server bool) {
	devices, host := takes(t.Job, server)
	n := &f.nodes[node]
	n.devices, n.host = n.devices-devices, n.host.Plus(host.Times(-1))
	t.Group, t.Tasks = n.group, append(t.Tasks, task{node, server})
	if server {
		t.Has.Servers++
	} else {
		t.Has.Replicas++
	}
}

// TakeBack removes all tasks of t but the first keep.
func (f *Packing) TakeBack(t *PackedJob, keep int) {
	for _, task := range t.Tasks[keep:] {
		devices, host := takes(t.Job, task.server)
		n := &f.nodes[task.node]
		n.devices, n.host = n.devices+devices, n.host.Plus(host)
		if task.server {
			t.Has.Servers--
		} else {
			t.Has.Replicas--
		}
	}
	if t.Tasks = t.Tasks[:keep]; keep == 0 {
		t.Group = -1
	}
}

// Keep gives t the tasks of its present grant, and reports whether they fit.
func (f *Packing) Keep(t *PackedJob) bool {
	if t.Grant == nil {
		return false
	}
	for _, s := range t.Grant.Slots {
		if !f.giveOnNode(t, s.Node, Counts{s.Devices + s.Workers, s.Servers}) {
			f.TakeBack(t, 0)
			return false
		}
	}
	return true
}

// ShareOf returns the dominant share of n tasks of t in its group: the largest of their
// shares of devices, CPUs and host memory.
func (f *Packing) ShareOf(t *PackedJob, n Counts) float64 {
	if t.Group < 0 {
		return 0
	}
	g := f.GroupOf(t)
	devices, _ := takes(t.Job, false)
	host, has := t.Job.HostFor(n.Replicas, n.Servers), g.Host()
	share := float64(devices*n.Replicas) / float64(g.Devices)
	if g.CPUs > 0 {
		share = max(share, float64(host.MilliCPUs)/float64(has.MilliCPUs))
	}
	if g.HostBytes > 0 {
		share = max(share, float64(host.Bytes)/float64(has.Bytes))
	}
	return share / float64(g.Count)
}
