package sparse

import (
	"cmp"
	"math"
	"slices"
)

// Order returns the order in which to eliminate the rows of s so that its factors stay sparse: approximate minimum
// degree (Amestoy, Davis and Duff, An approximate minimum degree ordering algorithm, SIAM J. Matrix Anal. Appl. 17(4),
// 1996), with elements absorbed, rows of equal pattern merged, and rows that meet nearly all others put last.
func Order(s *Upper) []int {
	g := newGraph(s)
	for g.left > 0 {
		p := g.leastDegree()
		g.eliminate(p)
	}
	return append(g.order, g.dense...)
}

// graph is the quotient graph of an elimination. Variables are rows not yet eliminated. An element is the clique left
// by the elimination of a row, and has the index of that row.
type graph struct {
	near    [][]int // by variable, variables next to it that share no element with it
	in      [][]int // by variable, elements it is in
	members [][]int // by element, its variables; nil once absorbed
	weight  []int   // by variable, how many rows it stands for; 0 once eliminated or merged
	size    []int   // by element, the weight of its members
	merged  [][]int // by variable, the rows that were merged into it, itself first

	degree     []int // by variable, an upper bound on its neighbours
	heads      []int // by degree, the first variable of it, -1 if none
	next, prev []int // lists of variables of equal degree
	least      int   // no variable has a lower degree
	outside    []int // by element, the weight of members outside the newest element
	mark       []int // by variable or element, the stamp it was seen at
	stamp      int
	hash       []uint64

	left  int // weight of the variables not yet eliminated
	order []int
	dense []int
}

// newGraph returns the graph of s before any elimination.
func newGraph(s *Upper) *graph {
	n := s.N
	count := make([]int, n)
	for j := range n {
		for k := s.Ptr[j]; k < s.Ptr[j+1]; k++ {
			if i := s.Idx[k]; i != j {
				count[i]++
				count[j]++
			}
		}
	}
	g := &graph{
		near: make([][]int, n), in: make([][]int, n), members: make([][]int, n), merged: make([][]int, n),
		weight: make([]int, n), size: make([]int, n), degree: make([]int, n), outside: make([]int, n),
		mark: make([]int, n), hash: make([]uint64, n),
		heads: make([]int, n+1), next: make([]int, n), prev: make([]int, n),
	}
	limit := max(16, int(10*math.Sqrt(float64(n))))
	isDense := make([]bool, n)
	total := 0
	for i, c := range count {
		total += c
		if c > limit {
			isDense[i] = true
			g.dense = append(g.dense, i)
		}
	}
	slices.SortStableFunc(g.dense, func(a, b int) int { return cmp.Compare(count[a], count[b]) })
	g.connect(s, count, isDense, total)
	for i := range g.heads {
		g.heads[i] = -1
	}
	for i := n - 1; i >= 0; i-- {
		if !isDense[i] {
			g.weight[i] = 1
			g.merged[i] = []int{i}
			g.degree[i] = len(g.near[i])
			g.left++
			g.enlist(i)
		}
	}
	return g
}

// connect fills near with the entries of s between rows that are not dense.
func (g *graph) connect(s *Upper, count []int, isDense []bool, total int) {
	room := make([]int, total)
	for i, c := range count {
		g.near[i], room = room[:0:c], room[c:]
	}
	for j := range s.N {
		for k := s.Ptr[j]; k < s.Ptr[j+1]; k++ {
			if i := s.Idx[k]; i != j && !isDense[i] && !isDense[j] {
				g.near[i] = append(g.near[i], j)
				g.near[j] = append(g.near[j], i)
			}
		}
	}
}

// enlist adds variable i to the list of its degree.
func (g *graph) enlist(i int) {
	d := g.degree[i]
	h := g.heads[d]
	g.next[i], g.prev[i] = h, -1
	if h >= 0 {
		g.prev[h] = i
	}
	g.heads[d] = i
	g.least = min(g.least, d)
}

// delist removes variable i from the list of its degree.
func (g *graph) delist(i int) {
	if g.prev[i] >= 0 {
		g.next[g.prev[i]] = g.next[i]
	} else {
		g.heads[g.degree[i]] = g.next[i]
	}
	if g.next[i] >= 0 {
		g.prev[g.next[i]] = g.prev[i]
	}
}

// leastDegree removes a variable of least degree from its list and returns it.
func (g *graph) leastDegree() int {
	for g.heads[g.least] < 0 {
		g.least++
	}
	p := g.heads[g.least]
	g.delist(p)
	return p
}

