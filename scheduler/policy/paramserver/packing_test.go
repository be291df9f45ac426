package paramserver

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// anyNumbers is a space without bounds.
type anyNumbers struct{}

func (anyNumbers) Allows(spec.Config) bool { return true }

// packingOf returns an empty packing of groups; some nodes may be down.
func packingOf(groups []spec.NodeGroup, down ...int) *Packing {
	for i := range groups {
		groups[i].Accelerator.Name = string(rune('x' + i))
	}
	return NewPacking(&scheduler.Snapshot{Cluster: spec.Cluster{Groups: groups}, Down: down}, NewSpeeds(policy.Deps{Servers: anyNumbers{}}))
}

// packedJobOf is a job; each of its replicas and servers needs the given CPUs.
func packedJobOf(devices, replica, server int) *PackedJob {
	j := &spec.Job{ID: "j", GlobalBatch: 12, Devices: devices, Host: spec.Host{MilliCPUs: int64(1000 * replica)}, ServerHost: spec.Host{MilliCPUs: int64(1000 * server)}}
	j.Plan = j.ParamServerPlan(1, 1)
	return &PackedJob{JobState: &scheduler.JobState{Job: j}, Group: -1}
}

// where writes the tasks of t: r0 is a replica on node 0, s1 a server on node 1.
func (t *PackedJob) where() string {
	var out []string
	for _, task := range t.Tasks {
		out = append(out, fmt.Sprintf("%s%d", map[bool]string{false: "r", true: "s"}[task.server], task.node))
	}
	return strings.Join(out, " ")
}

