package ones

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/scheduler"
)

// onesSchedule is the job of each device of the cluster, in the order of nodes: an index,
// idle if below 0.
type onesSchedule []int32

const idle = -1

// onesCandidate is how many devices each job has, before it is said which.
type onesCandidate struct {
	count []int // by job
	group []int // of jobs with devices
	score float64
}

// evolution is one iteration.
type evolution struct {
	*ones
	s    *scheduler.Snapshot
	jobs []*onesJob
	rng  *rand.Rand

	up      [][]int      // devices of each group on nodes that are up, ascending
	node    []int        // of each device
	groupOf []int        // of each device
	present onesSchedule // what jobs hold now
	first   []int        // the first device each job holds, beyond all where it has none
	urgent  []int        // jobs in the order in which they are given devices
	best    onesSchedule
}

// evolve makes an iteration, and returns it with the schedule that is best.
func (p *ones) evolve(s *scheduler.Snapshot, jobs []*onesJob) *evolution {
	e := &evolution{ones: p, s: s, jobs: jobs, rng: rand.New(rand.NewPCG(p.seed, p.iteration))}
	e.lay()
	e.order()
	parents := e.refresh()
	candidates := make([]onesCandidate, 0, 3*len(parents))
	for _, m := range parents {
		candidates = append(candidates, e.count(m))
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
		e.padCandidate(&candidates[i])
		candidates[i].score = e.score(&candidates[i])
	}
	slices.SortStableFunc(candidates, func(a, b onesCandidate) int { return cmp.Compare(a.score, b.score) })
	p.survive(e, candidates[:min(p.population, len(candidates))])
	e.best = p.survivors[0]
	return e
}

// survive lays out the candidates that are left. What the others look like matters for
// crossing them alone: only the first, which is put in place, is laid out with effort.
func (p *ones) survive(e *evolution, candidates []onesCandidate) {
	p.survivors, p.orders = p.survivors[:0], p.orders[:0]
	for _, j := range e.jobs {
		p.orders = append(p.orders, j.Order)
	}
	for i := range candidates {
		p.survivors = append(p.survivors, e.layOut(&candidates[i], i == 0))
	}
}

