package scheduler

import "github.com/pacer-ml/pacer/perfmodel/spec"

// Inventory counts the free devices of every node.
type Inventory struct {
	Free  []int // by node
	Group []int // the cluster group each node belongs to
	total []int // free devices by group
}

// NewInventory returns the inventory of an idle cluster.
func NewInventory(c spec.Cluster) *Inventory {
	inv := &Inventory{total: make([]int, len(c.Groups))}
	for gi, g := range c.Groups {
		for range g.Count {
			inv.Free = append(inv.Free, g.Devices)
			inv.Group = append(inv.Group, gi)
		}
		inv.total[gi] = g.Count * g.Devices
	}
	return inv
}

// Clone returns an independent copy.
func (inv *Inventory) Clone() *Inventory {
	return &Inventory{
		Free:  append([]int(nil), inv.Free...),
		Group: inv.Group, // never changes
		total: append([]int(nil), inv.total...),
	}
}

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
