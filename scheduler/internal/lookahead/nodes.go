package lookahead

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// nodes is the free resources of each node. Nodes of a group with the same number of
// free devices form a stack.
type nodes struct {
	all    []nodeState
	stacks [][]int32 // of all groups, each group's by free devices
	first  []int     // by group, the index of its first stack; then the number of stacks
	total  []int     // free devices by group

	host []spec.Host // free host resources by node; nil = unlimited

	from   []int32 // scratch of fit: previous index in its stack of each node it took from
	chosen []int32 // by node, the last call of fit that took from it
	fits   int32   // calls of fit
}

// nodeState is what every move of devices reads of a node, together in memory.
type nodeState struct {
	group, free int32
	stack, at   int32 // its stack, and its index there
}

var unlimited = spec.Host{MilliCPUs: spec.Unlimited, Bytes: spec.Unlimited}

// limited reports whether the host resources of n are limited.
func (n Node) limited() bool { return n.Host != spec.Host{} && n.Host != unlimited }

func newNodes(all []Node) *nodes {
	n := &nodes{all: make([]nodeState, len(all)), chosen: make([]int32, len(all))}
	var most []int // devices of a node, by group
	for i, node := range all {
		for len(most) <= node.Group {
			most, n.total = append(most, -1), append(n.total, 0)
		}
		most[node.Group] = max(most[node.Group], node.Devices)
		n.total[node.Group] += node.Devices
		n.all[i] = nodeState{group: int32(node.Group), free: int32(node.Devices)}
	}
	n.first = []int{0}
	for g, devices := range most {
		n.first = append(n.first, n.first[g]+devices+1)
	}
	n.stacks = make([][]int32, n.first[len(most)])
	if slices.ContainsFunc(all, Node.limited) {
		for _, node := range all {
			if !node.limited() {
				node.Host = unlimited
			}
			n.host = append(n.host, node.Host)
		}
	}
	for i := len(all) - 1; i >= 0; i-- { // the first node is on top
		n.push(i)
	}
	return n
}

// set makes n a copy of o. Both have the same nodes.
func (n *nodes) set(o *nodes) {
	copy(n.all, o.all)
	copy(n.total, o.total)
	copy(n.host, o.host)
	for i, s := range o.stacks {
		n.stacks[i] = append(n.stacks[i][:0], s...)
	}
}

// of returns the stacks of a group, by free devices.
func (n *nodes) of(group int) [][]int32 { return n.stacks[n.first[group]:n.first[group+1]] }

func (n *nodes) push(i int) {
	node := &n.all[i]
	node.stack = int32(n.first[node.group]) + node.free
	s := &n.stacks[node.stack]
	node.at = int32(len(*s))
	*s = append(*s, int32(i))
}

func (n *nodes) remove(i int) {
	node := &n.all[i]
	s := n.stacks[node.stack]
	last := len(s) - 1
	moved := s[last]
	s[node.at], n.all[moved].at = moved, node.at
	n.stacks[node.stack] = s[:last]
}

// add adds devices and host resources, which may be negative, to the free ones of a node.
func (n *nodes) add(i, devices int, host spec.Host) {
	n.remove(i)
	node := &n.all[i]
	node.free += int32(devices)
	n.total[node.group] += devices
	n.push(i)
	if n.host != nil {
		n.host[i] = n.host[i].Plus(host)
	}
}

// undo reverses an add of negative resources, which must be the last change of n. at is the index that the node had in
// its stack before.
func (n *nodes) undo(i, devices int, host spec.Host, at int32) {
	n.add(i, devices, host)
	node := &n.all[i]
	stack := n.stacks[node.stack]
	other := stack[at]
	stack[at], stack[node.at] = int32(i), other
	n.all[other].at, node.at = node.at, at
}

func (n *nodes) give(slots []Slot) {
	for _, s := range slots {
		n.add(s.Node, s.Devices, s.Host)
	}
}

func (n *nodes) take(slots []Slot) {
	for _, s := range slots {
		n.add(s.Node, -s.Devices, s.Host.Times(-1))
	}
}

// room reports whether enough nodes have enough free devices for p. Only fit checks host resources.
func (n *nodes) room(p *shape) bool {
	if n.total[p.group] < p.devices {
		return false
	}
	stacks := n.of(p.group)
	free, found := len(stacks)-1, 0
	for _, need := range p.needs {
		for ; free >= need.count; free-- {
			found += len(stacks[free])
		}
		if found < need.nodes {
			return false
		}
	}
	return true
}

// fit takes the counts of w from the fullest nodes with room, each from a different
// node, and appends these nodes to at. If there is no room, ok is false and n is
// unchanged. It finds room if there is any: counts descend, so a node with room for
// one has room for all later ones, in its host too.
func (n *nodes) fit(w *Candidate, at []int32) (_ []int32, ok bool) {
	if n.total[w.Group] < w.Devices {
		return at, false
	}
	stacks := n.of(w.Group)
	began := len(at)
	n.from = n.from[:0]
	n.fits++
	for _, count := range w.Counts {
		node, host := -1, w.Host.Times(count)
		for f := count; f < len(stacks) && node < 0; f++ {
			node = n.top(stacks[f], host)
		}
		if node < 0 {
			for i := len(at) - 1; i >= began; i-- {
				s := w.slot(i-began, at[i])
				n.undo(s.Node, s.Devices, s.Host, n.from[i-began])
			}
			return at[:began], false
		}
		n.from = append(n.from, n.all[node].at)
		n.chosen[node] = n.fits
		n.add(node, -count, host.Times(-1))
		at = append(at, int32(node))
	}
	return at, true
}

// slot returns what w holds on the node of its i-th count.
func (w *Candidate) slot(i int, node int32) Slot {
	return Slot{int(node), w.Counts[i], w.Host.Times(w.Counts[i])}
}

// giveBack frees what w holds on nodes that fit returned.
func (n *nodes) giveBack(w *Candidate, at []int32) {
	for i, node := range at {
		n.add(int(node), w.Counts[i], w.Host.Times(w.Counts[i]))
	}
}

// top returns the uppermost node of a stack from which this call of fit has not taken and with enough free host
// resources, -1 if there is none.
func (n *nodes) top(stack []int32, host spec.Host) int {
	for i := len(stack) - 1; i >= 0; i-- {
		node := stack[i]
		if n.chosen[node] != n.fits && (n.host == nil || n.host[node].Covers(host)) {
			return int(node)
		}
	}
	return -1
}
