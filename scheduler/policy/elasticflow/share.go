package elasticflow

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/scheduler/policy/sia"
)

// demand is a job with its levels.
type demand struct {
	*sia.Row
	levels   [][]int // by group, indices of Cells, ascending in devices and speed
	held     int     // index of the present cell, -1 = none
	left     float64 // steps to go
	start    float64 // seconds without progress after a change of level
	ready    float64 // those left of the present start
	deadline float64 // seconds from now; 0 = none
	fits     bool    // its deadline is to be met; a job without one has no say
	strict   bool    // its plan has to leave the reserve
	late     bool    // it was admitted and will miss its deadline

	plan plan
	base int // devices of the minimum satisfactory share now
}

// setLevels sets the levels: of each group the cells that are faster than all with fewer
// devices.
func (m *demand) setLevels(groups int) {
	m.levels = make([][]int, groups)
	for i := range m.Cells { // by group and devices
		c := &m.Cells[i]
		l := &m.levels[c.Group]
		if n := len(*l); c.Goodput > 0 && (n == 0 || c.Goodput > m.Cells[(*l)[n-1]].Goodput) {
			*l = append(*l, i)
		}
	}
	if best := m.Best(); best == 0 { // no speed is known: every cell is worth trying
		for i := range m.Cells {
			m.levels[m.Cells[i].Group] = append(m.levels[m.Cells[i].Group], i)
		}
	}
}

// plan is the cells of a job over the future, in one group.
type plan struct {
	group, share int // share in devices
	parts        []part
	end          float64 // when the job is done
	deviceSec    float64
}

// part is a time on one cell, -1 = without devices.
type part struct {
	from, to float64
	cell     int
}

// change returns when the cell first changes, 0 if it does not.
func (p *plan) change() float64 {
	for i := 1; i < len(p.parts); i++ {
		if p.parts[i].cell != p.parts[0].cell {
			return p.parts[i].from
		}
	}
	return 0
}

// pick returns the cell that m has now, -1 = none.
func (m *demand) pick() int {
	if len(m.plan.parts) == 0 {
		return -1
	}
	return m.plan.parts[0].cell
}

// fill returns the plan of m in a group with the levels up to share, an index of them: at any
// time the highest of these that is free. first is the cell until slot; below 0 = as at any
// time. The end is infinite if the job is never done.
func (m *demand) fill(free *profile, group, share, first int, slot float64) (p plan) {
	levels := m.levels[group]
	p = plan{group: group, share: m.Cells[levels[share]].Devices, end: math.Inf(1)}
	if first >= 0 {
		free = free.clone()
		free.split(slot)
	}
	left, held, ready := m.left, m.held, m.ready
	for k, from := range free.at {
		to := math.Inf(1)
		if k+1 < len(free.at) {
			to = free.at[k+1]
		}
		c := m.highest(levels[:share+1], free.free[k])
		if first >= 0 && from < slot {
			c = first
		}
		if c != held {
			held, ready = c, from+m.start
		}
		if n := len(p.parts); n > 0 && p.parts[n-1].cell == c {
			p.parts[n-1].to = to
		} else {
			p.parts = append(p.parts, part{from, to, c})
		}
		if c < 0 {
			continue
		}
		done := max(from, ready) + m.seconds(left, c)
		if done <= to {
			p.end = done
			p.parts[len(p.parts)-1].to = done
			p.deviceSec += float64(m.Cells[c].Devices) * (done - from)
			return p
		}
		p.deviceSec += float64(m.Cells[c].Devices) * (to - from)
		left -= max(to-max(from, ready), 0) * m.Cells[c].Goodput
	}
	return p
}

// seconds returns the time of a number of steps on a cell.
func (m *demand) seconds(steps float64, c int) float64 {
	if steps <= 0 {
		return 0
	}
	return steps / m.Cells[c].Goodput
}

// highest returns the highest of the levels with at most n devices, -1 if there is none.
func (m *demand) highest(levels []int, n int) int {
	for i := len(levels) - 1; i >= 0; i-- {
		if m.Cells[levels[i]].Devices <= n {
			return levels[i]
		}
	}
	return -1
}

