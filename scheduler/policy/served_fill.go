package policy

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// filling is a cluster that is given away from nothing to jobs with parameter servers,
// one replica and one server after the other.
type filling struct {
	cluster *spec.Cluster
	nodes   []nodeRoom
	jobs    []*trainee // by arrival
	ended   bool       // one did not fit where it had to be, see giveLeast
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

// trainee is a job that is given replicas and parameter servers.
type trainee struct {
	*scheduler.JobState
	arrival int
	may     []bool // by group: whether it accepts it and may begin there; nil = was not asked yet
	group   int    // of its nodes, -1 = it has none
	has     numbers
	tasks   []servedTask // what it has, as it was given
	grant   *scheduler.Grant
	why     string
}

// servedTask is a replica or a parameter server on a node.
type servedTask struct {
	node   int
	server bool
}

// newFilling returns an empty cluster, and the jobs inside.
func newFilling(s *scheduler.Snapshot, b *servedBelief) *filling {
	f := &filling{cluster: &s.Cluster, begins: b.begins}
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
		f.jobs = append(f.jobs, &trainee{JobState: j, arrival: i, group: -1})
	}
	return f
}

// accepted yields the groups that j accepts, with their numbers.
func (f *filling) accepted(j *spec.Job) iter.Seq2[int, *spec.NodeGroup] {
	return func(yield func(int, *spec.NodeGroup) bool) {
		for gi := range f.cluster.Groups {
			if g := &f.cluster.Groups[gi]; accepts(j, g) && !yield(gi, g) {
				return
			}
		}
	}
}

// groupOf returns the group of what t has.
func (f *filling) groupOf(t *trainee) *spec.NodeGroup { return &f.cluster.Groups[t.group] }