// left writes the free devices and CPUs of every node as devices/CPUs, or only the devices if
// CPUs are not limited.
func (f *Packing) left() string {
	var out []string
	for _, n := range f.nodes {
		text := fmt.Sprint(n.devices)
		if f.Cluster.Groups[n.group].CPUs > 0 {
			text += fmt.Sprintf("/%d", n.host.MilliCPUs/1000)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// TestPackingGive checks that replicas on devices go to the least loaded node with room, and
// tasks on CPUs to the node with most free CPUs. All tasks are placed in one group, on nodes
// that are up, or none.
func TestPackingGive(t *testing.T) {
	two, large := spec.NodeGroup{Count: 2, Devices: 2, CPUs: 8}, spec.NodeGroup{Count: 1, Devices: 4, CPUs: 32}
	for _, c := range []struct {
		name          string
		groups        []spec.NodeGroup
		down          []int
		before        map[int][3]int // replicas, servers and CPUs of each of others, by node
		job           *PackedJob
		more          Counts
		want, andLeft string
	}{
		{"to the least loaded, of equal ones the first", []spec.NodeGroup{two}, nil, nil, packedJobOf(1, 2, 2), Counts{3, 0}, "r0 r1 r0", "0/4 1/6"},
		{"a load is of devices and CPUs", []spec.NodeGroup{two}, nil, map[int][3]int{0: {0, 1, 6}, 1: {1, 0, 1}}, packedJobOf(1, 1, 1), Counts{1, 0}, "r1", "2/2 0/6"},
		{"a load is a share", []spec.NodeGroup{{Count: 1, Devices: 2, CPUs: 8}, {Count: 1, Devices: 8, CPUs: 32}}, nil, map[int][3]int{0: {0, 1, 3}, 1: {2, 0, 1}},
			packedJobOf(1, 1, 1), Counts{1, 0}, "r1", "2/5 5/29"},
		{"without CPUs to count by devices alone", []spec.NodeGroup{{Count: 2, Devices: 2}}, nil, map[int][3]int{0: {1, 0, 0}}, packedJobOf(1, 0, 0), Counts{2, 0}, "r1 r0", "0 1"},
		{"not where it is down", []spec.NodeGroup{two}, []int{0}, nil, packedJobOf(1, 2, 2), Counts{1, 1}, "r1 s1", "2/8 1/4"},
		{"all or none", []spec.NodeGroup{two}, nil, nil, packedJobOf(1, 2, 2), Counts{5, 0}, "", "2/8 2/8"},
		{"servers too", []spec.NodeGroup{two}, nil, nil, packedJobOf(1, 2, 5), Counts{1, 3}, "", "2/8 2/8"},
		{"in one group", []spec.NodeGroup{large, two}, nil, nil, packedJobOf(1, 2, 2), Counts{5, 0}, "", "4/32 2/8 2/8"},
		{"servers where no replica lacks the CPUs", []spec.NodeGroup{two}, nil, map[int][3]int{1: {2, 0, 1}}, packedJobOf(1, 2, 2), Counts{0, 1}, "s1", "2/8 0/4"},
		{"as many to spare, less loaded", []spec.NodeGroup{two}, nil, map[int][3]int{0: {1, 0, 2}}, packedJobOf(1, 2, 2), Counts{0, 1}, "s1", "1/6 2/6"},
		{"of a job without devices what it is itself is spared", []spec.NodeGroup{two}, nil, map[int][3]int{1: {2, 1, 1}}, packedJobOf(0, 1, 3), Counts{1, 1}, "r0 s1", "2/7 0/2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := packingOf(c.groups, c.down...)
			for node, o := range c.before {
				other := packedJobOf(1, o[2], o[2])
				if !f.giveOnNode(other, node, Counts{o[0], o[1]}) {
					t.Fatalf("no room for others on node %d", node)
				}
			}
			fits := f.Give(c.job, c.more)
			if got, left := c.job.where(), f.left(); got != c.want || left != c.andLeft || fits != (c.want != "") {
				t.Errorf("%v: %q, left %q; want %q, left %q", fits, got, left, c.want, c.andLeft)
			}
			if !fits && (c.job.Group != -1 || c.job.Has != (Counts{})) {
				t.Errorf("it has %v in group %d, want nothing", c.job.Has, c.job.Group)
			}
		})
	}
}

// TestPackingLoad checks that the load is the sum of the used shares of devices and CPUs.
func TestPackingLoad(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 16}, {Count: 1, Devices: 4}})
	f.giveOnNode(packedJobOf(1, 2, 3), 0, Counts{1, 2})
	f.giveOnNode(packedJobOf(1, 2, 3), 2, Counts{3, 1})
	for node, want := range []float64{1./4 + 8./16, 0, 3. / 4} {
		if got := f.load(node); got != want {
			t.Errorf("node %d: %g, want %g", node, got, want)
		}
	}
}

// TestPackingFree checks that the free part is that of the scarcer resource, devices or CPUs,
// without nodes that are down.
func TestPackingFree(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups []spec.NodeGroup
		down   []int
		taken  map[int]*PackedJob // one of each, by node
		want   float64
	}{
		{"all", []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 16}}, nil, nil, 1},
		{"devices are scarcer", []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 16}}, nil, map[int]*PackedJob{0: packedJobOf(1, 1, 1), 1: packedJobOf(1, 1, 1)}, 6. / 8},
		{"CPUs are scarcer", []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 16}}, nil, map[int]*PackedJob{0: packedJobOf(0, 4, 8)}, 20. / 32},
		{"half is down", []spec.NodeGroup{{Count: 2, Devices: 4, CPUs: 16}}, []int{0}, map[int]*PackedJob{1: packedJobOf(0, 4, 4)}, 8. / 32},
		{"of two groups", []spec.NodeGroup{{Count: 1, Devices: 4, CPUs: 16}, {Count: 3, Devices: 2, CPUs: 8}}, []int{1}, map[int]*PackedJob{0: packedJobOf(1, 1, 1)}, 7. / 10},
		{"no CPUs are counted", []spec.NodeGroup{{Count: 2, Devices: 4}}, nil, map[int]*PackedJob{0: packedJobOf(1, 1, 1)}, 7. / 8},
	} {
		f := packingOf(c.groups, c.down...)
		for node, j := range c.taken {
			f.giveOnNode(j, node, OneOfEach)
		}
		if got := f.Free(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

// TestPackingGiveMore checks that a job keeps its tasks if more do not fit.
func TestPackingGiveMore(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 1, Devices: 2, CPUs: 8}, {Count: 1, Devices: 2, CPUs: 8}})
	j := packedJobOf(1, 2, 2)
	if !f.Give(j, OneOfEach) || f.Give(j, Counts{1, 2}) {
		t.Fatal("there is room for one of each and one replica and one server more")
	}
	if j.where() != "r0 s0" || j.Group != 0 || j.Has != OneOfEach || f.left() != "1/4 2/8" {
		t.Errorf("it has %s in group %d, %v, left %s", j.where(), j.Group, j.Has, f.left())
	}
}

