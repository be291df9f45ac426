package paramserver

import (
	"iter"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// Packing is a cluster that is given away from nothing to jobs with parameter servers,
// one replica and one server after the other.
type Packing struct {
	Cluster *spec.Cluster
	nodes   []nodeRoom
	Jobs    []*PackedJob // by arrival
	Ended   bool         // one did not fit where it had to be, see giveLeast
	// begins reports whether a job may have one replica and one server in a group.
	begins func(*spec.Job, *spec.NodeGroup) bool
}

// nodeRoom is what is left of a node.
type nodeRoom struct {
	group   int
	devices int
	host    spec.Host
	down    bool
}

// PackedJob is a job that is given replicas and parameter servers.
type PackedJob struct {
	*scheduler.JobState
	Arrival int
	may     []bool // by group: whether it accepts it and may begin there; nil = was not asked yet
	Group   int    // of its nodes, -1 = it has none
	Has     Counts
	Tasks   []servedTask // what it has, as it was given
	Granted *scheduler.Grant
	Why     string
}

// servedTask is a replica or a parameter server on a node.
type servedTask struct {
	node   int
	server bool
}

// NewPacking returns an empty cluster, and the jobs inside.
func NewPacking(s *scheduler.Snapshot, b *Belief) *Packing {
	f := &Packing{Cluster: &s.Cluster, begins: b.begins}
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
			if g := &f.Cluster.Groups[gi]; candidate.Accepts(j, g) && !yield(gi, g) {
				return
			}
		}
	}
}

// GroupOf returns the group of what t has.
func (f *Packing) GroupOf(t *PackedJob) *spec.NodeGroup { return &f.Cluster.Groups[t.Group] }

// GroupHeld returns the group of what t holds, -1 if it holds nothing.
func (f *Packing) GroupHeld(t *PackedJob) int {
	if t.Grant == nil {
		return -1
	}
	return f.nodes[t.Grant.Slots[0].Node].group
}

// takes returns what a replica or a parameter server of j takes of a node.
func takes(j *spec.Job, server bool) (devices int, host spec.Host) {
	if server {
		return 0, j.ServerHost
	}
	return min(j.Devices, 1), j.Host
}

// fits reports whether so much is left of a node.
func (n *nodeRoom) fits(devices int, host spec.Host) bool {
	return !n.down && n.devices >= devices && n.host.Covers(host)
}

// load returns how much of a node is taken: the sum of its shares of devices and CPUs.
func (f *Packing) load(node int) float64 {
	n := &f.nodes[node]
	g := &f.Cluster.Groups[n.group]
	load := float64(g.Devices-n.devices) / float64(g.Devices)
	if g.CPUs > 0 {
		load += float64(1000*int64(g.CPUs)-n.host.MilliCPUs) / float64(1000*int64(g.CPUs))
	}
	return load
}

// mayUse reports whether t may be in a group: one that it accepts and may begin in, and
// no other than that it is in.
func (f *Packing) mayUse(t *PackedJob, group int) bool {
	if t.may == nil {
		t.may = make([]bool, len(f.Cluster.Groups))
		for gi, g := range f.accepted(t.Job) {
			t.may[gi] = f.begins(t.Job, g)
		}
	}
	return (t.Group < 0 || t.Group == group) && t.may[group]
}

// least returns the least loaded node of the groups that t may use, of those for which ok holds; -1 if there is none.
func (f *Packing) least(t *PackedJob, ok func(*nodeRoom) bool) int {
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

// spare returns a node with room for what t needs CPUs for alone, such as a parameter
// server: that with most CPUs beyond those that replicas of t would need on the devices
// it has free, of equal ones the least loaded; -1 if there is none. On another the
// devices would be left without CPUs.
func (f *Packing) spare(t *PackedJob, host spec.Host) int {
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
	return f.least(t, func(n *nodeRoom) bool { return n.fits(0, host) && beyond(n) == most })
}

// Give gives t so many more, all of them or none, and reports whether they fit: those
// with a device on the least loaded node with room, the others where CPUs are to spare.
func (f *Packing) Give(t *PackedJob, more Counts) bool {
	before, group := len(t.Tasks), t.Group
	for i := range more.Tasks() {
		server := i >= more.Replicas
		devices, host := takes(t.Job, server)
		var node int
		if devices > 0 {
			node = f.least(t, func(n *nodeRoom) bool { return n.fits(devices, host) })
		} else {
			node = f.spare(t, host)
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

// giveOn is give on one node; it reports whether that has room.
func (f *Packing) giveOn(t *PackedJob, node int, more Counts) bool {
	if !f.room(t, node, more) {
		return false
	}
	for i := range more.Tasks() {
		f.put(t, node, i >= more.Replicas)
	}
	return true
}

// room reports whether a node has room for so many of t.
func (f *Packing) room(t *PackedJob, node int, more Counts) bool {
	devices, _ := takes(t.Job, false)
	return f.nodes[node].fits(devices*more.Replicas, t.Job.HostFor(more.Replicas, more.Servers))
}

// GiveLeast is giveOn on the least loaded node. If that node has no room, no job is given
// anything any more.
func (f *Packing) GiveLeast(t *PackedJob, more Counts) bool {
	if f.Ended {
		return false
	}
	node := f.least(t, func(*nodeRoom) bool { return true })
	if node < 0 || !f.giveOn(t, node, more) {
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
	t.Group, t.Tasks = n.group, append(t.Tasks, servedTask{node, server})
	if server {
		t.Has.Servers++
	} else {
		t.Has.Replicas++
	}
}

// TakeBack takes back what t was given after the first so many.
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

// Keep gives t exactly what it holds, and reports whether that is there.
func (f *Packing) Keep(t *PackedJob) bool {
	if t.Grant == nil {
		return false
	}
	for _, s := range t.Grant.Slots {
		if !f.giveOn(t, s.Node, Counts{s.Devices + s.Workers, s.Servers}) {
			f.TakeBack(t, 0)
			return false
		}
	}
	return true
}

// ShareOf returns the dominant share of so many in the group of t: the largest of
// their shares of its devices, CPUs and host memory.
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
