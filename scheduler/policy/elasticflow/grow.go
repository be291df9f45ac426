package elasticflow

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/internal/heap"
)

// growth is a higher level for a job during the next slot.
type growth struct {
	m    *demand
	plan plan
	cost float64 // device-seconds per device added
}

// cheaper reports whether a comes before b; ties go to the earlier job.
func cheaper(a, b growth) bool {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.m.Order, b.m.Order)) < 0
}

// grow gives spare devices of the next slot to jobs with a deadline: one level at a time to
// the job with the plan that then costs fewest additional device-seconds per device added.
// The plans of others stay as they are, so all deadlines are still met.
//
// Source: the greedy allocation by marginal return of section 4.2; the marginal device time
// of the artifact.
func (w *work) grow() {
	h := &heap.Heap[growth]{Less: cheaper}
	for _, m := range w.demands {
		if m.deadline != 0 && m.fits {
			w.pushGrowth(h, m)
		}
	}
	for len(h.Items) > 0 {
		g := h.Pop()
		now, ok := w.growthOf(g.m)
		if !ok {
			continue
		}
		if len(h.Items) > 0 && now.cost > h.Items[0].cost { // other plans made it dearer
			h.Push(now)
			continue
		}
		w.replace(g.m, now.plan)
		w.pushGrowth(h, g.m)
	}
}

func (w *work) pushGrowth(h *heap.Heap[growth], m *demand) {
	if g, ok := w.growthOf(m); ok {
		h.Push(g)
	}
}

// growthOf returns the next level of m during the slot; ok is false if too few devices are
// free, or if its deadline would be missed, as by a restart.
func (w *work) growthOf(m *demand) (g growth, ok bool) {
	now := m.pick()
	has, group := 0, m.plan.group
	if now >= 0 {
		has = m.Cells[now].Devices
	}
	next := m.next(group, has)
	if next < 0 || m.Cells[next].Devices-has > w.freeNow(group) {
		return g, false
	}
	w.free[group].addPlan(m, &m.plan, 1)
	p, ok := m.satisfy(w.free, next, w.slot)
	w.free[group].addPlan(m, &m.plan, -1)
	if !ok || !w.hastens(m, next) {
		return g, false
	}
	p.share = m.plan.share
	added := float64(m.Cells[next].Devices - has)
	return growth{m, p, (p.deviceSec - m.plan.deviceSec) / added}, true
}

// hastens reports whether m is done earlier if it may have the devices of a cell as long as they
// are free, a start cost included, than by its plan.
func (w *work) hastens(m *demand, next int) bool {
	w.free[m.plan.group].addPlan(m, &m.plan, 1)
	defer w.free[m.plan.group].addPlan(m, &m.plan, -1)
	i := slices.Index(m.levels[m.plan.group], next)
	return m.fill(w.free[m.plan.group], m.plan.group, i, -1, 0).end < m.plan.end
}

// freeNow returns the devices of a group that are free during the whole next slot.
func (w *work) freeNow(group int) int {
	p := w.free[group]
	n := math.MaxInt
	for k, at := range p.at {
		if at >= w.slot {
			break
		}
		n = min(n, p.free[k])
	}
	return n
}

// next returns the lowest level of m in a group above a number of devices, -1 if there is
// none.
func (m *demand) next(group, has int) int {
	for _, c := range m.levels[group] {
		if m.Cells[c].Devices > has {
			return c
		}
	}
	return -1
}

// replace makes p the plan of m.
func (w *work) replace(m *demand, p plan) {
	w.free[m.plan.group].addPlan(m, &m.plan, 1)
	m.plan = p
	w.free[p.group].addPlan(m, &p, -1)
}

// growBestEffort gives spare devices to best-effort jobs: first their least level, to admitted
// jobs that are late, then to the others in ascending order of remaining time; then level by
// level where the completion advances most per device.
func (w *work) growBestEffort() {
	var jobs []*demand
	for _, m := range w.demands {
		if m.deadline == 0 || !m.fits {
			jobs = append(jobs, m)
		}
	}
	slices.SortStableFunc(jobs, func(a, b *demand) int {
		if a.late != b.late {
			if a.late {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.remaining(), b.remaining())
	})
	for _, m := range jobs {
		if c := w.firstLevel(m); c >= 0 {
			w.hold(m, c)
		}
	}
	for {
		m, c := w.bestGrowth(jobs)
		if m == nil {
			return
		}
		w.hold(m, c)
	}
}

// bestGrowth returns the running job and its higher level that advance its completion most
// per device; nil if no level that is free does.
func (w *work) bestGrowth(jobs []*demand) (best *demand, to int) {
	free := make([]int, len(w.free))
	for g := range free {
		free[g] = w.freeNow(g)
	}
	gain := 0.0
	for _, m := range jobs {
		now := m.pick()
		if now < 0 {
			continue
		}
		for _, c := range m.levels[m.plan.group] {
			added := m.Cells[c].Devices - m.Cells[now].Devices
			if added <= 0 || added > free[m.plan.group] {
				continue
			}
			if v := (m.until(now) - m.until(c)) / float64(added); v > gain {
				best, to, gain = m, c, v
			}
		}
	}
	return best, to
}

// remaining returns the seconds to go of m on its fastest lowest level.
func (m *demand) remaining() float64 {
	best := math.Inf(1)
	for _, levels := range m.levels {
		if len(levels) > 0 {
			best = min(best, m.seconds(m.left, levels[0]))
		}
	}
	return best
}

// until returns the seconds to the end of m on a cell from now on.
func (m *demand) until(c int) float64 {
	ready := m.start
	if c == m.held {
		ready = m.ready
	}
	return ready + m.seconds(m.left, c)
}

// firstLevel returns the lowest level of m that is free, in the group where m is done first.
func (w *work) firstLevel(m *demand) int {
	best := -1
	for g, levels := range m.levels {
		if len(levels) > 0 && m.Cells[levels[0]].Devices <= w.freeNow(g) && (best < 0 || m.until(levels[0]) < m.until(best)) {
			best = levels[0]
		}
	}
	return best
}

// hold gives m a cell for the next slot.
func (w *work) hold(m *demand, c int) {
	w.replace(m, plan{group: m.Cells[c].Group, parts: []part{{0, w.slot, c}}})
}

// growth returns in words how many devices m has beyond its share.
func (m *demand) growth() string {
	c := m.pick()
	switch {
	case c < 0:
		return ", from later on"
	case m.Cells[c].Devices > m.base:
		return fmt.Sprintf(", with %s added", spec.Count(m.Cells[c].Devices-m.base, "spare device"))
	}
	return ""
}
