package scheduler

import (
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Inventory counts the free devices of every node, and finds nodes by how many
// they have free without looking through the cluster.
type Inventory struct {
	Free  []int // by node; Take and Give alone change it
	Group []int // the cluster group each node belongs to; not to be modified

	groups []groupIndex
	// journal is what was done since mark, in order, if it is kept: slots given
	// have positive devices, slots taken negative ones.
	journal []Slot
	marked  bool
}

// groupIndex is the nodes of one cluster group by their free devices.
type groupIndex struct {
	total      int        // free devices
	size       int        // devices per node
	first, end int        // its nodes
	racks      spec.Racks // how they are cabled
	with       []*nodeSet // nodes, counted from first, by free devices; nil = none so far
	some       *nodeSet   // numbers of free devices that some node has
}

// NewInventory returns the inventory of an idle cluster.
func NewInventory(c spec.Cluster) *Inventory {
	inv := &Inventory{groups: make([]groupIndex, len(c.Groups)), Free: make([]int, 0, c.Nodes()), Group: make([]int, 0, c.Nodes())}
	for gi, g := range c.Groups {
		x := groupIndex{total: g.Count * g.Devices, size: g.Devices, first: len(inv.Free), end: len(inv.Free) + g.Count, racks: g.Racks,
			with: make([]*nodeSet, g.Devices+1), some: newNodeSet(g.Devices + 1)}
		for i := range g.Count {
			inv.Free = append(inv.Free, g.Devices)
			inv.Group = append(inv.Group, gi)
			x.add(i, g.Devices)
		}
		inv.groups[gi] = x
	}
	return inv
}

// add puts a node, counted from first, among those with so many free devices.
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
}

func (x *groupIndex) remove(node, free int) {
	s := x.with[free]
	s.remove(node)
	if s.count == 0 {
		x.some.remove(free)
	}
}

// Clone returns an independent copy. It costs as much as the cluster is large:
// where what is tried is undone at once, Take and Give are cheaper.
func (inv *Inventory) Clone() *Inventory {
	c := &Inventory{Free: slices.Clone(inv.Free), Group: inv.Group, groups: slices.Clone(inv.groups)}
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

// whole returns all devices of a node, free or not.
func (inv *Inventory) whole(node int) []Slot {
	return []Slot{{Node: node, Devices: inv.Size(inv.Group[node])}}
}

// FreeIn returns the free devices of a cluster group.
func (inv *Inventory) FreeIn(group int) int { return inv.groups[group].total }

// With returns how many nodes of a group have exactly so many devices free.
func (inv *Inventory) With(group, free int) int {
	if s := inv.groups[group].with[free]; s != nil {
		return s.count
	}
	return 0
}

// Least returns the least number of free devices, at or above free, that some
// node of a group has; -1 if none has.
func (inv *Inventory) Least(group, free int) int { return inv.groups[group].some.next(free) }

// Next returns the first node of a group from node on with exactly so many
// devices free, -1 if there is none.
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
// taken.
func (inv *Inventory) Take(slots []Slot) bool {
	for i, s := range slots {
		if s.Node < 0 || s.Node >= len(inv.Free) || s.Devices < 1 || inv.Free[s.Node] < s.Devices {
			for _, t := range slots[:i] {
				inv.change(t.Node, t.Devices)
			}
			return false
		}
		inv.change(s.Node, -s.Devices)
	}
	return true
}

// Give returns slots taken before.
func (inv *Inventory) Give(slots []Slot) {
	for _, s := range slots {
		inv.change(s.Node, s.Devices)
	}
}

// change adds to the free devices of a node.
func (inv *Inventory) change(node, by int) {
	if inv.marked {
		inv.journal = append(inv.journal, Slot{node, by})
	}
	x := &inv.groups[inv.Group[node]]
	was := inv.Free[node]
	x.remove(node-x.first, was)
	x.add(node-x.first, was+by)
	x.total += by
	inv.Free[node] = was + by
}

// mark undoes what was done since the last mark, and keeps what is done from now
// on for undo.
func (inv *Inventory) mark() {
	inv.undo()
	inv.marked = true
}

// undo undoes what was done since mark.
func (inv *Inventory) undo() {
	inv.marked = false
	for i := len(inv.journal) - 1; i >= 0; i-- {
		inv.change(inv.journal[i].Node, -inv.journal[i].Devices)
	}
	inv.journal = inv.journal[:0]
}

// keep lets what was done since mark be as it is.
func (inv *Inventory) keep() { inv.marked, inv.journal = false, inv.journal[:0] }

// differs reports the first node or group whose free devices, or whose place in
// the index, are not those of o, an inventory of the same cluster.
func (inv *Inventory) differs(o *Inventory) error {
	for node, free := range o.Free {
		g := inv.Group[node]
		if inv.Free[node] != free || inv.Next(g, free, node) != node {
			return fmt.Errorf("scheduler: node %d has %d devices free, the inventory says %d", node, free, inv.Free[node])
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