// lay numbers the devices and assigns them to the jobs that hold them. Devices of a node
// are not distinguished: a job that continues from the node before gets the first, one
// that continues on the next node the last.
func (e *evolution) lay() {
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
	type holder struct{ job, place, devices int } // place -1 = goes on from the node before, 1 = to the next
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
	e.present = make(onesSchedule, len(e.node))
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

// order returns the order in which jobs get devices that are left: by the time left on the
// fewest devices a job runs on, ascending. Young jobs are not included.
func (e *evolution) order() {
	time := make([]float64, len(e.jobs))
	for i, j := range e.jobs {
		if j.young() {
			continue
		}
		e.urgent = append(e.urgent, i)
		for gi := range j.sizes.groups {
			if n := j.sizes.fit(gi, j.sizes.least); n > 0 {
				time[i] = j.left / j.sizes.rate(gi, n)
				break
			}
		}
	}
	slices.SortStableFunc(e.urgent, func(a, b int) int { return cmp.Compare(time[a], time[b]) })
}

// refresh returns the schedules that survived the last iteration without jobs that
// have left, and without devices beyond the limits of the others; and the present,
// where there are not as many as there should be.
func (e *evolution) refresh() []onesSchedule {
	index := map[int]int32{}
	for i, j := range e.jobs {
		index[j.Order] = int32(i)
	}
	now := make([]int32, len(e.orders)) // by index in survivors
	for i, order := range e.orders {
		now[i] = idle
		if k, ok := index[order]; ok {
			now[i] = k
		}
	}
	var out []onesSchedule
	for _, m := range e.survivors {
		fresh := make(onesSchedule, len(m))
		for d, i := range m {
			fresh[d] = idle
			if i >= 0 {
				fresh[d] = now[i]
			}
		}
		out = append(out, e.cut(fresh))
	}
	for len(out) < e.population {
		out = append(out, e.cut(slices.Clone(e.present)))
	}
	return out
}

// cut takes devices that are down, and those beyond limits, out of a schedule.
func (e *evolution) cut(m onesSchedule) onesSchedule {
	out := make(onesSchedule, len(m))
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

// count returns how many devices the jobs of a schedule have, within their limits. A
// job with devices of several groups has those of the one with most of them.
func (e *evolution) count(m onesSchedule) onesCandidate {
	c := onesCandidate{count: make([]int, len(e.jobs)), group: make([]int, len(e.jobs))}
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

// cross returns two schedules made of two others, of which every device is swapped
// with a probability.
func (e *evolution) cross(a, b onesSchedule) []onesCandidate {
	x, y := slices.Clone(a), slices.Clone(b)
	for d := range x {
		if e.rng.Float64() < e.crossover {
			x[d], y[d] = y[d], x[d]
		}
	}
	return []onesCandidate{e.count(x), e.count(y)}
}

// mutate returns a schedule without some of its jobs; young jobs stay.
func (e *evolution) mutate(c *onesCandidate) onesCandidate {
	out := onesCandidate{count: slices.Clone(c.count), group: slices.Clone(c.group)}
	for i, n := range out.count {
		if n > 0 && !e.jobs[i].young() && e.rng.Float64() < e.mutation {
			out.count[i] = 0
		}
	}
	return out
}

// padCandidate gives away devices that are left: to the young without any the fewest
// they run on, by arrival, then to the others up to their limits, and then up to the
// most they may ever have, in the order of urgency, or of chance.
func (e *evolution) padCandidate(c *onesCandidate) {
	free := make([]int, len(e.up))
	for gi := range free {
		free[gi] = len(e.up[gi])
	}
	for i, n := range c.count {
		free[c.group[i]] -= n
	}
	for i, j := range e.jobs {
		if c.count[i] == 0 && j.young() {
			e.raise(c, free, i, j.limit)
		}
	}
	order := e.urgent
	if !e.ones.pad {
		order = slices.Clone(order)
		e.rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	}
	for _, i := range order {
		e.raise(c, free, i, e.jobs[i].limit)
	}
	for _, i := range order {
		e.raise(c, free, i, e.mostOf(e.jobs[i].Job))
	}
}

// raise gives a job free devices, up to a total. A job without devices gets them in the
// group where it is fastest.
func (e *evolution) raise(c *onesCandidate, free []int, i, to int) {
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

// score returns the device-seconds that are left of the jobs of a schedule, as they
// run in it:
//
//	Σ_j n_j * Y_j / X_j(n_j)
//
//	n_j  devices
//	Y_j  samples left, 0 where nothing is known
//	X_j  samples/s
func (e *evolution) score(c *onesCandidate) (sum float64) {
	for i, n := range c.count {
		if n > 0 {
			sum += e.jobs[i].left * e.jobs[i].sizes.groups[c.group[i]].each[n]
		}
	}
	return sum
}

// layOut assigns devices to jobs, side by side in each group: with effort most of those
// they hold, see layOut, else in the order of those.
func (e *evolution) layOut(c *onesCandidate, effort bool) onesSchedule {
	out := make(onesSchedule, len(e.node))
	for d := range out {
		out[d] = idle
	}
	for gi, devices := range e.up {
		var blocks []onesBlock
		for i, n := range c.count {
			if n > 0 && c.group[i] == gi {
				blocks = append(blocks, onesBlock{i, n})
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

// firstDevices returns the first of devices of each block. Without reordering it is
// by arrival.
func (e *evolution) firstDevices(devices []int, blocks []onesBlock, effort bool) []int {
	if e.reorder && effort {
		now := make([]int, len(devices))
		for k, d := range devices {
			now[k] = int(e.present[d])
		}
		at, _ := layOut(now, blocks)
		return at
	}
	if e.reorder {
		slices.SortStableFunc(blocks, func(a, b onesBlock) int { return cmp.Compare(e.first[a.id], e.first[b.id]) })
	}
	at, next := make([]int, len(blocks)), 0
	for k, b := range blocks {
		at[k] = next
		next += b.size
	}
	return at
}
