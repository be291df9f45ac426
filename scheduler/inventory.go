package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Inventory counts the free devices of every node and finds nodes by their number
// without a scan of the cluster.
type Inventory struct {
	Free  []int // by node; Take and Give alone change it
	Group []int // the cluster group each node belongs to; not to be modified

	host   []spec.Host // free, by node; nil = no group limits any
	groups []groupIndex
	// journal is the changes since mark, in order: given slots have positive devices,
	// taken ones negative.
	journal []Slot
	marked  bool

	now     time.Duration
	leaving []Leaving // nodes that are known to go down after now
}

// groupIndex is the nodes of one cluster group by their free devices.
type groupIndex struct {
	total      int        // free devices
	size       int        // devices per node
	host       spec.Host  // of a node
	first, end int        // its nodes
	racks      spec.Racks // how they are cabled
	with       []*nodeSet // nodes, counted from first, by free devices; nil = none so far
	some       *nodeSet   // numbers of free devices that occur
}

// NewInventory returns the inventory of an idle cluster.
func NewInventory(c spec.Cluster) *Inventory {
	inv := &Inventory{groups: make([]groupIndex, len(c.Groups)), Free: make([]int, 0, c.Nodes()), Group: make([]int, 0, c.Nodes())}
	for gi, g := range c.Groups {
		x := newGroupIndex(g.Devices, len(inv.Free), g.Count)
		x.racks, x.host = g.Racks, g.Host()
		for i := range g.Count {
			inv.Free = append(inv.Free, g.Devices)
			inv.Group = append(inv.Group, gi)
			x.add(i, g.Devices)
		}
		inv.groups[gi] = x
	}
	if slices.ContainsFunc(inv.groups, func(x groupIndex) bool { return x.host != unlimited }) {
		inv.host = make([]spec.Host, len(inv.Free))
		for node, gi := range inv.Group {
			inv.host[node] = inv.groups[gi].host
		}
	}
	return inv
}

var unlimited = spec.Host{MilliCPUs: spec.Unlimited, Bytes: spec.Unlimited}

// newGroupIndex returns an index for count nodes from first on with at most devices
// devices each. No node is added yet.
func newGroupIndex(devices, first, count int) groupIndex {
	return groupIndex{size: devices, first: first, end: first + count,
		with: make([]*nodeSet, devices+1), some: newNodeSet(devices + 1)}
}

// add adds a node, counted from first, with its number of free devices.
func (x *groupIndex) add(node, free int) {
	s := x.with[free]
	if s == nil {
		s = newNodeSet(x.end - x.first)
		x.with[free] = s
	}
	if s.count == 0 {
		x.some.add(free)
	}
	s.add(node)
	x.total += free
}

func (x *groupIndex) remove(node, free int) {
	s := x.with[free]
	s.remove(node)
	x.total -= free
	if s.count == 0 {
		x.some.remove(free)
	}
}

// Clone returns an independent copy, in time proportional to the cluster. Take and Give
// are cheaper for trials that are undone at once.
func (inv *Inventory) Clone() *Inventory {
	c := &Inventory{Free: slices.Clone(inv.Free), Group: inv.Group, host: slices.Clone(inv.host), groups: slices.Clone(inv.groups), now: inv.now, leaving: inv.leaving}
	for i := range c.groups {
		x := &c.groups[i]
		x.some, x.with = x.some.clone(), slices.Clone(x.with)
		for f, s := range x.with {
			if s != nil {
				x.with[f] = s.clone()
			}
		}
	}
	return c
}

// For returns the devices of a group for a job with a need of the host per device: every
// node has as many free devices, and is as large when idle, as its host covers. If the
// hosts cover all devices, it is inv itself; else a view made in time proportional to the
// cluster, which must not be modified.
func (inv *Inventory) For(group int, need spec.Host) *Inventory {
	if group < 0 || inv.host == nil || need == (spec.Host{}) {
		return inv
	}
	size := inv.groups[group].host.Room(need, inv.groups[group].size)
	if size == inv.groups[group].size && !inv.short(group, need) {
		return inv
	}
	return inv.view(group, size, func(node int) int { return inv.host[node].Room(need, inv.Free[node]) })
}

// short reports whether the host of a node of a group does not cover its free devices for a need per device.
func (inv *Inventory) short(group int, need spec.Host) bool {
	for free := inv.Least(group, 1); free > 0; free = inv.Least(group, free+1) {
		for node := inv.Next(group, free, 0); node >= 0; node = inv.Next(group, free, node+1) {
			if inv.host[node].Room(need, free) < free {
				return true
			}
		}
	}
	return false
}

// view returns a copy with other free devices of the nodes of a group, of at most size.
func (inv *Inventory) view(group, size int, free func(node int) int) *Inventory {
	x := &inv.groups[group]
	out := &Inventory{Free: slices.Clone(inv.Free), Group: inv.Group, host: inv.host, groups: slices.Clone(inv.groups), now: inv.now, leaving: inv.leaving}
	y := newGroupIndex(size, x.first, x.end-x.first)
	y.racks, y.host = x.racks, x.host
	for node := x.first; node < x.end; node++ {
		out.Free[node] = free(node)
		y.add(node-x.first, out.Free[node])
	}
	out.groups[group] = y
	return out
}

// Staying returns the devices of a group on nodes that are not known to go down within a time
// from now: inv itself if that are all free ones, else a view made in time proportional to the
// cluster, which must not be modified.
func (inv *Inventory) Staying(group int, within time.Duration) *Inventory {
	if group < 0 || len(inv.leaving) == 0 {
		return inv
	}
	leaves := func(node int) bool {
		l := leaves(inv.leaving, node)
		return l != nil && l.At-inv.now < within
	}
	x := &inv.groups[group]
	if !slices.ContainsFunc(inv.leaving, func(l Leaving) bool {
		return l.Node >= x.first && l.Node < x.end && inv.Free[l.Node] > 0 && leaves(l.Node)
	}) {
		return inv
	}
	return inv.view(group, x.size, func(node int) int {
		if leaves(node) {
			return 0
		}
		return inv.Free[node]
	})
}

