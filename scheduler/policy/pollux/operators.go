package pollux

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
)

// Probabilities of the genetic operators, those of the artifact but for offerRate.
const (
	crossoverRate = 0.9 // that two schedules are crossed, else both are copied
	resetRate     = 0.1 // that a row is set back to the present one
	thinRate      = 0.1 // that cells of a row may be cleared, each with the same probability
	offerRate     = 0.1 // that a job which needs several devices is offered them
)

// schedule is a row for each job.
type schedule struct {
	rows        []*row
	hash        uint64
	fitness     float64
	utilisation float64
	rank        int     // of its front, 0 = not dominated
	crowding    float64 // distance to its neighbours in the front; larger is rarer
}

// baseSchedule returns the present schedule.
func (pr *problem) baseSchedule() *schedule {
	sc := &schedule{}
	for _, j := range pr.jobs {
		j.none = &row{term: pr.term(0)}
		j.base = j.none
		if j.Grant != nil {
			j.base = pr.heldRow(j)
		}
		sc.rows = append(sc.rows, j.base)
	}
	pr.evaluate(sc)
	return sc
}

// heldRow returns the row that j holds, even if no prediction covers it.
func (pr *problem) heldRow(j *job) *row {
	var cells []cell
	for _, s := range j.Grant.Slots {
		cells = append(cells, cell{s.Node, s.Devices})
	}
	group := pr.group[cells[0].node]
	v := pr.valueOf(j, group, j.Grant.Shape.PerNode())
	if n := devicesOf(cells); v == nil || v.devices != n {
		v = &value{devices: n, counts: j.Grant.Shape.PerNode()}
		if cv := pr.held(j, group); cv != nil {
			v.goodput = cv.Rate
		}
	}
	r := pr.newRow(j, cells, v)
	j.rows[string(appendCells(nil, cells))] = r
	return r
}

// held returns the prediction for the grant of a job that trains its own batch, nil if
// there is none.
func (pr *problem) held(j *job, group int) *candidate.Config {
	if j.elastic || j.blind {
		return nil
	}
	cv, err := pr.finder.Curve(pr.ctx, pr.s.Cluster, j.Job)
	if err == nil {
		var o *candidate.Config
		if o, err = pr.finder.Held(pr.ctx, pr.s.Cluster, j.JobState, group, cv); err == nil {
			return o
		}
	}
	pr.err = cmp.Or(pr.err, err)
	return nil
}

// evaluate sets the hash and the objectives of a schedule.
func (pr *problem) evaluate(sc *schedule) {
	pr.evals++
	sum, speedups, active := 0.0, 0.0, 0
	sc.hash = 0
	for _, r := range sc.rows {
		sum += r.term
		speedups += r.speedup
		sc.hash ^= r.hash
		for _, c := range r.cells {
			if pr.active[c.node] != pr.evals {
				pr.active[c.node] = pr.evals
				active += pr.room[c.node]
			}
		}
	}
	sc.fitness, sc.utilisation = pr.mean(sum, len(sc.rows)), 0
	if active > 0 {
		sc.utilisation = speedups / float64(active)
	}
}

// cross returns two schedules with the rows of a up to a random job and of b from there on,
// and the reverse.
func cross(a, b *schedule, rng *rand.Rand) [2]*schedule {
	x, y := slices.Clone(a.rows), slices.Clone(b.rows)
	if rng.Float64() < crossoverRate {
		for i := rng.IntN(len(x)); i < len(x); i++ {
			x[i], y[i] = y[i], x[i]
		}
	}
	return [2]*schedule{{rows: x}, {rows: y}}
}

// edit is a change of a mutation: the devices of a job on a node.
type edit struct{ job, node, devices int }

