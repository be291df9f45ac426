package ones

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

// schedule is the index of the job of each device, by node; below 0 = idle.
type schedule []int32

const idle = -1

// allocation is the number of devices of each job and their group.
type allocation struct {
	count []int // by job
	group []int // of jobs with devices
	score float64
}

// evolution is one iteration.
type evolution struct {
	*ones
	s    *scheduler.Snapshot
	jobs []*trackedJob
	rng  *rand.Rand

	up          [][]int  // the devices of each group on nodes that are up, ascending
	node        []int    // of each device
	groupOf     []int    // of each device
	present     schedule // the devices that jobs hold
	first       []int    // first device that each job holds; the number of devices if it holds none
	byRemaining []int    // jobs that are not young, in ascending order of remaining time
	best        schedule
}

// evolve runs an iteration and returns it with the best schedule: refresh the survivors,
// uniform crossover, uniform mutation, fill idle devices, select by score, lay out.
func (p *ones) evolve(s *scheduler.Snapshot, jobs []*trackedJob) *evolution {
	e := &evolution{ones: p, s: s, jobs: jobs, rng: rand.New(rand.NewPCG(p.seed, p.iteration))}
	e.numberDevices()
	e.order()
	parents := e.refresh()
	candidates := make([]allocation, 0, 3*len(parents))
	for _, m := range parents {
		candidates = append(candidates, e.countDevices(m))
	}
	if p.crossover > 0 {
		for range len(parents) / 2 {
			a, b := parents[e.rng.IntN(len(parents))], parents[e.rng.IntN(len(parents))]
			candidates = append(candidates, e.cross(a, b)...)
		}
	}
	if p.mutation > 0 {
		for i := range parents {
			candidates = append(candidates, e.mutate(&candidates[i]))
		}
	}
	for i := range candidates {
		e.fill(&candidates[i])
		candidates[i].score = e.score(&candidates[i])
	}
	slices.SortStableFunc(candidates, func(a, b allocation) int { return cmp.Compare(a.score, b.score) })
	p.selectSurvivors(e, candidates[:min(p.population, len(candidates))])
	e.best = p.survivors[0]
	return e
}

// selectSurvivors lays out the allocations that survive. Only the first, which is applied,
// is laid out to keep devices; the layout of the others matters only for crossover.
func (p *ones) selectSurvivors(e *evolution, candidates []allocation) {
	p.survivors, p.orders = p.survivors[:0], p.orders[:0]
	for _, j := range e.jobs {
		p.orders = append(p.orders, j.Order)
	}
	for i := range candidates {
		p.survivors = append(p.survivors, e.layOut(&candidates[i], i == 0))
	}
}

// numberDevices numbers the devices and sets present. Within a node devices are
// interchangeable: a job that also holds devices of the node before gets the first, a job
// that also holds devices of the next node gets the last.
func (e *evolution) numberDevices() {
	e.up = make([][]int, len(e.s.Cluster.Groups))
	free, down := e.s.Free(), 0
	begin := make([]int, len(free.Group)+1) // first device of each node
	for node, gi := range free.Group {
		begin[node+1] = begin[node] + e.s.Cluster.Groups[gi].Devices
		isDown := down < len(e.s.Down) && e.s.Down[down] == node
		if isDown {
			down++
		}
		for d := begin[node]; d < begin[node+1]; d++ {
			e.node, e.groupOf = append(e.node, node), append(e.groupOf, gi)
			if !isDown {
				e.up[gi] = append(e.up[gi], d)
			}
		}
	}
	type holder struct{ job, place, devices int } // place -1 = also on the node before, 1 = also on the next
	on := make([][]holder, len(free.Group))
	for i, j := range e.jobs {
		if j.Grant == nil {
			continue
		}
		slots := j.Grant.Slots
		for k, slot := range slots {
			h := holder{job: i, devices: slot.Devices}
			switch {
			case k > 0 && slots[k-1].Node == slot.Node-1:
				h.place = -1
			case k+1 < len(slots) && slots[k+1].Node == slot.Node+1:
				h.place = 1
			}
			on[slot.Node] = append(on[slot.Node], h)
		}
	}
	e.first = slices.Repeat([]int{len(e.node)}, len(e.jobs))
	e.present = make(schedule, len(e.node))
	for d := range e.present {
		e.present[d] = idle
	}
	for node, holders := range on {
		slices.SortStableFunc(holders, func(a, b holder) int { return cmp.Compare(a.place, b.place) })
		d := begin[node]
		for _, h := range holders {
			for range h.devices {
				e.present[d] = int32(h.job)
				e.first[h.job] = min(e.first[h.job], d)
				d++
			}
		}
	}
}

