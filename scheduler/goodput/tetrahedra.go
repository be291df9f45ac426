package goodput

import "fmt"

// tetrahedra interpolates linearly within the tetrahedra of a triangulation of points
// by nodes, replicas and samples per device.
type tetrahedra struct {
	points []point
	cells  []cell
}

// cell is a tetrahedron. The barycentric coordinates of x are inverse * (x - corner 0)
// for corners 1 to 3; that of corner 0 is 1 less their sum.
type cell struct {
	corners [4]int
	inverse [3][3]float64

	least, most [2]float64 // bounds of the corners' nodes and replicas
}

// flat is six times the volume below which a tetrahedron is left out; its neighbours
// cover its points.
const flat = 1e-9

// newTetrahedra returns the interpolation within cells. Corners are indices of points:
// first the means of the rows of measured placements, then the other rows one by one.
// An index out of range is an error.
func newTetrahedra(placed, spread []measurement, cells [][4]int) (*tetrahedra, error) {
	t := &tetrahedra{points: means(placed)}
	for _, m := range spread {
		t.points = append(t.points, m.point)
	}
	for i, corners := range cells {
		for _, c := range corners {
			if c < 0 || c >= len(t.points) {
				return nil, fmt.Errorf("tetrahedron %d: corner %d is not in 0..%d", i+1, c, len(t.points)-1)
			}
		}
		if c, ok := t.cell(corners); ok {
			t.cells = append(t.cells, c)
		}
	}
	return t, nil
}

// edge is the vector from point a to point b.
func (t *tetrahedra) edge(a, b int) [3]float64 {
	p, q := &t.points[a], &t.points[b]
	return [3]float64{q.nodes - p.nodes, q.replicas - p.replicas, q.local - p.local}
}

// cell returns the tetrahedron with these corners, false if it is flat.
func (t *tetrahedra) cell(corners [4]int) (cell, bool) {
	o := &t.points[corners[0]]
	c := cell{corners: corners, least: [2]float64{o.nodes, o.replicas}, most: [2]float64{o.nodes, o.replicas}}
	for _, k := range corners[1:] {
		p := &t.points[k]
		c.least = [2]float64{min(c.least[0], p.nodes), min(c.least[1], p.replicas)}
		c.most = [2]float64{max(c.most[0], p.nodes), max(c.most[1], p.replicas)}
	}
	u, v, w := t.edge(corners[0], corners[1]), t.edge(corners[0], corners[2]), t.edge(corners[0], corners[3])
	vw, wu, uv := cross(v, w), cross(w, u), cross(u, v)
	det := dot(u, vw)
	if det < flat && det > -flat {
		return c, false
	}
	for i := range 3 {
		c.inverse[0][i], c.inverse[1][i], c.inverse[2][i] = vw[i]/det, wu[i]/det, uv[i]/det
	}
	return c, true
}

func cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// onFace is the rounding error by which a coordinate of an inner point may be below 0.
// Neighbours agree on their common face.
const onFace = 1e-9

func (t *tetrahedra) at(nodes, replicas, local float64) (timing, bool) {
	for i := range t.cells {
		c := &t.cells[i]
		if nodes < c.least[0] || nodes > c.most[0] || replicas < c.least[1] || replicas > c.most[1] {
			continue
		}
		o := &t.points[c.corners[0]]
		x := [3]float64{nodes - o.nodes, replicas - o.replicas, local - o.local}
		share := [4]float64{1, dot(c.inverse[0], x), dot(c.inverse[1], x), dot(c.inverse[2], x)}
		share[0] -= share[1] + share[2] + share[3]
		if min(share[0], share[1], share[2], share[3]) < -onFace {
			continue
		}
		var out timing
		for k, s := range share {
			p := &t.points[c.corners[k]]
			out.step += s * p.step
			out.sync += s * p.sync
		}
		return out, true
	}
	return timing{}, false
}