// mutate sets rows back to the present ones, clears cells, and raises the devices of random
// jobs on nodes with free devices: of one of all jobs and one of those on the node, on
// average. The new number is uniform between the present one and the whole node. Repair has
// to follow: a job may have more devices than it can use.
func (pr *problem) mutate(sc *schedule, rng *rand.Rand) {
	pr.forgetRaw()
	for i := range sample(len(sc.rows), logNotReset, rng) {
		sc.rows[i] = pr.jobs[i].base
	}
	for i := range sample(len(sc.rows), logNotThin, rng) {
		cells := slices.DeleteFunc(pr.rawCells(sc.rows[i].cells, 0), func(cell) bool { return rng.Float64() < thinRate })
		sc.rows[i] = pr.raw(pr.jobs[i], cells)
	}
	pr.countUsers(sc)
	edits, one := pr.edits[:0], logNot(1/float64(len(sc.rows)))
	for node, free := range pr.free {
		if free <= 0 {
			continue
		}
		for i := range sample(len(sc.rows), one, rng) {
			has := sc.rows[i].on(node)
			edits = append(edits, edit{i, node, has + rng.IntN(pr.room[node]-has+1)})
		}
	}
	for i, r := range sc.rows {
		for _, c := range r.cells {
			if pr.free[c.node] > 0 && rng.Float64()*float64(pr.users[c.node]) < 1 {
				edits = append(edits, edit{i, c.node, c.devices + rng.IntN(pr.room[c.node]-c.devices+1)})
			}
		}
	}
	pr.applyEdits(sc, edits)
	pr.edits = edits
	pr.offer(sc, rng)
}

var logNotReset, logNotThin = logNot(resetRate), logNot(thinRate)

// logNot returns the logarithm of the probability that something does not happen.
func logNot(probability float64) float64 { return math.Log1p(-min(probability, 1)) }

// sample yields each number below n with a probability, given by its logNot.
func sample(n int, logNot float64, rng *rand.Rand) func(func(int) bool) {
	return func(yield func(int) bool) {
		if math.IsInf(logNot, -1) {
			for i := range n {
				if !yield(i) {
					return
				}
			}
			return
		}
		scale := 1 / logNot
		for i := -1; ; {
			skip := math.Log(1-rng.Float64()) * scale // geometric
			if skip >= float64(n) {
				return
			}
			if i += 1 + int(skip); i >= n || !yield(i) {
				return
			}
		}
	}
}

// countUsers sets pr.free and pr.users.
func (pr *problem) countUsers(sc *schedule) {
	copy(pr.free, pr.room)
	clear(pr.users)
	for _, r := range sc.rows {
		for _, c := range r.cells {
			pr.free[c.node] -= c.devices
			pr.users[c.node]++
		}
	}
}

// on returns the devices of r on a node.
func (r *row) on(node int) int {
	if i, ok := slices.BinarySearchFunc(r.cells, node, func(c cell, n int) int { return c.node - n }); ok {
		return r.cells[i].devices
	}
	return 0
}

// applyEdits changes the rows of a schedule. Of two edits of a cell the later one holds.
func (pr *problem) applyEdits(sc *schedule, edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.job-b.job, a.node-b.node) })
	for len(edits) > 0 {
		i, n := edits[0].job, 1
		for n < len(edits) && edits[n].job == i {
			n++
		}
		cells := pr.rawCells(sc.rows[i].cells, n)
		for _, e := range edits[:n] {
			cells = withCell(cells, cell{e.node, e.devices})
		}
		sc.rows[i], edits = pr.raw(pr.jobs[i], cells), edits[n:]
	}
}

// withCell returns cells with the devices of one node replaced.
func withCell(cells []cell, c cell) []cell {
	i, ok := slices.BinarySearchFunc(cells, c.node, func(c cell, n int) int { return c.node - n })
	switch {
	case ok && c.devices == 0:
		return slices.Delete(cells, i, i+1)
	case ok:
		cells[i] = c
		return cells
	case c.devices == 0:
		return cells
	}
	return slices.Insert(cells, i, c)
}

// offer gives a job that cannot run on one device and has none its least configuration,
// with a probability of offerRate over the number of such jobs. It takes the nodes with most
// free devices and removes other jobs from them where these are too few. Single raised
// cells seldom make such a configuration.
func (pr *problem) offer(sc *schedule, rng *rand.Rand) {
	without := 0
	for i, j := range pr.jobs {
		if j.wide() && sc.rows[i] == j.none {
			without++
		}
	}
	if without == 0 {
		return
	}
	for i, j := range pr.jobs {
		if !j.wide() || sc.rows[i] != j.none || rng.Float64()*float64(without) >= offerRate {
			continue
		}
		if group, counts := j.leastLayout(pr, rng); counts != nil {
			pr.makeRoom(sc, i, group, counts)
		}
	}
}

