package pollux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// cell is the devices of a job on a node.
type cell struct{ node, devices int }

// row is the devices of a job, by node, ascending. Equal rows of a job are one row, so
// that each is evaluated once.
type row struct {
	cells   []cell
	devices int
	speedup float64 // over the fair share
	term    float64 // its addend of the fitness
	hash    uint64
	value   *value // nil without devices
}

// raw returns a row of j that is to be repaired: its cells may be more than j may have.
func (pr *problem) raw(j *job, cells []cell) *row {
	if len(cells) == 0 {
		return j.none
	}
	pr.rawRows = append(pr.rawRows, row{cells: cells, devices: devicesOf(cells)})
	return &pr.rawRows[len(pr.rawRows)-1]
}

// rawCells returns a copy of the cells of a row for raw, with room for some more.
func (pr *problem) rawCells(cells []cell, more int) []cell {
	at, end := len(pr.rawRoom), len(pr.rawRoom)+len(cells)
	pr.rawRoom = slices.Grow(append(pr.rawRoom, cells...), more)[:end+more]
	return pr.rawRoom[at : end : end+more]
}

// forgetRaw reuses the memory of the raw rows, which no schedule has after its repair.
func (pr *problem) forgetRaw() { pr.rawRows, pr.rawRoom = pr.rawRows[:0], pr.rawRoom[:0] }

// isRaw reports whether r is to be repaired.
func (r *row) isRaw() bool { return r.value == nil && r.devices > 0 }

// value is the speed of a job on devices of a group.
type value struct {
	devices int
	goodput float64           // steps/s at the job's own batch, 0 = unknown
	plan    spec.Plan         // of an elastic job
	config  *candidate.Config // of others
	counts  []int             // devices of each node that are used, most first
}

// rowOf returns the row of j with the given cells, cut to what j can use: one group, and
// there the devices of the fastest configuration that they cover.
func (pr *problem) rowOf(j *job, cells []cell) *row {
	if len(cells) == 0 {
		return j.none
	}
	var buf [128]byte
	key := appendCells(buf[:0], cells)
	if r := j.rows[string(key)]; r != nil {
		return r
	}
	r := pr.cut(j, slices.Clone(cells))
	j.rows[string(key)] = r
	return r
}

// cut returns the row of cells as far as j can use them.
func (pr *problem) cut(j *job, cells []cell) *row {
	cells = pr.oneGroup(j, cells)
	if len(cells) == 0 {
		return j.none
	}
	byCount := slices.Clone(cells)
	slices.SortStableFunc(byCount, func(a, b cell) int { return b.devices - a.devices })
	counts := make([]int, len(byCount))
	for i, c := range byCount {
		counts[i] = c.devices
	}
	v := pr.valueOf(j, pr.group[cells[0].node], counts)
	if v == nil {
		return j.none
	}
	if v.devices == devicesOf(cells) {
		return pr.newRow(j, cells, v)
	}
	used := byCount[:0]
	for i, n := range v.counts {
		used = append(used, cell{byCount[i].node, n})
	}
	slices.SortFunc(used, func(a, b cell) int { return a.node - b.node })
	var buf [128]byte
	key := string(appendCells(buf[:0], used))
	r := j.rows[key]
	if r == nil {
		r = pr.newRow(j, used, v)
		j.rows[key] = r
	}
	return r
}

func devicesOf(cells []cell) (n int) {
	for _, c := range cells {
		n += c.devices
	}
	return n
}

// oneGroup returns the cells in the group that j accepts with most devices.
func (pr *problem) oneGroup(j *job, cells []cell) []cell {
	groups := pr.s.Cluster.Groups
	if len(groups) == 1 && j.Job.Accepts(&groups[0]) {
		return cells
	}
	most, best := 0, -1
	for gi := range groups {
		if !j.Job.Accepts(&groups[gi]) {
			continue
		}
		n := 0
		for _, c := range cells {
			if pr.group[c.node] == gi {
				n += c.devices
			}
		}
		if n > most {
			most, best = n, gi
		}
	}
	return slices.DeleteFunc(cells, func(c cell) bool { return pr.group[c.node] != best })
}

