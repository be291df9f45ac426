package hostspeed

import (
	"cmp"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Table has the relative speeds of models on grids of CPUs and memory per device. It is a
// scheduler.HostSpeeds. Between the points of a grid it interpolates linearly, beyond them it
// is constant. A point is at least as fast as those with less of both. A number of devices
// that was not measured has the grid of the next smaller one, or else of the smallest.
type Table struct {
	models map[string][]grid // by devices
}

// grid is the speeds of a model on a number of devices.
type grid struct {
	devices int
	rows    []memoryRow // by memory
}

// memoryRow is the speeds with an amount of memory per device.
type memoryRow struct {
	bytes  float64
	points []point // by CPUs
}

// point is the relative speed with a number of CPUs per device.
type point struct{ cpus, speed float64 }

// add adds a speed. Of several at one point the first holds.
func (t *Table) add(model string, devices int, cpus, bytes, speed float64) {
	grids := t.models[model]
	k, ok := slices.BinarySearchFunc(grids, devices, func(g grid, n int) int { return g.devices - n })
	if !ok {
		grids = slices.Insert(grids, k, grid{devices: devices})
		t.models[model] = grids
	}
	g := &grids[k]
	r, ok := slices.BinarySearchFunc(g.rows, bytes, func(r memoryRow, b float64) int { return cmp.Compare(r.bytes, b) })
	if !ok {
		g.rows = slices.Insert(g.rows, r, memoryRow{bytes: bytes})
	}
	row := &g.rows[r]
	if p, ok := row.find(cpus); !ok {
		row.points = slices.Insert(row.points, p, point{cpus, speed})
	}
}

// find returns the index of the point with a number of CPUs, or where to insert it.
func (r *memoryRow) find(cpus float64) (int, bool) {
	return slices.BinarySearchFunc(r.points, cpus, func(p point, c float64) int { return cmp.Compare(p.cpus, c) })
}

// raise raises speeds that are below those with fewer CPUs or less memory, so that a speed does
// not fall with more of either.
func (g *grid) raise() {
	for i := range g.rows {
		r := &g.rows[i]
		if i > 0 {
			r.cover(&g.rows[i-1])
		}
		for k := 1; k < len(r.points); k++ {
			r.points[k].speed = max(r.points[k].speed, r.points[k-1].speed)
		}
	}
}

// cover raises the speeds of r to at least those of another row at all CPUs. r gets the points
// of that row, between which both are linear.
func (r *memoryRow) cover(other *memoryRow) {
	for _, p := range other.points {
		if k, ok := r.find(p.cpus); !ok {
			r.points = slices.Insert(r.points, k, point{p.cpus, r.at(p.cpus)})
		}
	}
	for k := range r.points {
		r.points[k].speed = max(r.points[k].speed, other.at(r.points[k].cpus))
	}
}

// Relative implements scheduler.HostSpeeds: the speed in terms of that with the share of the
// host that the file takes as 1.
func (t *Table) Relative(j *spec.Job, devices int, each spec.Host) (float64, bool) {
	grids := t.models[j.Model.Name]
	if len(grids) == 0 {
		return 0, false
	}
	k, ok := slices.BinarySearchFunc(grids, devices, func(g grid, n int) int { return g.devices - n })
	if !ok {
		k = max(k-1, 0)
	}
	rows, cpus, bytes := grids[k].rows, float64(each.MilliCPUs)/1000, float64(each.Bytes)
	i := 0
	for i+1 < len(rows) && rows[i+1].bytes <= bytes {
		i++
	}
	v := rows[i].at(cpus)
	if i+1 < len(rows) && bytes > rows[i].bytes {
		v += (rows[i+1].at(cpus) - v) * (bytes - rows[i].bytes) / (rows[i+1].bytes - rows[i].bytes)
	}
	return v, true
}

// at returns the speed with a number of CPUs.
func (r *memoryRow) at(cpus float64) float64 {
	p := r.points
	i := 0
	for i+1 < len(p) && p[i+1].cpus <= cpus {
		i++
	}
	if i+1 == len(p) || cpus <= p[i].cpus {
		return p[i].speed
	}
	return p[i].speed + (p[i+1].speed-p[i].speed)*(cpus-p[i].cpus)/(p[i+1].cpus-p[i].cpus)
}