// TestPackingGiveLeast checks that a task goes to the least loaded node. If it does not fit
// there, no job gets more.
func TestPackingGiveLeast(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 2, Devices: 2, CPUs: 8}})
	other, j := packedJobOf(1, 1, 1), packedJobOf(1, 1, 7)
	if !f.GiveLeast(other, OneReplica) || !f.GiveLeast(j, OneOfEach) || j.where() != "r1 s1" {
		t.Errorf("the less loaded node 1 has room, it is at %q", j.where())
	}
	if f.GiveLeast(j, OneOfEach) || f.GiveLeast(other, OneReplica) || other.where() != "r0" {
		t.Errorf("node 0 is the least loaded and has no room, then %q was given", other.where())
	}
}

// TestPackingKeep checks that a job keeps all its tasks or none.
func TestPackingKeep(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 2, Devices: 2, CPUs: 8}})
	j := packedJobOf(1, 2, 2)
	if f.Keep(j) {
		t.Error("nothing is held")
	}
	j.Grant = &scheduler.Grant{Slots: []scheduler.Slot{{Node: 0, Devices: 2, Servers: 1}, {Node: 1, Servers: 2}}}
	if !f.Keep(j) || j.where() != "r0 r0 s0 s1 s1" || j.Group != 0 {
		t.Errorf("it is at %q in group %d", j.where(), j.Group)
	}
	f.TakeBack(j, 0)
	f.giveOnNode(packedJobOf(1, 5, 0), 1, OneReplica)
	if f.Keep(j) || j.where() != "" || j.Group != -1 || f.left() != "2/8 1/3" {
		t.Errorf("without room on node 1 it is at %q in group %d, left %s", j.where(), j.Group, f.left())
	}
}

// TestPackingShare checks that the dominant share is the largest share of a limited resource.
func TestPackingShare(t *testing.T) {
	g := spec.NodeGroup{Count: 2, Devices: 4, CPUs: 16, HostBytes: 64}
	bare := spec.NodeGroup{Count: 2, Devices: 4}
	for _, c := range []struct {
		name    string
		g       spec.NodeGroup
		devices int
		host    spec.Host // of a replica
		server  spec.Host
		at      Counts
		want    float64
	}{
		{"devices", g, 1, spec.Host{MilliCPUs: 1000, Bytes: 1}, spec.Host{MilliCPUs: 1000, Bytes: 1}, Counts{3, 1}, 3. / 8},
		{"CPUs", g, 1, spec.Host{MilliCPUs: 2000, Bytes: 1}, spec.Host{MilliCPUs: 6000, Bytes: 1}, Counts{1, 2}, 14. / 32},
		{"memory", g, 1, spec.Host{MilliCPUs: 1000, Bytes: 16}, spec.Host{MilliCPUs: 1000, Bytes: 8}, Counts{2, 3}, 56. / 128},
		{"no devices", g, 0, spec.Host{MilliCPUs: 1000}, spec.Host{MilliCPUs: 3000}, Counts{2, 1}, 5. / 32},
		{"nothing but devices is limited", bare, 1, spec.Host{MilliCPUs: 1000, Bytes: 1}, spec.Host{MilliCPUs: 9000, Bytes: 9}, Counts{1, 1}, 1. / 8},
	} {
		f := packingOf([]spec.NodeGroup{c.g})
		j := packedJobOf(c.devices, 0, 0)
		j.Job.Host, j.Job.ServerHost, j.Group = c.host, c.server, 0
		if got := f.ShareOf(j, c.at); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
		if j.Group = -1; f.ShareOf(j, c.at) != 0 {
			t.Errorf("%s: a job without devices has a share", c.name)
		}
	}
}

