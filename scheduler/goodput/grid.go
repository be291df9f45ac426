package goodput

import (
	"cmp"
	"slices"
)

// point is a step time on a number of nodes and replicas, with samples per device.
type point struct {
	nodes, replicas, local float64
	timing
}

func (p point) compare(q point) int {
	return cmp.Or(cmp.Compare(p.nodes, q.nodes), cmp.Compare(p.replicas, q.replicas), cmp.Compare(p.local, q.local))
}

// means returns one point for all rows with the same coordinates, with the mean of
// their times, sorted.
func means(rows []measurement) []point {
	sorted := make([]point, len(rows))
	for i, m := range rows {
		sorted[i] = m.point
	}
	slices.SortStableFunc(sorted, point.compare)
	var out []point
	for i := 0; i < len(sorted); {
		k, sum := i, timing{}
		for ; k < len(sorted) && sorted[k].compare(sorted[i]) == 0; k++ {
			sum.step += sorted[k].step
			sum.sync += sorted[k].sync
		}
		mean, n := sorted[i], float64(k-i)
		mean.timing = timing{sum.step / n, sum.sync / n}
		out = append(out, mean)
		i = k
	}
	return out
}

// grid interpolates linearly in samples per device, then replicas, then nodes. Between
// numbers of nodes it keeps the replicas per node constant, not their total, because
// step times of equally full nodes are more alike.
type grid struct{ nodes []layer } // ascending

// layer is the step times measured on one number of nodes.
type layer struct {
	nodes    float64
	replicas []float64 // ascending
	profiles []*profile
}

func newGrid(rows []measurement) *grid {
	g := &grid{}
	for _, p := range means(rows) {
		if n := len(g.nodes); n == 0 || g.nodes[n-1].nodes != p.nodes {
			g.nodes = append(g.nodes, layer{nodes: p.nodes})
		}
		l := &g.nodes[len(g.nodes)-1]
		if n := len(l.replicas); n == 0 || l.replicas[n-1] != p.replicas {
			l.replicas, l.profiles = append(l.replicas, p.replicas), append(l.profiles, &profile{})
		}
		f := l.profiles[len(l.profiles)-1]
		f.local, f.times = append(f.local, p.local), append(f.times, p.timing)
	}
	return g
}

func (g *grid) at(nodes, replicas, local float64) (timing, bool) {
	i, exact := slices.BinarySearchFunc(g.nodes, nodes, func(l layer, n float64) int { return cmp.Compare(l.nodes, n) })
	switch {
	case exact:
		return g.nodes[i].at(replicas, local)
	case i == 0 || i == len(g.nodes):
		return timing{}, false
	}
	lo, hi := &g.nodes[i-1], &g.nodes[i]
	a, okA := lo.at(replicas*lo.nodes/nodes, local)
	b, okB := hi.at(replicas*hi.nodes/nodes, local)
	return a.blend(b, (nodes-lo.nodes)/(hi.nodes-lo.nodes)), okA && okB
}

func (l *layer) at(replicas, local float64) (timing, bool) {
	i, exact := slices.BinarySearch(l.replicas, replicas)
	switch {
	case exact:
		return l.profiles[i].at(local)
	case i == 0 || i == len(l.replicas):
		return timing{}, false
	}
	a, okA := l.profiles[i-1].at(local)
	b, okB := l.profiles[i].at(local)
	return a.blend(b, (replicas-l.replicas[i-1])/(l.replicas[i]-l.replicas[i-1])), okA && okB
}
