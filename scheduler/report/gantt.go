package report

import (
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Bounds of a Gantt chart. A screen cannot show more devices or bars; rows of nodes
// are drawn instead.
const (
	ganttLanes   = 512   // devices drawn one by one
	ganttBars    = 20000 // bars of a run
	ganttRows    = 64    // rows of nodes
	ganttBuckets = 480   // steps of time in a row, even
)

// Gantt records which job held which devices when, from the events of a run. Its
// size is bounded: it keeps at most ganttBars bars, one for each range of neighbouring
// devices that a job held together, and the share held over time for up to ganttRows
// rows of nodes. The simulator does not number the devices of a node, so a job is
// drawn on the first free ones.
type Gantt struct {
	first []int // lane of each node's first device, and one past the last lane
	taken []bool
	row   []int // row of each node

	held map[spec.JobID]*holding
	bars []bar // bars that have ended
	over bool  // too many bars or devices to draw single bars

	rows    []ganttRow
	bucket  time.Duration // length of a step
	now     time.Duration
	pending []change // changes at now, in order
}

// bar is the time in which a job, or two that shared them, held lanes [lane, lane+n),
// or in which these were down.
type bar struct {
	job      spec.JobID
	down     bool
	lane, n  int
	from, to time.Duration
}

// holding is the devices that a job holds, or those of a node that is down.
type holding struct {
	down  bool
	slots []scheduler.Slot
	bars  []bar // bars that have not ended; nil if too many
}

// change is a new grant of a job, nil = none. A node that is down holds its own
// devices.
type change struct {
	job   spec.JobID
	down  bool
	grant *scheduler.Grant
}

// drawn returns the label of a bar. Two jobs that share devices have one bar.
func (c change) drawn() spec.JobID {
	if c.grant.With == "" {
		return c.job
	}
	return c.job + " and " + c.grant.With
}

// nodeID is the key in held for a node that is down. No job ID contains a zero byte.
func nodeID(node int) spec.JobID { return spec.JobID("\x00" + strconv.Itoa(node)) }

// ganttRow is some nodes next to each other.
type ganttRow struct {
	nodes, devices int
	held           int           // devices held now
	since          time.Duration // sums are complete until this time
	sums           []float64     // device-seconds held in each step
}

// NewGantt records a run on a cluster.
func NewGantt(cl spec.Cluster) *Gantt {
	g := &Gantt{held: map[spec.JobID]*holding{}, bucket: time.Second}
	nodes, lanes := cl.Nodes(), 0
	g.rows = make([]ganttRow, min(nodes, ganttRows))
	for i := range g.rows {
		g.rows[i].sums = make([]float64, ganttBuckets)
	}
	for _, group := range cl.Groups {
		for range group.Count {
			row := len(g.row) * len(g.rows) / nodes
			g.first, g.row = append(g.first, lanes), append(g.row, row)
			g.rows[row].nodes++
			g.rows[row].devices += group.Devices
			lanes += group.Devices
		}
	}
	g.first = append(g.first, lanes)
	if g.over = lanes > ganttLanes; !g.over {
		g.taken = make([]bool, lanes)
	}
	return g
}

// Observe records an event of the run, for sim.Config.Observe. Events at the same
// time count as simultaneous.
func (g *Gantt) Observe(e sim.Event) {
	c := change{}
	switch e.Kind {
	case sim.Started, sim.Moved, sim.Shared:
		c = change{job: e.Job.ID, grant: e.Grant}
	case sim.Stopped, sim.Completed, sim.Failed, sim.Evicted, sim.Cancelled:
		c.job = e.Job.ID
	case sim.NodeDown:
		devices := g.first[e.Node+1] - g.first[e.Node]
		c = change{nodeID(e.Node), true, &scheduler.Grant{Slots: []scheduler.Slot{{Node: e.Node, Devices: devices}}}}
	case sim.NodeUp:
		c.job = nodeID(e.Node)
	default:
		return
	}
	if e.At > g.now {
		g.settle()
		g.now = e.At
	}
	g.pending = append(g.pending, c)
}

// settle applies the pending changes. All jobs in them release their devices, then
// each takes those of its last change.
func (g *Gantt) settle() {
	last := make(map[spec.JobID]int, len(g.pending))
	for i, c := range g.pending {
		last[c.job] = i
		g.release(c.job)
	}
	for i, c := range g.pending {
		if last[c.job] == i && c.grant != nil {
			g.take(c)
		}
	}
	g.pending = g.pending[:0]
}

func (g *Gantt) release(id spec.JobID) {
	h := g.held[id]
	if h == nil {
		return
	}
	delete(g.held, id)
	for _, s := range h.slots {
		if !h.down {
			g.count(s, -1)
		}
	}
	for _, b := range h.bars {
		for lane := b.lane; lane < b.lane+b.n; lane++ {
			g.taken[lane] = false
		}
		if b.to = g.now; b.to > b.from {
			g.bars = append(g.bars, b)
		}
	}
	if len(g.bars) > ganttBars {
		g.over, g.bars = true, nil
	}
}

func (g *Gantt) take(c change) {
	h := &holding{down: c.down}
	g.held[c.job] = h
	if !c.down && !c.grant.Counted() {
		return // the colocated job's bar covers both
	}
	h.slots = c.grant.Slots
	for _, s := range h.slots {
		if !h.down {
			g.count(s, 1)
		}
		if !g.over {
			h.bars = g.lay(h.bars, bar{job: c.drawn(), down: c.down, from: g.now}, s)
		}
	}
}

// lay adds the bars of a slot as copies of one, or extends the last bar.
func (g *Gantt) lay(bars []bar, one bar, s scheduler.Slot) []bar {
	left := s.Devices
	for lane := g.first[s.Node]; lane < g.first[s.Node+1] && left > 0; lane++ {
		if g.taken[lane] {
			continue
		}
		g.taken[lane] = true
		left--
		if n := len(bars); n > 0 && bars[n-1].lane+bars[n-1].n == lane {
			bars[n-1].n++
			continue
		}
		one.lane, one.n = lane, 1
		bars = append(bars, one)
	}
	return bars
}

// count adds the devices of a slot to those held if sign is 1, and subtracts them
// if it is -1.
func (g *Gantt) count(s scheduler.Slot, sign int) {
	r := &g.rows[g.row[s.Node]]
	g.fill(r)
	r.held += sign * s.Devices
}

// fill adds the device-seconds of a row until now. It doubles the length of steps
// until they reach now.
func (g *Gantt) fill(r *ganttRow) {
	for g.now > g.bucket*ganttBuckets {
		g.widen()
	}
	for at := r.since; at < g.now && r.held > 0; {
		k := at / g.bucket
		to := min(g.now, (k+1)*g.bucket)
		r.sums[k] += float64(r.held) * (to - at).Seconds()
		at = to
	}
	r.since = g.now
}

func (g *Gantt) widen() {
	g.bucket *= 2
	for i := range g.rows {
		sums := g.rows[i].sums
		for k := range ganttBuckets / 2 {
			sums[k] = sums[2*k] + sums[2*k+1]
		}
		clear(sums[ganttBuckets/2:])
	}
}

// End completes the record of a run that ended at a time. Bars that have not ended
// end then.
func (g *Gantt) End(at time.Duration) {
	g.settle()
	g.now = max(g.now, at)
	for i := range g.rows {
		g.fill(&g.rows[i])
	}
	if g.over {
		g.bars = nil
		return
	}
	for _, h := range g.held {
		for _, b := range h.bars {
			b.to = g.now
			g.bars = append(g.bars, b)
		}
	}
}
