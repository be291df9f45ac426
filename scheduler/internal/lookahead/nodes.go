package lookahead

import (
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// nodes is the free resources of each node. Nodes of a group with the same number of
// free devices form a stack.
type nodes struct {
	free   []int
	group  []int
	at     []int     // index of each node in its stack
	stacks [][][]int // by group, then by free devices
	total  []int     // free devices by group

	host []spec.Host // free host resources by node; nil = unlimited

	from   []int   // scratch of fit: previous index in its stack of each node it took from
	chosen []int32 // by node, the last call of fit that took from it
	fits   int32   // calls of fit
}

var unlimited = spec.Host{MilliCPUs: spec.Unlimited, Bytes: spec.Unlimited}

// limited reports whether the host resources of n are limited.
func (n Node) limited() bool { return n.Host != spec.Host{} && n.Host != unlimited }

func newNodes(all []Node) *nodes {
	n := &nodes{free: make([]int, len(all)), group: make([]int, len(all)), at: make([]int, len(all)), chosen: make([]int32, len(all))}
	for i, node := range all {
		for len(n.stacks) <= node.Group {
			n.stacks, n.total = append(n.stacks, nil), append(n.total, 0)
		}
		for len(n.stacks[node.Group]) <= node.Devices {
			n.stacks[node.Group] = append(n.stacks[node.Group], nil)
		}
		n.free[i], n.group[i] = node.Devices, node.Group
		n.total[node.Group] += node.Devices
	}
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
	copy(n.free, o.free)
	copy(n.at, o.at)
	copy(n.total, o.total)
	copy(n.host, o.host)
	for g := range o.stacks {
		for f := range o.stacks[g] {
			n.stacks[g][f] = append(n.stacks[g][f][:0], o.stacks[g][f]...)
		}
	}
}

func (n *nodes) push(i int) {
	s := &n.stacks[n.group[i]][n.free[i]]
	n.at[i] = len(*s)
	*s = append(*s, i)
}

func (n *nodes) remove(i int) {
	s := &n.stacks[n.group[i]][n.free[i]]
	last := len(*s) - 1
	moved := (*s)[last]
	(*s)[n.at[i]], n.at[moved] = moved, n.at[i]
	*s = (*s)[:last]
}

// add adds times the resources of s to the free ones of its node.
func (n *nodes) add(s Slot, times int) {
	i := s.Node
	n.remove(i)
	n.free[i] += times * s.Devices
	n.total[n.group[i]] += times * s.Devices
	n.push(i)
	if n.host != nil {
		n.host[i] = n.host[i].Plus(s.Host.Times(times))
	}
}

// undo reverses add(s, -1), which must be the last change of n. at is the index that the node had in its stack before.
func (n *nodes) undo(s Slot, at int) {
	i := s.Node
	n.remove(i)
	n.free[i] += s.Devices
	n.total[n.group[i]] += s.Devices
	n.push(i)
	stack := n.stacks[n.group[i]][n.free[i]]
	last := len(stack) - 1
	stack[at], stack[last] = i, stack[at]
	n.at[stack[last]], n.at[i] = last, at
	if n.host != nil {
		n.host[i] = n.host[i].Plus(s.Host)
	}
}

func (n *nodes) give(slots []Slot) {
	for _, s := range slots {
		n.add(s, 1)
	}
}

func (n *nodes) take(slots []Slot) {
	for _, s := range slots {
		n.add(s, -1)
	}
}

// room reports whether enough nodes have enough free devices for p. Only fit checks host resources.
func (n *nodes) room(p *shape) bool {
	if n.total[p.group] < p.devices {
		return false
	}
	stacks := n.stacks[p.group]
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
	stacks := n.stacks[w.Group]
	began := len(at)
	n.from = n.from[:0]
	n.fits++
	for _, count := range w.Counts {
		s := Slot{-1, count, w.Host.Times(count)}
		for f := count; f < len(stacks) && s.Node < 0; f++ {
			s.Node = n.top(stacks[f], s.Host)
		}
		if s.Node < 0 {
			for i := len(at) - 1; i >= began; i-- {
				n.undo(w.slot(i-began, at[i]), n.from[i-began])
			}
			return at[:began], false
		}
		n.from = append(n.from, n.at[s.Node])
		n.chosen[s.Node] = n.fits
		n.add(s, -1)
		at = append(at, int32(s.Node))
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
		n.add(w.slot(i, node), 1)
	}
}

// top returns the uppermost node of a stack from which this call of fit has not taken and with enough free host
// resources, -1 if there is none.
func (n *nodes) top(stack []int, host spec.Host) int {
	for i := len(stack) - 1; i >= 0; i-- {
		node := stack[i]
		if n.chosen[node] != n.fits && (n.host == nil || n.host[node].Covers(host)) {
			return node
		}
	}
	return -1
}