// Nodes returns the nodes of a cluster group: from first up to but without end.
func (inv *Inventory) Nodes(group int) (first, end int) {
	return inv.groups[group].first, inv.groups[group].end
}

// RackEnd returns one past the last node of the rack that a node of a group is in.
func (inv *Inventory) RackEnd(group, node int) int {
	x := &inv.groups[group]
	if x.racks.Nodes < 1 {
		return x.end
	}
	return min(x.first+(x.racks.Of(node-x.first)+1)*x.racks.Nodes, x.end)
}

// Size returns the devices each node of a cluster group has, free or not.
func (inv *Inventory) Size(group int) int { return inv.groups[group].size }

// whole returns all devices and host resources of a node, free or not.
func (inv *Inventory) whole(node int) []Slot {
	x := &inv.groups[inv.Group[node]]
	return []Slot{{Node: node, Devices: x.size, Host: x.host}}
}

// Host returns the free CPUs and memory of a node, unlimited if its group does not limit them.
func (inv *Inventory) Host(node int) spec.Host {
	if inv.host == nil {
		return unlimited
	}
	return inv.host[node]
}

// FreeIn returns the free devices of a cluster group.
func (inv *Inventory) FreeIn(group int) int { return inv.groups[group].total }

// With returns the number of nodes of a group with exactly free free devices.
func (inv *Inventory) With(group, free int) int {
	if s := inv.groups[group].with[free]; s != nil {
		return s.count
	}
	return 0
}

// Least returns the least number of free devices, at or above free, of a node of a
// group; -1 if there is no such node.
func (inv *Inventory) Least(group, free int) int { return inv.groups[group].some.next(free) }

// Next returns the first node of a group from node on with exactly free free devices,
// -1 if there is none.
func (inv *Inventory) Next(group, free, node int) int {
	x := &inv.groups[group]
	s := x.with[free]
	if s == nil {
		return -1
	}
	if n := s.next(max(node-x.first, 0)); n >= 0 {
		return x.first + n
	}
	return -1
}

// Take removes slots and reports whether all were free; if not, nothing is
// taken. Slots without devices take host resources only.
func (inv *Inventory) Take(slots []Slot) bool {
	for i, s := range slots {
		if s.Node < 0 || s.Node >= len(inv.Free) || s.Devices < 0 || s.nothing() || inv.Free[s.Node] < s.Devices || !inv.hasHost(s) {
			inv.Give(slots[:i])
			return false
		}
		inv.change(s, -1)
	}
	return true
}

// hasHost reports whether the host resources of s are free on its node.
func (inv *Inventory) hasHost(s Slot) bool {
	if s.Host == (spec.Host{}) || inv.host == nil {
		return true
	}
	has := inv.host[s.Node]
	return s.Host.MilliCPUs <= has.MilliCPUs && s.Host.Bytes <= has.Bytes
}

// Give returns slots taken before.
func (inv *Inventory) Give(slots []Slot) {
	for _, s := range slots {
		inv.change(s, 1)
	}
}

// change adds s to the free resources of its node, or subtracts it with sign -1.
func (inv *Inventory) change(s Slot, sign int) {
	s.Devices, s.Host = sign*s.Devices, s.Host.Times(sign)
	if inv.marked {
		inv.journal = append(inv.journal, s)
	}
	node, by := s.Node, s.Devices
	if inv.host != nil {
		inv.host[node] = inv.host[node].Plus(s.Host)
	}
	x := &inv.groups[inv.Group[node]]
	was := inv.Free[node]
	x.remove(node-x.first, was)
	x.add(node-x.first, was+by)
	inv.Free[node] = was + by
}

// mark undoes the changes since the last mark, and journals those from now on for undo.
func (inv *Inventory) mark() {
	inv.undo()
	inv.marked = true
}

// undo undoes the changes since mark.
func (inv *Inventory) undo() {
	inv.marked = false
	for i := len(inv.journal) - 1; i >= 0; i-- {
		inv.change(inv.journal[i], -1)
	}
	inv.journal = inv.journal[:0]
}

// keep makes the changes since mark permanent.
func (inv *Inventory) keep() { inv.marked, inv.journal = false, inv.journal[:0] }

// differs returns an error for the first node or group that differs from o, an inventory
// of the same cluster, in free devices or in the index.
func (inv *Inventory) differs(o *Inventory) error {
	for node, free := range o.Free {
		g := inv.Group[node]
		if inv.Free[node] != free || inv.Next(g, free, node) != node {
			return fmt.Errorf("scheduler: node %d has %d devices free, the inventory says %d", node, free, inv.Free[node])
		}
		if o.host != nil && inv.host[node] != o.host[node] {
			return fmt.Errorf("scheduler: node %d has %v free, the inventory says %v", node, o.host[node], inv.host[node])
		}
	}
	for g := range o.groups {
		if inv.FreeIn(g) != o.FreeIn(g) {
			return fmt.Errorf("scheduler: group %d has %d devices free, the inventory says %d", g, o.FreeIn(g), inv.FreeIn(g))
		}
		for f := range o.Size(g) + 1 {
			if inv.With(g, f) != o.With(g, f) || inv.Least(g, f) != o.Least(g, f) {
				return fmt.Errorf("scheduler: group %d has %d nodes with %d devices free, the inventory says %d", g, o.With(g, f), f, inv.With(g, f))
			}
		}
	}
	return nil
}