// eliminate orders p and makes it an element.
func (g *graph) eliminate(p int) {
	members := g.clique(p)
	g.place(p)
	g.measure(members)
	for _, i := range members {
		g.prune(i, p)
	}
	g.merge(members)
	alive := members[:0]
	for _, i := range members {
		switch {
		case g.weight[i] == 0:
		case len(g.near[i]) == 0 && len(g.in[i]) == 1: // nothing but p next to it
			g.size[p] -= g.weight[i]
			g.place(i)
		default:
			alive = append(alive, i)
		}
	}
	g.members[p] = alive
	for _, i := range alive {
		g.degree[i] = max(0, min(g.left-g.weight[i], g.degree[i]+g.size[p]-g.weight[i]))
		g.enlist(i)
	}
}

// place appends the rows merged into p to the order.
func (g *graph) place(p int) {
	g.order = append(g.order, g.merged[p]...)
	g.left -= g.weight[p]
	g.weight[p] = 0
	g.near[p], g.in[p], g.merged[p] = nil, nil, nil
}

// clique returns the neighbours of p, which become an element, and absorbs the elements of p. It removes the
// neighbours from their degree lists.
func (g *graph) clique(p int) []int {
	g.stamp++
	g.mark[p] = g.stamp
	var members []int
	g.size[p] = 0
	take := func(vars []int) {
		for _, i := range vars {
			if g.weight[i] > 0 && g.mark[i] != g.stamp {
				g.mark[i] = g.stamp
				members = append(members, i)
				g.size[p] += g.weight[i]
				g.delist(i)
			}
		}
	}
	take(g.near[p])
	for _, e := range g.in[p] {
		take(g.members[e])
		g.members[e] = nil
	}
	return members
}

// measure sets, for each element that shares a member with the newest one, the weight of its other members.
func (g *graph) measure(members []int) {
	for _, i := range members {
		for _, e := range g.in[i] {
			g.outside[e] = g.size[e]
		}
	}
	for _, i := range members {
		for _, e := range g.in[i] {
			g.outside[e] -= g.weight[i]
		}
	}
}

// prune removes from variable i what the new element p covers, and computes its degree without p, and its hash.
func (g *graph) prune(i, p int) {
	degree, hash := 0, uint64(p)
	in := g.in[i][:0]
	for _, e := range g.in[i] {
		if g.members[e] == nil {
			continue
		}
		if g.outside[e] == 0 { // its members are all in p
			g.members[e] = nil
			continue
		}
		in = append(in, e)
		degree += g.outside[e]
		hash += uint64(e)
	}
	g.in[i] = append(in, p)
	near := g.near[i][:0]
	for _, j := range g.near[i] {
		if g.weight[j] > 0 && g.mark[j] != g.stamp {
			near = append(near, j)
			degree += g.weight[j]
			hash += uint64(j)
		}
	}
	g.near[i] = near
	g.degree[i] = min(degree, g.degree[i])
	g.hash[i] = hash
}

// merge joins members with equal neighbours.
func (g *graph) merge(members []int) {
	byHash := slices.Clone(members)
	slices.SortFunc(byHash, func(a, b int) int { return cmp.Or(cmp.Compare(g.hash[a], g.hash[b]), cmp.Compare(a, b)) })
	for k, i := range byHash {
		if g.weight[i] == 0 {
			continue
		}
		marked := false
		for _, j := range byHash[k+1:] {
			if g.hash[j] != g.hash[i] {
				break
			}
			if g.weight[j] == 0 || len(g.near[j]) != len(g.near[i]) || len(g.in[j]) != len(g.in[i]) {
				continue
			}
			if !marked {
				marked = true
				g.markAround(i)
			}
			if g.allMarked(j) {
				g.weight[i] += g.weight[j]
				g.weight[j] = 0
				g.merged[i] = append(g.merged[i], g.merged[j]...)
				g.near[j], g.in[j], g.merged[j] = nil, nil, nil
			}
		}
	}
}

func (g *graph) markAround(i int) {
	g.stamp++
	for _, j := range g.near[i] {
		g.mark[j] = g.stamp
	}
	for _, e := range g.in[i] {
		g.mark[e] = g.stamp
	}
}

func (g *graph) allMarked(i int) bool {
	for _, j := range g.near[i] {
		if g.mark[j] != g.stamp {
			return false
		}
	}
	for _, e := range g.in[i] {
		if g.mark[e] != g.stamp {
			return false
		}
	}
	return true
}
