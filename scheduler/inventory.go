package scheduler

import "github.com/pacer-ml/pacer/perfmodel/spec"

// Inventory counts the free devices of every node.
type Inventory struct {
	Free  []int // by node
	Group []int // the cluster group each node belongs to
	total []int // free devices by group
	size  []int // devices per node by group
	first []int // first node of each group, and one past the last node
}

// NewInventory returns the inventory of an idle cluster.
func NewInventory(c spec.Cluster) *Inventory {
	inv := &Inventory{total: make([]int, len(c.Groups)), size: make([]int, 0, len(c.Groups)), first: make([]int, 0, len(c.Groups)+1),
		Free: make([]int, 0, c.Nodes()), Group: make([]int, 0, c.Nodes())}
	for gi, g := range c.Groups {
		inv.first = append(inv.first, len(inv.Free))
		for range g.Count {
			inv.Free = append(inv.Free, g.Devices)
			inv.Group = append(inv.Group, gi)
		}
		inv.total[gi] = g.Count * g.Devices
		inv.size = append(inv.size, g.Devices)
	}
	inv.first = append(inv.first, len(inv.Free))
	return inv
}

// Clone returns an independent copy.
func (inv *Inventory) Clone() *Inventory {
	return &Inventory{
		Free:  append([]int(nil), inv.Free...),
		Group: inv.Group, // never changes, nor do first and size
		first: inv.first,
		size:  inv.size,
		total: append([]int(nil), inv.total...),
	}
}

// Nodes returns the nodes of a cluster group: from first up to but without end.
func (inv *Inventory) Nodes(group int) (first, end int) {
	return inv.first[group], inv.first[group+1]
}

// Size returns the devices each node of a cluster group has, free or not.
func (inv *Inventory) Size(group int) int { return inv.size[group] }

// FreeIn returns the free devices of a cluster group.
func (inv *Inventory) FreeIn(group int) int { return inv.total[group] }

// Take removes slots and reports whether all were free; if not, nothing is
// taken.
func (inv *Inventory) Take(slots []Slot) bool {
	for i, s := range slots {
		if s.Node < 0 || s.Node >= len(inv.Free) || s.Devices < 1 || inv.Free[s.Node] < s.Devices {
			inv.Give(slots[:i])
			return false
		}
		inv.Free[s.Node] -= s.Devices
		inv.total[inv.Group[s.Node]] -= s.Devices
	}
	return true
}

// Give returns slots taken before.
func (inv *Inventory) Give(slots []Slot) {
	for _, s := range slots {
		inv.Free[s.Node] += s.Devices
		inv.total[inv.Group[s.Node]] += s.Devices
	}
}