// groupHeld returns the group of what t holds, -1 if it holds nothing.
func (f *filling) groupHeld(t *trainee) int {
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
func (f *filling) load(node int) float64 {
	n := &f.nodes[node]
	g := &f.cluster.Groups[n.group]
	load := float64(g.Devices-n.devices) / float64(g.Devices)
	if g.CPUs > 0 {
		load += float64(1000*int64(g.CPUs)-n.host.MilliCPUs) / float64(1000*int64(g.CPUs))
	}
	return load
}

// mayUse reports whether t may be in a group: one that it accepts and may begin in, and
// no other than that it is in.
func (f *filling) mayUse(t *trainee, group int) bool {
	if t.may == nil {
		t.may = make([]bool, len(f.cluster.Groups))
		for gi, g := range f.accepted(t.Job) {
			t.may[gi] = f.begins(t.Job, g)
		}
	}
	return (t.group < 0 || t.group == group) && t.may[group]
}

// least returns the least loaded node of the groups that t may use, of those for which ok holds; -1 if there is none.
func (f *filling) least(t *trainee, ok func(*nodeRoom) bool) int {
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
func (f *filling) spare(t *trainee, host spec.Host) int {
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

// give gives t so many more, all of them or none, and reports whether they fit: those
// with a device on the least loaded node with room, the others where CPUs are to spare.
func (f *filling) give(t *trainee, more numbers) bool {
	before, group := len(t.tasks), t.group
	for i := range more.tasks() {
		server := i >= more.replicas
		devices, host := takes(t.Job, server)
		var node int
		if devices > 0 {
			node = f.least(t, func(n *nodeRoom) bool { return n.fits(devices, host) })
		} else {
			node = f.spare(t, host)
		}
		if node < 0 {
			f.takeBack(t, before)
			t.group = group
			return false
		}
		f.put(t, node, server)
	}
	return true
}

// giveOn is give on one node; it reports whether that has room.
func (f *filling) giveOn(t *trainee, node int, more numbers) bool {
	if !f.room(t, node, more) {
		return false
	}
	for i := range more.tasks() {
		f.put(t, node, i >= more.replicas)
	}
	return true
}

// room reports whether a node has room for so many of t.
func (f *filling) room(t *trainee, node int, more numbers) bool {
	devices, _ := takes(t.Job, false)
	return f.nodes[node].fits(devices*more.replicas, t.Job.HostFor(more.replicas, more.servers))
}

// giveLeast is giveOn on the least loaded node, whether that has room or not: if not,
// nobody is given anything any more.
func (f *filling) giveLeast(t *trainee, more numbers) bool {
	if f.ended {
		return false
	}
	node := f.least(t, func(*nodeRoom) bool { return true })
	if node < 0 || !f.giveOn(t, node, more) {
		f.ended = true
		return false
	}
	return true
}

// put puts a replica or a parameter server on a node that has room.
func (f *filling) put(t *trainee, node int, server bool) {
	devices, host := takes(t.Job, server)
	n := &f.nodes[node]
	n.devices, n.host = n.devices-devices, n.host.Plus(host.Times(-1))
	t.group, t.tasks = n.group, append(t.tasks, servedTask{node, server})
	if server {
		t.has.servers++
	} else {
		t.has.replicas++
	}
}

// takeBack takes back what t was given after the first so many.
func (f *filling) takeBack(t *trainee, keep int) {
	for _, task := range t.tasks[keep:] {
		devices, host := takes(t.Job, task.server)
		n := &f.nodes[task.node]
		n.devices, n.host = n.devices+devices, n.host.Plus(host)
		if task.server {
			t.has.servers--
		} else {
			t.has.replicas--
		}
	}
	if t.tasks = t.tasks[:keep]; keep == 0 {
		t.group = -1
	}
}

// keep gives t exactly what it holds, and reports whether that is there.
func (f *filling) keep(t *trainee) bool {
	if t.Grant == nil {
		return false
	}
	for _, s := range t.Grant.Slots {
		if !f.giveOn(t, s.Node, numbers{s.Devices + s.Workers, s.Servers}) {
			f.takeBack(t, 0)
			return false
		}
	}
	return true
}

// shareOf returns the dominant share of so many in the group of t: the largest of
// their shares of its devices, CPUs and host memory.
func (f *filling) shareOf(t *trainee, n numbers) float64 {
	if t.group < 0 {
		return 0
	}
	g := f.groupOf(t)
	devices, _ := takes(t.Job, false)
	host, has := t.Job.HostFor(n.replicas, n.servers), g.Host()
	share := float64(devices*n.replicas) / float64(g.Devices)
	if g.CPUs > 0 {
		share = max(share, float64(host.MilliCPUs)/float64(has.MilliCPUs))
	}
	if g.HostBytes > 0 {
		share = max(share, float64(host.Bytes)/float64(has.Bytes))
	}
	return share / float64(g.Count)
}

// settle turns what everybody was given into grants. Who has as many of either as it
// holds, in the group of that, keeps what it holds; the others, who has the fewest first, go to the fewest
// nodes that can hold them with equal parts on each, where a step takes least time
// (Peng et al., Optimus, EuroSys 2018, section 4.2). If not all find room that way,
// everybody is where it was given its own.
func (f *filling) settle() {
	var keepers, others []*trainee
	for _, t := range f.jobs {
		switch {
		case t.has.replicas < 1 || t.has.servers < 1:
		case f.groupHeld(t) == t.group && numbersOf(t.Grant) == t.has:
			keepers = append(keepers, t)
		default:
			others = append(others, t)
		}
	}
	slices.SortStableFunc(others, func(a, b *trainee) int { return cmp.Compare(a.has.tasks(), b.has.tasks()) })
	again := f.emptied()
	for i, t := range slices.Concat(keepers, others) {
		anew := &trainee{JobState: t.JobState, group: t.group}
		fits := false
		if i < len(keepers) {
			fits = again.keep(anew)
		} else {
			fits = again.together(anew, t.has) || again.give(anew, t.has)
		}
		if !fits {
			f.grantAll(func(t *trainee) []servedTask { return t.tasks })
			return
		}
		again.jobs = append(again.jobs, anew)
	}
	tasks := map[*scheduler.JobState][]servedTask{}
	for _, t := range again.jobs {
		tasks[t.JobState] = t.tasks
	}
	f.grantAll(func(t *trainee) []servedTask { return tasks[t.JobState] })
}

func numbersOf(g *scheduler.Grant) numbers {
	return numbers{g.Plan.Normal().DP, g.Plan.ParamServers}
}

// emptied returns the cluster with nobody on it.
func (f *filling) emptied() *filling {
	out := &filling{cluster: f.cluster, nodes: slices.Clone(f.nodes), begins: f.begins}
	for i := range out.nodes {
		n := &out.nodes[i]
		g := &f.cluster.Groups[n.group]
		n.devices, n.host = g.Devices, g.Host()
	}
	return out
}

// together gives t what it is to have on the fewest nodes, most of whose CPUs are
// free, that can hold it dealt out to them in turn, servers first.
func (f *filling) together(t *trainee, want numbers) bool {
	group := t.group
	var nodes []int
	for i := range f.nodes {
		if n := &f.nodes[i]; !n.down && n.group == group {
			nodes = append(nodes, i)
		}
	}
	slices.SortStableFunc(nodes, func(a, b int) int {
		return cmp.Or(cmp.Compare(f.nodes[b].host.MilliCPUs, f.nodes[a].host.MilliCPUs), cmp.Compare(f.nodes[b].devices, f.nodes[a].devices))
	})
	for k := 1; k <= min(len(nodes), want.tasks()); k++ {
		fits := true
		for i := 0; i < want.tasks() && fits; i++ {
			node, more := nodes[i%k], oneServer
			if i >= want.servers {
				more = oneReplica
			}
			fits = f.giveOn(t, node, more)
		}
		if fits {
			return true
		}
		f.takeBack(t, 0)
		t.group = group
	}
	return false
}

// grantAll makes the grants of tasks; those that give a job what it holds are those it
// holds.
func (f *filling) grantAll(of func(*trainee) []servedTask) {
	for _, t := range f.jobs {
		if t.has.replicas < 1 || t.has.servers < 1 {
			continue
		}
		if t.grant = servedGrant(t.Job, of(t)); t.grant.Same(t.Grant) {
			t.grant = t.Grant
		}
	}
}

// servedGrant returns the grant of tasks to j.
func servedGrant(j *spec.Job, tasks []servedTask) *scheduler.Grant {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b servedTask) int { return cmp.Compare(a.node, b.node) })
	g := &scheduler.Grant{Job: j.ID}
	n := numbers{}
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
			n.servers++
		default:
			s.Workers += 1 - devices
			n.replicas++
		}
	}
	counts := make([]int, len(g.Slots))
	for i, s := range g.Slots {
		counts[i] = s.Devices
	}
	g.Shape, g.Plan = spec.NewShape(counts...), j.ServedPlan(n.replicas, n.servers)
	return g
}