// order sets byRemaining: jobs by the remaining time on their least size, ascending. Young
// jobs are left out.
func (e *evolution) order() {
	time := make([]float64, len(e.jobs))
	for i, j := range e.jobs {
		if j.young() {
			continue
		}
		e.byRemaining = append(e.byRemaining, i)
		for gi := range j.sizes.groups {
			if n := j.sizes.fit(gi, j.sizes.least); n > 0 {
				time[i] = j.left / j.sizes.rate(gi, n)
				break
			}
		}
	}
	slices.SortStableFunc(e.byRemaining, func(a, b int) int { return cmp.Compare(time[a], time[b]) })
}

// refresh returns the survivors of the last iteration without jobs that ended, and with all
// jobs cut to their limits. It adds the present schedule until the population is complete.
func (e *evolution) refresh() []schedule {
	index := map[int]int32{}
	for i, j := range e.jobs {
		index[j.Order] = int32(i)
	}
	now := make([]int32, len(e.orders)) // present index of each job, by its index in survivors
	for i, order := range e.orders {
		now[i] = idle
		if k, ok := index[order]; ok {
			now[i] = k
		}
	}
	var out []schedule
	for _, m := range e.survivors {
		refreshed := make(schedule, len(m))
		for d, i := range m {
			refreshed[d] = idle
			if i >= 0 {
				refreshed[d] = now[i]
			}
		}
		out = append(out, e.applyLimits(refreshed))
	}
	for len(out) < e.population {
		out = append(out, e.applyLimits(slices.Clone(e.present)))
	}
	return out
}

// applyLimits removes jobs from devices that are down and from devices beyond their limits.
func (e *evolution) applyLimits(m schedule) schedule {
	out := make(schedule, len(m))
	for d := range out {
		out[d] = idle
	}
	has := make([]int, len(e.jobs))
	for _, devices := range e.up {
		for _, d := range devices {
			if i := m[d]; i >= 0 && has[i] < e.jobs[i].limit {
				has[i]++
				out[d] = i
			}
		}
	}
	return out
}

// countDevices returns the allocation of a schedule within limits. A job with devices of
// several groups keeps those of the group with the largest size.
func (e *evolution) countDevices(m schedule) allocation {
	c := allocation{count: make([]int, len(e.jobs)), group: make([]int, len(e.jobs))}
	each := make([]int, len(e.jobs))
	for gi, devices := range e.up {
		clear(each)
		for _, d := range devices {
			if i := m[d]; i >= 0 {
				each[i]++
			}
		}
		for i, n := range each {
			if n = e.jobs[i].sizes.fit(gi, min(n, e.jobs[i].limit)); n > c.count[i] {
				c.count[i], c.group[i] = n, gi
			}
		}
	}
	return c
}

// cross returns the uniform crossover of two schedules: every device is swapped with
// probability e.crossover.
func (e *evolution) cross(a, b schedule) []allocation {
	x, y := slices.Clone(a), slices.Clone(b)
	for d := range x {
		if e.rng.Float64() < e.crossover {
			x[d], y[d] = y[d], x[d]
		}
	}
	return []allocation{e.countDevices(x), e.countDevices(y)}
}

