package place

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
)

// Info describes a placer.
type Info struct {
	Name string
	Doc  string // one line
	// Picky placers may decline although enough devices are free, but never on
	// an idle cluster.
	Picky bool
	New   func() scheduler.Placer
}

var infos = func() *named.Set[Info] {
	s := named.NewSet[Info]("place", "placement")
	for _, i := range []Info{consolidatedInfo, emptiestInfo, packedInfo, scatteredInfo, sensitiveInfo, spreadInfo, topologyInfo} {
		s.Add(i.Name, i)
	}
	return s
}()

// All returns the registered placers by name.
func All() []Info { return infos.All() }

// Lookup returns the placer of a name; "" = packed.
func Lookup(name string) (scheduler.Placer, error) {
	i, err := infos.Get(cmp.Or(name, "packed"))
	if err != nil {
		return nil, err
	}
	return i.New(), nil
}

// choice is the rule for the best node among those with room.
type choice int

const (
	fullest  choice = iota // the fewest devices free
	emptiest               // the most
	lowest                 // the lowest number
)

// byNode places the counts of a shape, largest first, each on the best unused node with
// room; ties go to the lower node. A node with room for one count has room for every
// smaller one, so it finds a placement whenever one exists.
type byNode struct{ best choice }

func (p byNode) Place(free *scheduler.Inventory, group int, want spec.Shape) ([]scheduler.Slot, bool) {
	total, nodes, _, _ := want.Stats()
	if total == 0 || group < 0 || free.FreeIn(group) < total {
		return nil, false
	}
	first, end := free.Nodes(group)
	if nodes > 1 {
		return p.among(free, group, want.PerNode(), first, end)
	}
	node := p.node(free, group, total, first, end, nil)
	if node < 0 {
		return nil, false
	}
	return []scheduler.Slot{{Node: node, Devices: total}}, true
}

// among places counts, largest first, on the nodes of group in [first, end).
func (p byNode) among(free *scheduler.Inventory, group int, counts []int, first, end int) ([]scheduler.Slot, bool) {
	slots := make([]scheduler.Slot, 0, len(counts))
	unused := map[int]int{}
	for _, n := range counts {
		node := p.node(free, group, n, first, end, unused)
		if node < 0 {
			return nil, false
		}
		unused[free.Free[node]] = node + 1
		slots = append(slots, scheduler.Slot{Node: node, Devices: n})
	}
	slices.SortFunc(slots, func(a, b scheduler.Slot) int { return cmp.Compare(a.Node, b.Node) })
	return slots, true
}

// node returns the best node in [first, end) with n devices free, -1 if there is none.
// Among nodes with equally many free devices the lower ones are used first: unused is
// the first unused one, by that number.
func (p byNode) node(free *scheduler.Inventory, group, n, first, end int, unused map[int]int) int {
	best := -1
	for has := free.Least(group, n); has >= 0; has = free.Least(group, has+1) {
		node := free.Next(group, has, max(first, unused[has]))
		if node < 0 || node >= end {
			continue
		}
		switch p.best {
		case fullest:
			return node
		case emptiest:
			best = node
		case lowest:
			if best < 0 || node < best {
				best = node
			}
		}
	}
	return best
}

// lay distributes devices over the nodes of group in the order of their free devices. share
// returns the devices of the next node: nodes is the number of nodes not used yet, left the
// devices to distribute, has the node's free devices.
func lay(free *scheduler.Inventory, group, devices int, order choice, share func(nodes, left, has int) int) (spec.Shape, bool) {
	if devices < 1 || group < 0 || free.FreeIn(group) < devices {
		return spec.Shape{}, false
	}
	nodes := 0
	var kinds []int // the numbers of free devices that occur
	for has := free.Least(group, 1); has >= 0; has = free.Least(group, has+1) {
		kinds = append(kinds, has)
		nodes += free.With(group, has)
	}
	if order == emptiest {
		slices.Reverse(kinds)
	}
	var counts []int
	for _, has := range kinds {
		for range free.With(group, has) {
			if devices == 0 {
				return spec.NewShape(counts...), true
			}
			n := share(nodes, devices, has)
			counts = append(counts, n)
			devices, nodes = devices-n, nodes-1
		}
	}
	return spec.NewShape(counts...), true
}