// satisfy returns the plan of m with its minimum satisfactory share: the lowest with which it
// is done by its deadline; of several groups that with fewest device-seconds. ok is false if
// no share suffices.
//
// A plan leaves a reserve before the deadline, a start cost, as other jobs may make a job move
// to another node. Only a plan of an admitted job may use it.
//
// Source: progressive filling, section 4.1. Differs: the reserve.
func (m *demand) satisfy(free []*profile, first int, slot float64) (best plan, ok bool) {
	if best, ok = m.satisfyBy(m.deadline-m.start, free, first, slot); !ok && m.start > 0 && !m.strict {
		return m.satisfyBy(m.deadline, free, first, slot)
	}
	return best, ok
}

// satisfyBy is satisfy for a time in place of the deadline.
func (m *demand) satisfyBy(by float64, free []*profile, first int, slot float64) (best plan, ok bool) {
	for g, levels := range m.levels {
		if first >= 0 && m.Cells[first].Group != g {
			continue
		}
		for share := range levels {
			p := m.fill(free[g], g, share, first, slot)
			if p.end <= by+rounding {
				if !ok || p.deviceSec < best.deviceSec {
					best, ok = p, true
				}
				break
			}
		}
	}
	return best, ok
}

// rounding is the seconds by which a plan may exceed a deadline.
const rounding = 1e-6

// whyNot returns why m cannot meet its deadline.
func (m *demand) whyNot() string {
	fastest := m.Best()
	if m.deadline <= 0 {
		return "it has passed"
	}
	if need := m.left/fastest + m.start; fastest > 0 && need > m.deadline {
		return fmt.Sprintf("it is in %.0f s, the job takes at least %.0f s", m.deadline, need)
	}
	return fmt.Sprintf("it is in %.0f s, and the jobs with a deadline leave too few devices", m.deadline)
}

// work is the planning of one decision.
type work struct {
	demands []*demand
	idle    []int      // devices of each group
	free    []*profile // by group, after the plans made so far
	slot    float64    // seconds
}

// reset frees all devices.
func (w *work) reset() {
	w.free = w.free[:0]
	for _, n := range w.idle {
		w.free = append(w.free, newProfile(n))
	}
}

// byDeadline returns the demands with a deadline to be met, earliest first.
func byDeadline(all []*demand) []*demand {
	out := slices.DeleteFunc(slices.Clone(all), func(m *demand) bool { return m.deadline == 0 || !m.fits })
	slices.SortStableFunc(out, func(a, b *demand) int { return cmp.Compare(a.deadline, b.deadline) })
	return out
}

// meet plans demands in the order of their deadlines and reports which meet theirs.
func (w *work) meet(all []*demand) []bool {
	w.reset()
	met := map[*demand]bool{}
	for _, m := range byDeadline(all) {
		p, ok := m.satisfy(w.free, -1, 0)
		if ok {
			met[m] = true
			m.plan = p
			w.free[p.group].addPlan(m, &p, -1)
		}
	}
	out := make([]bool, len(all))
	for i, m := range all {
		out[i] = met[m]
	}
	return out
}

// admit decides which deadlines are to be met: those of admitted jobs that still can be, and
// of new jobs, in the order of arrival, if no other is missed for them. It records the new
// ones.
func (w *work) admit(admitted map[int]bool) {
	for _, m := range w.demands {
		m.fits = m.deadline != 0 && admitted[m.Order]
	}
	w.dropLate()
	count := func() (n int) {
		for _, m := range w.demands {
			if m.fits {
				n++
			}
		}
		return n
	}
	for _, m := range w.demands {
		if _, known := admitted[m.Order]; known || m.deadline == 0 {
			continue
		}
		m.fits, m.strict = true, true
		met := 0
		for _, ok := range w.meet(w.demands) {
			if ok {
				met++
			}
		}
		m.fits, m.strict = met == count(), false
		admitted[m.Order] = m.fits
	}
}

// dropLate makes admitted jobs best effort that cannot meet their deadlines any more.
func (w *work) dropLate() {
	for i, ok := range w.meet(w.demands) {
		if m := w.demands[i]; !ok {
			m.late, m.fits = m.fits, false
		}
	}
}

// plan plans the jobs with a deadline to be met.
func (w *work) plan() {
	for _, m := range w.demands {
		m.plan = plan{}
	}
	w.meet(w.demands)
	for _, m := range w.demands {
		if c := m.pick(); c >= 0 {
			m.base = m.Cells[c].Devices
		}
	}
}