// newRow returns a row and evaluates it.
func (pr *problem) newRow(j *job, cells []cell, v *value) *row {
	r := &row{cells: cells, devices: devicesOf(cells), value: v}
	r.speedup = float64(r.devices) / j.fair
	if j.unit > 0 && v.goodput > 0 {
		r.speedup = v.goodput / j.unit
	}
	scaled := r.speedup * j.scale
	if !pr.isBase(j, r) {
		scaled *= j.factor
	}
	r.term = pr.term(scaled)
	h := fnv.New64a()
	var buf [128]byte
	h.Write(binary.AppendUvarint(appendCells(buf[:0], cells), uint64(j.index))) // never fails
	r.hash = h.Sum64()
	return r
}

// isBase reports whether j holds the devices of r.
func (pr *problem) isBase(j *job, r *row) bool {
	return j.Grant != nil && slices.EqualFunc(j.Grant.Slots, r.cells, func(s scheduler.Slot, c cell) bool { return s.Node == c.node && s.Devices == c.devices })
}

// term returns the addend of the fitness of a scaled speedup.
func (pr *problem) term(scaled float64) float64 {
	const floor = 1e-3
	switch pr.power {
	case 0:
		return math.Log(max(scaled, floor))
	case -1:
		return 1 / (scaled + floor)
	}
	return math.Pow(scaled+floor, pr.power)
}

// mean returns the power mean of n addends with a sum.
func (pr *problem) mean(sum float64, n int) float64 {
	if pr.power == 0 {
		return math.Exp(sum / float64(n))
	}
	return math.Pow(sum/float64(n), 1/pr.power)
}

// appendCells writes cells as a key.
func appendCells(b []byte, cells []cell) []byte {
	for _, c := range cells {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(c.node)), uint64(c.devices))
	}
	return b
}

// valueOf returns the fastest use of devices of a group, counts per node, most first; nil if
// j cannot run on them.
func (pr *problem) valueOf(j *job, group int, counts []int) *value {
	var buf [64]byte
	key := binary.AppendUvarint(buf[:0], uint64(group))
	for _, n := range counts {
		key = binary.AppendUvarint(key, uint64(n))
	}
	v, ok := j.values[string(key)]
	if !ok {
		if j.elastic {
			v = pr.elasticValue(j, group, counts)
		} else {
			v = j.fastest(group, counts)
		}
		j.values[string(key)] = v
	}
	return v
}

// elasticValue is valueOf for a job that chooses its batch.
func (pr *problem) elasticValue(j *job, group int, counts []int) *value {
	shape := spec.NewShape(counts...)
	plan, rate, err := pr.elastic.Goodput(pr.ctx, j.JobState, &pr.s.Cluster.Groups[group], shape)
	switch {
	case errors.Is(err, perfmodel.ErrNotCovered):
		return nil
	case err != nil:
		if pr.err == nil {
			pr.err = fmt.Errorf("policy: pollux: %w", err)
		}
		return nil
	}
	return &value{devices: shape.Total(), goodput: rate, plan: plan, counts: slices.Clone(counts)}
}

// fastest is valueOf for a job that trains its own batch.
func (j *job) fastest(group int, counts []int) *value {
	var best *layout
	for i := range j.layouts {
		l := &j.layouts[i]
		if l.config.Group != group || !l.within(counts) {
			continue
		}
		if best == nil || l.config.Rate > best.config.Rate || l.config.Rate == best.config.Rate && l.config.Devices < best.config.Devices {
			best = l
		}
	}
	if best == nil {
		return nil
	}
	v := &value{devices: best.config.Devices, config: best.config, counts: best.counts}
	if !j.blind {
		v.goodput = best.config.Rate
	}
	return v
}

// within reports whether l fits on nodes with the given devices, most first.
func (l *layout) within(counts []int) bool {
	if len(l.counts) > len(counts) {
		return false
	}
	for i, n := range l.counts {
		if n > counts[i] {
			return false
		}
	}
	return true
}