// wide reports whether j needs several devices.
func (j *job) wide() bool { return j.least > 1 && j.most > 0 }

// leastLayout returns a random one of the configurations of j with fewest devices.
func (j *job) leastLayout(pr *problem, rng *rand.Rand) (group int, counts []int) {
	if j.elastic {
		for gi := range pr.s.Cluster.Groups {
			g := &pr.s.Cluster.Groups[gi]
			if room := g.Room(j.Job.Host); j.Job.Accepts(g) && g.Count*room >= j.least {
				return gi, spec.Packed(j.least, room).PerNode()
			}
		}
		return 0, nil
	}
	seen := 0
	for i := range j.layouts {
		if l := &j.layouts[i]; l.config.Devices == j.least {
			if seen++; rng.IntN(seen) == 0 {
				group, counts = l.config.Group, l.counts
			}
		}
	}
	return group, counts
}

// makeRoom gives job i devices on the nodes of a group with most free devices, and removes
// jobs from these nodes until they fit.
func (pr *problem) makeRoom(sc *schedule, i, group int, counts []int) {
	pr.countUsers(sc)
	var nodes []int
	for node, gi := range pr.group {
		if gi == group && pr.room[node] > 0 {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) < len(counts) {
		return
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return pr.free[b] - pr.free[a] })
	var edits []edit
	for k, n := range counts {
		node := nodes[k]
		for other := len(sc.rows) - 1; other >= 0 && pr.free[node] < n; other-- {
			if has := sc.rows[other].on(node); has > 0 {
				pr.free[node] += has
				edits = append(edits, edit{other, node, 0})
			}
		}
		edits = append(edits, edit{i, node, n})
	}
	pr.applyEdits(sc, edits)
}

// repair makes a schedule legal, in the order of the jobs: at most one job on several nodes
// uses a node, jobs have at most their most devices and nodes, and nodes hold what they can.
func (pr *problem) repair(sc *schedule, rng *rand.Rand) {
	copy(pr.free, pr.room)
	copy(pr.host, pr.hosts)
	clear(pr.users)
	for i, j := range pr.jobs {
		r := sc.rows[i]
		if r.isRaw() || !pr.isLegal(j, r) {
			r = pr.rowOf(j, pr.legal(j, r.cells, rng))
			sc.rows[i] = r
		}
		for _, c := range r.cells {
			pr.free[c.node] -= c.devices
			if pr.hosts != nil {
				pr.host[c.node] = pr.host[c.node].Plus(j.Job.Host.Times(-c.devices))
			}
			if len(r.cells) > 1 {
				pr.users[c.node]++
			}
		}
	}
}

// isLegal reports whether the row of j fits beside those of the jobs before it.
func (pr *problem) isLegal(j *job, r *row) bool {
	if r.devices > j.most && r != j.base || len(r.cells) > j.nodes {
		return false
	}
	for _, c := range r.cells {
		if c.devices > pr.roomOn(j, c) || pr.avoid && len(r.cells) > 1 && pr.users[c.node] > 0 {
			return false
		}
	}
	return true
}

// roomOn returns the devices that j can have on the node of c, at most those of c.
func (pr *problem) roomOn(j *job, c cell) int {
	n := min(c.devices, pr.free[c.node])
	if pr.hosts != nil {
		n = pr.host[c.node].Room(j.Job.Host, n)
	}
	return n
}

// legal returns the cells that j may have, taking nodes in random order. They are valid until the next call.
func (pr *problem) legal(j *job, cells []cell, rng *rand.Rand) []cell {
	distributed := len(cells) > 1
	out, order := pr.legalCells[:0], pr.order[:0]
	for k := range cells {
		order = append(order, k)
	}
	rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	left := j.most
	for _, k := range order {
		c := cells[k]
		if pr.avoid && distributed && pr.users[c.node] > 0 || len(out) == j.nodes {
			continue
		}
		if c.devices = min(pr.roomOn(j, c), left); c.devices > 0 {
			out = append(out, c)
			left -= c.devices
		}
	}
	slices.SortFunc(out, func(a, b cell) int { return a.node - b.node })
	pr.legalCells, pr.order = out, order
	return out
}