// mutate returns the uniform mutation of an allocation: every job except young ones is
// removed with probability e.mutation.
func (e *evolution) mutate(c *allocation) allocation {
	out := allocation{count: slices.Clone(c.count), group: slices.Clone(c.group)}
	for i, n := range out.count {
		if n > 0 && !e.jobs[i].young() && e.rng.Float64() < e.mutation {
			out.count[i] = 0
		}
	}
	return out
}

// fill assigns idle devices: first to young jobs without any, by arrival, their limit; then
// to the other jobs up to their limits; then to these up to maxDevices. The other jobs are
// in the order of byRemaining, or shuffled without option fill-by-remaining.
func (e *evolution) fill(c *allocation) {
	free := make([]int, len(e.up))
	for gi := range free {
		free[gi] = len(e.up[gi])
	}
	for i, n := range c.count {
		free[c.group[i]] -= n
	}
	for i, j := range e.jobs {
		if c.count[i] == 0 && j.young() {
			e.addDevices(c, free, i, j.limit)
		}
	}
	order := e.byRemaining
	if !e.ones.fillByRemaining {
		order = slices.Clone(order)
		e.rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	}
	for _, i := range order {
		e.addDevices(c, free, i, e.jobs[i].limit)
	}
	for _, i := range order {
		e.addDevices(c, free, i, e.maxDevices(e.jobs[i].Job))
	}
}

// addDevices gives a job free devices up to a total. A job without devices gets them in the
// group where it is fastest.
func (e *evolution) addDevices(c *allocation, free []int, i, to int) {
	sizes := e.jobs[i].sizes
	if c.count[i] > 0 {
		g := c.group[i]
		if n := sizes.fit(g, min(to, c.count[i]+free[g])); n > c.count[i] {
			free[g] -= n - c.count[i]
			c.count[i] = n
		}
		return
	}
	best := 0.0
	for gi := range free {
		if n := sizes.fit(gi, min(to, free[gi])); n > 0 && sizes.rate(gi, n) > best {
			best = sizes.rate(gi, n)
			c.count[i], c.group[i] = n, gi
		}
	}
	if c.count[i] > 0 {
		free[c.group[i]] -= c.count[i]
	}
}

// score returns the remaining utilization of an allocation, in device-seconds:
//
//	Σ_j n_j * Y_j / X_j(n_j)
//
//	n_j  devices
//	Y_j  samples left, 0 if unknown
//	X_j  samples/s
func (e *evolution) score(c *allocation) (sum float64) {
	for i, n := range c.count {
		if n > 0 {
			sum += e.jobs[i].left * e.jobs[i].sizes.groups[c.group[i]].each[n]
		}
	}
	return sum
}

// layOut assigns adjacent devices to each job in each group. With effort it keeps as many
// as possible on the devices they hold, see function layOut; otherwise it keeps their order.
func (e *evolution) layOut(c *allocation, effort bool) schedule {
	out := make(schedule, len(e.node))
	for d := range out {
		out[d] = idle
	}
	for gi, devices := range e.up {
		var blocks []block
		for i, n := range c.count {
			if n > 0 && c.group[i] == gi {
				blocks = append(blocks, block{i, n})
			}
		}
		at := e.firstDevices(devices, blocks, effort)
		for k, b := range blocks {
			for _, d := range devices[at[k] : at[k]+b.size] {
				out[d] = int32(b.id)
			}
		}
	}
	return out
}

// firstDevices returns the index in devices of the first device of each block. Without
// option reorder blocks are in order of arrival.
func (e *evolution) firstDevices(devices []int, blocks []block, effort bool) []int {
	if e.reorder && effort {
		now := make([]int, len(devices))
		for k, d := range devices {
			now[k] = int(e.present[d])
		}
		at, _ := layOut(now, blocks)
		return at
	}
	if e.reorder {
		slices.SortStableFunc(blocks, func(a, b block) int { return cmp.Compare(e.first[a.id], e.first[b.id]) })
	}
	at, next := make([]int, len(blocks)), 0
	for k, b := range blocks {
		at[k] = next
		next += b.size
	}
	return at
}