// TestPackingTogether checks that a job gets the fewest nodes that hold equal parts of it,
// first those with most free CPUs, then those with most free devices.
func TestPackingTogether(t *testing.T) {
	two := spec.NodeGroup{Count: 3, Devices: 2, CPUs: 8}
	for _, c := range []struct {
		name   string
		groups []spec.NodeGroup
		down   []int
		before map[int][3]int
		job    *PackedJob
		want   Counts
		at     string
	}{
		{"one node", []spec.NodeGroup{two}, nil, nil, packedJobOf(1, 2, 2), Counts{2, 2}, "s0 s0 r0 r0"},
		{"most CPUs", []spec.NodeGroup{two}, nil, map[int][3]int{0: {0, 1, 2}, 1: {0, 1, 1}}, packedJobOf(1, 2, 2), Counts{1, 1}, "s2 r2"},
		{"as many CPUs, most devices", []spec.NodeGroup{two}, nil, map[int][3]int{0: {1, 0, 2}, 1: {0, 1, 2}, 2: {2, 0, 1}}, packedJobOf(1, 2, 2), Counts{1, 1}, "s1 r1"},
		{"equal parts of two", []spec.NodeGroup{two}, nil, nil, packedJobOf(1, 3, 2), Counts{2, 2}, "s0 s1 r0 r1"},
		{"a node each", []spec.NodeGroup{two}, nil, nil, packedJobOf(1, 5, 4), Counts{1, 1}, "s0 r1"},
		{"not those that are down", []spec.NodeGroup{two}, []int{0}, nil, packedJobOf(1, 3, 2), Counts{2, 2}, "s1 s2 r1 r2"},
		{"no equal parts fit", []spec.NodeGroup{{Count: 2, Devices: 2, CPUs: 5}}, nil, map[int][3]int{0: {2, 0, 0}}, packedJobOf(1, 2, 1), Counts{2, 2}, ""},
		{"one replica goes over", []spec.NodeGroup{two}, nil, nil, packedJobOf(1, 3, 3), Counts{3, 1}, "s0 r1 r0 r1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := packingOf(c.groups, c.down...)
			for node, o := range c.before {
				if !f.giveOnNode(packedJobOf(1, o[2], o[2]), node, Counts{o[0], o[1]}) {
					t.Fatalf("no room for others on node %d", node)
				}
			}
			left := f.left()
			c.job.Group = 0
			fits := f.placeTogether(c.job, c.want)
			if got := c.job.where(); got != c.at || fits != (c.at != "") {
				t.Errorf("%v: %q, want %q", fits, got, c.at)
			}
			if !fits && (f.left() != left || c.job.Group != 0) {
				t.Errorf("left %s in group %d, want %s and still group 0", f.left(), c.job.Group, left)
			}
		})
	}
}

// free returns a job that holds nothing.
func free(id spec.JobID) *PackedJob {
	t := packedJobOf(1, 2, 2)
	t.Job.ID = id
	return t
}

// held returns a job that holds n on a node.
func held(id spec.JobID, node int, n Counts) *PackedJob {
	t := free(id)
	t.Grant = &scheduler.Grant{Job: id, Plan: t.Job.ParamServerPlan(n.Replicas, n.Servers), Shape: spec.NewShape(n.Replicas),
		Slots: []scheduler.Slot{{Node: node, Devices: n.Replicas, Servers: n.Servers, Host: t.Job.HostFor(n.Replicas, n.Servers)}}}
	return t
}

