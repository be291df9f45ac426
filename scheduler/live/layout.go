package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// layout is the nodes of a cluster in the order of policies: groups of equal nodes, and by
// name within a group.
type layout struct {
	cluster spec.Cluster
	names   []string
	index   map[string]int // by name
	types   []spec.NodeGroup
	mode    []Mode
	usage   []scheduler.Slot // by node, what is not held by jobs that the policy decides about
	real    []int            // by node, devices that are free now
}

// newLayout returns the layout of some nodes.
func newLayout(nodes []Node) layout {
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b Node) int {
		return cmp.Or(compareTypes(a.Type, b.Type), compareNames(a.Name, b.Name))
	})
	l := layout{index: make(map[string]int, len(nodes))}
	for i, n := range sorted {
		n.Type.Count = 0
		if i == 0 || n.Type != l.types[i-1] {
			l.cluster.Groups = append(l.cluster.Groups, n.Type)
		}
		l.cluster.Groups[len(l.cluster.Groups)-1].Count++
		l.index[n.Name] = i
		l.names, l.types = append(l.names, n.Name), append(l.types, n.Type)
	}
	l.clear()
	return l
}

// Arrange returns the cluster of some nodes as policies see it, the number of each node by its
// name, and what makes the grant of a plan on slots: nil for plan "", an error for nodes that
// do not exist.
func Arrange(nodes []Node) (c spec.Cluster, number map[string]int, grant func(j *spec.Job, plan string, slots Slots) (*scheduler.Grant, error)) {
	l := newLayout(nodes)
	return l.cluster, l.index, l.grant
}

// clear makes the modes and usages anew.
func (l *layout) clear() {
	n := len(l.names)
	l.mode, l.usage, l.real = make([]Mode, n), make([]scheduler.Slot, n), make([]int, n)
}

// has reports whether l has every node, with its type.
func (l *layout) has(nodes []Node) bool {
	for _, n := range nodes {
		n.Type.Count = 0
		if i, ok := l.index[n.Name]; !ok || l.types[i] != n.Type {
			return false
		}
	}
	return true
}

func compareTypes(a, b spec.NodeGroup) int {
	a.Count, b.Count = 0, 0
	if a == b {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Accelerator.Name, b.Accelerator.Name), cmp.Compare(a.Devices, b.Devices),
		cmp.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)))
}

// compareNames compares names of nodes with numbers by their value: n9 before n10.
func compareNames(a, b string) int {
	prefix := func(s string) (string, string) {
		head := strings.TrimRight(s, "0123456789")
		return head, strings.TrimLeft(s[len(head):], "0")
	}
	headA, numberA := prefix(a)
	headB, numberB := prefix(b)
	return cmp.Or(cmp.Compare(headA, headB), cmp.Compare(len(numberA), len(numberB)), cmp.Compare(numberA, numberB), cmp.Compare(a, b))
}

// setNodes takes modes and usage from the observation. Nodes that are missing are down. It
// returns faults.
func (l *layout) setNodes(nodes []Node) (faults []Fault) {
	for i := range l.mode {
		l.mode[i], l.usage[i], l.real[i] = Down, scheduler.Slot{Node: i}, 0
	}
	for _, n := range nodes {
		i := l.index[n.Name]
		used := min(max(n.UsedDevices, 0), n.Type.Devices)
		if used != n.UsedDevices {
			faults = append(faults, Fault{"node " + n.Name, fmt.Errorf("live: %d of %d devices are used by others", n.UsedDevices, n.Type.Devices)})
		}
		l.mode[i], l.real[i] = n.Mode, n.Type.Devices-used-n.EndingDevices
		l.usage[i].Devices, l.usage[i].Host = used, clampHost(n.UsedHost, n.Type.Host())
	}
	return faults
}

// clampHost limits h to most, in resources that most limits.
func clampHost(h, most spec.Host) spec.Host {
	return spec.Host{MilliCPUs: min(max(h.MilliCPUs, 0), most.MilliCPUs), Bytes: min(max(h.Bytes, 0), most.Bytes)}
}

// occupy adds the slots of a job that is not managed to the usage.
func (l *layout) occupy(s Slots, need spec.Host) {
	for name, n := range s {
		if i, ok := l.index[name]; ok {
			u := &l.usage[i]
			u.Devices = min(u.Devices+n, l.types[i].Devices)
			u.Host = clampHost(u.Host.Plus(need.Times(n)), l.types[i].Host())
		}
	}
}

// hold takes slots off the devices that are free now.
func (l *layout) hold(s Slots) {
	for name, n := range s {
		if i, ok := l.index[name]; ok {
			l.real[i] -= n
		}
	}
}

// give adds slots to the devices that are free now.
func (l *layout) give(s Slots) {
	for name, n := range s {
		if i, ok := l.index[name]; ok {
			l.real[i] += n
		}
	}
}

// free reports whether slots are free now, on nodes that are up.
func (l *layout) free(s Slots) bool {
	for name, n := range s {
		if i, ok := l.index[name]; !ok || l.mode[i] != Up || l.real[i] < n {
			return false
		}
	}
	return true
}

// on reports whether slots are on a node of a mode, missing nodes being down.
func (l *layout) on(s Slots, m Mode) bool {
	for name := range s {
		mode := Down
		if i, ok := l.index[name]; ok {
			mode = l.mode[i]
		}
		if mode == m {
			return true
		}
	}
	return false
}

// slots returns the slots of a grant by name.
func (l *layout) slots(g *scheduler.Grant) Slots {
	if g == nil {
		return nil
	}
	out := make(Slots, len(g.Slots))
	for _, s := range g.Slots {
		out[l.names[s.Node]] = s.Devices
	}
	return out
}

// grant returns the grant of a plan on slots, nil if there is no plan.
func (l *layout) grant(j *spec.Job, plan string, slots Slots) (*scheduler.Grant, error) {
	if plan == "" {
		return nil, nil
	}
	p, err := spec.ParsePlan(plan)
	if err != nil {
		return nil, err
	}
	g := &scheduler.Grant{Job: j.ID, Plan: p}
	for name, n := range slots {
		i, ok := l.index[name]
		if !ok {
			return nil, fmt.Errorf("live: node %q does not exist", name)
		}
		g.Slots = append(g.Slots, scheduler.Slot{Node: i, Devices: n, Host: j.HostFor(n, 0)})
	}
	slices.SortFunc(g.Slots, func(a, b scheduler.Slot) int { return cmp.Compare(a.Node, b.Node) })
	counts := make([]int, len(g.Slots))
	for i, s := range g.Slots {
		counts[i] = s.Devices
	}
	g.Shape = spec.NewShape(counts...)
	return g, nil
}

// ledger returns a ledger with the nodes of l and no jobs.
func (l *layout) ledger() *scheduler.Ledger {
	out := scheduler.NewLedger(l.cluster, nil)
	for i, mode := range l.mode {
		if mode != Up {
			out.NodeDown(i)
		} else if u := l.usage[i]; u != (scheduler.Slot{Node: i}) {
			out.Occupy(u)
		}
	}
	return out
}

func sameSlots(a, b Slots) bool { return maps.Equal(a, b) }
