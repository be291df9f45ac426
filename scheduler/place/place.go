package place

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

// Info describes a placer.
type Info struct {
	Name string
	Doc  string // one line
	// Picky placers may decline although enough devices are free, but never on
	// an idle cluster.
	Picky bool
	New   func(compat.Quirks) scheduler.Placer
}

var infos = named.NewSet[Info]("place", "placement")

func register(i Info) { infos.Add(i.Name, i) }

// All returns the registered placers by name.
func All() []Info { return infos.All() }

// Lookup returns the placer of that name, "" meaning packed.
func Lookup(name string) (scheduler.Placer, error) { return New(name, compat.Quirks{}) }

// New is Lookup for a placer that has the quirks of another simulator.
func New(name string, q compat.Quirks) (scheduler.Placer, error) {
	i, err := infos.Get(cmp.Or(name, "packed"))
	if err != nil {
		return nil, err
	}
	return i.New(q), nil
}

// prefer orders the nodes that could take a share of a job: negative when a
// node with a free devices is better than one with b.
type prefer func(a, b int) int

// byNode places the counts of a shape, most first, each on the best node by
// better that has room and is not used yet; ties go to the lower node. A node
// with room for one count has room for every smaller one, so this finds a
// placement whenever there is one.
type byNode struct{ better prefer }

func (p byNode) Place(free *scheduler.Inventory, group int, want spec.Shape) ([]scheduler.Slot, bool) {
	total := want.Total()
	if total == 0 || group < 0 || free.FreeIn(group) < total {
		return nil, false
	}
	first, end := free.Nodes(group)
	return p.among(free, want.PerNode(), first, end)
}

// among places counts, most first, on the nodes from first up to but without
// end.
func (p byNode) among(free *scheduler.Inventory, counts []int, first, end int) ([]scheduler.Slot, bool) {
	slots := make([]scheduler.Slot, 0, len(counts))
	for _, n := range counts {
		best := -1
		for node := first; node < end; node++ {
			has := free.Free[node]
			if has < n || taken(slots, node) {
				continue
			}
			if best < 0 || p.better(has, free.Free[best]) < 0 {
				best = node
			}
		}
		if best < 0 {
			return nil, false
		}
		slots = append(slots, scheduler.Slot{Node: best, Devices: n})
	}
	slices.SortFunc(slots, func(a, b scheduler.Slot) int { return cmp.Compare(a.Node, b.Node) })
	return slots, true
}

func taken(slots []scheduler.Slot, node int) bool {
	return slices.ContainsFunc(slots, func(s scheduler.Slot) bool { return s.Node == node })
}

// lay takes devices from the nodes of group that have any free, in the order of
// their free counts; share tells how many of the left ones the first of nodes
// takes.
func lay(free *scheduler.Inventory, group, devices int, order prefer, share func(nodes, left, has int) int) (spec.Shape, bool) {
	if devices < 1 || group < 0 || free.FreeIn(group) < devices {
		return spec.Shape{}, false
	}
	first, end := free.Nodes(group)
	var has []int
	for node := first; node < end; node++ {
		if free.Free[node] > 0 {
			has = append(has, free.Free[node])
		}
	}
	slices.SortFunc(has, order)
	counts := make([]int, 0, len(has))
	for i := 0; devices > 0; i++ {
		n := share(len(has)-i, devices, has[i])
		counts = append(counts, n)
		devices -= n
	}
	return spec.NewShape(counts...), true
}

// emptiest and fullest order nodes by their free devices.
func emptiest(a, b int) int { return cmp.Compare(b, a) }
func fullest(a, b int) int  { return cmp.Compare(a, b) }