// TestSettle checks that a job with unchanged Counts keeps its grant. The others are placed
// smallest first. If one cannot be placed together, all stay where Give placed them.
func TestSettle(t *testing.T) {
	full := Counts{2, 2}
	for _, c := range []struct {
		name  string
		nodes int
		jobs  []*PackedJob
		gets  []Counts
		want  string
	}{
		{"a job that stays comes first", 2, []*PackedJob{free("a"), held("b", 0, full)}, []Counts{full, full}, "a on 1; b stays on 0"},
		{"a job with other numbers does not", 2, []*PackedJob{free("a"), held("b", 0, OneOfEach)}, []Counts{full, full}, "a on 0; b on 1"},
		{"the smaller first", 2, []*PackedJob{free("a"), free("b")}, []Counts{full, OneOfEach}, "a on 1; b on 0"},
		{"of equal ones by arrival", 2, []*PackedJob{free("a"), free("b")}, []Counts{full, full}, "a on 0; b on 1"},
		{"replicas need servers, servers replicas", 1, []*PackedJob{free("a"), free("b"), free("c")}, []Counts{OneReplica, OneServer, OneOfEach}, "c on 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := packingOf([]spec.NodeGroup{{Count: c.nodes, Devices: 2, CPUs: 8}})
			for i, j := range c.jobs {
				f.Jobs = append(f.Jobs, j)
				if !f.Give(j, c.gets[i]) {
					t.Fatalf("no room for job %s", j.Job.ID)
				}
			}
			f.Settle()
			var got []string
			for _, j := range f.Jobs {
				if j.Granted == nil {
					continue
				}
				stays := map[bool]string{true: "stays ", false: ""}[j.Granted == j.Grant]
				nodes := []string{}
				for _, s := range j.Granted.Slots {
					nodes = append(nodes, fmt.Sprint(s.Node))
				}
				got = append(got, fmt.Sprintf("%s %son %s", j.Job.ID, stays, strings.Join(nodes, ",")))
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("%s, want %s", strings.Join(got, "; "), c.want)
			}
		})
	}
}

// TestSettleMovesToAnotherGroup checks that equal Counts in another group are a new grant.
func TestSettleMovesToAnotherGroup(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 1, Devices: 2, CPUs: 8}, {Count: 1, Devices: 2, CPUs: 8}})
	j := held("j", 0, OneOfEach)
	j.Group = 1
	f.Jobs = []*PackedJob{j}
	if !f.Give(j, OneOfEach) {
		t.Fatal("no room")
	}
	if f.Settle(); len(j.Granted.Slots) != 1 || j.Granted.Slots[0].Node != 1 {
		t.Errorf("with one of each in group 1 it is granted %v", j.Granted.Slots)
	}
}

// TestSettleApart checks that a job that does not fit in equal parts is placed where there is
// room in its group.
func TestSettleApart(t *testing.T) {
	f := packingOf([]spec.NodeGroup{{Count: 2, Devices: 2, CPUs: 5}, {Count: 1, Devices: 8, CPUs: 80}})
	j := packedJobOf(1, 2, 1) // with two servers and three replicas one node has 5 CPUs, the other 3; dealt out in turn one would need 6
	j.Group = 0
	f.Jobs = []*PackedJob{j}
	if !f.Give(j, Counts{3, 2}) {
		t.Fatal("no room")
	}
	f.Settle()
	if nodes := []int{j.Granted.Slots[0].Node, j.Granted.Slots[1].Node}; !slices.Equal(nodes, []int{0, 1}) || j.Granted.Plan.DP != 3 || j.Granted.Plan.ParamServers != 2 {
		t.Errorf("it is granted %v as %s", j.Granted.Slots, j.Granted.Plan)
	}
}
