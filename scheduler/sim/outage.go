package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
)

// cause is the reason why a node goes down.
type cause uint8

const (
	failure     cause = iota // Config.Failures
	maintenance              // Config.Maintenance
	reclaim                  // Config.Spot
	causes
)

func (c cause) String() string {
	return [...]string{"failure", "maintenance", "spot capacity taken back"}[c]
}

// node is the state of a node that may go down. It is down while any cause has it down.
type node struct {
	causes [causes]outages
	down   int // number of causes that have it down
}

// outages are those of one node by one cause.
type outages struct {
	read func() (Outage, bool) // nil = none
	next Outage                // the present one if down, else the next one
	left bool                  // next has not ended
	down bool
}

// sources returns the outages of all nodes by cause; nil = none.
func (c *Config) sources() [causes]Failures {
	return [causes]Failures{c.Failures, c.Maintenance, c.Spot}
}

// hasOutages reports whether any node goes down.
func (c *Config) hasOutages() bool { return c.sources() != [causes]Failures{} }

// expectOutages plans the first outage of every node by every cause.
func (e *engine) expectOutages() {
	e.nodes = make([]node, e.Cluster.Nodes())
	for i := range e.nodes {
		for c, source := range e.sources() {
			if source != nil {
				e.nodes[i].causes[c].read = source.Outages(i)
				e.expectOutage(i, cause(c))
			}
		}
	}
}

// expectOutage plans the next outage of a node by a cause. It skips those before the run
// began.
func (e *engine) expectOutage(i int, c cause) {
	n := &e.nodes[i].causes[c]
	for {
		n.next, n.left = n.read()
		switch o := &n.next; {
		case !n.left:
			return
		case o.Down >= e.now || o.Up > e.now:
			e.expect(max(o.Down, e.now), i, c)
			return
		}
	}
}

// expect plans that a node goes down or up at a time within the horizon.
func (e *engine) expect(at time.Duration, node int, c cause) {
	if at <= e.Horizon {
		e.queue.add(event{at: at, kind: outage, node: node, cause: c})
	}
}

// outages takes nodes down and up as planned for this instant. It reports whether it completed
// a job that was done before, which no round had noticed yet.
func (e *engine) outages() (completed bool) {
	for any := false; ; any = true {
		ev, ok := e.due(outage)
		if !ok {
			return completed
		}
		if !any {
			e.idleOutages++
			e.idle = min(e.idle, maxIdle-wakesAfterOutage)
		}
		n := &e.nodes[ev.node]
		o := &n.causes[ev.cause]
		if o.down {
			o.down = false
			if n.down--; n.down == 0 {
				e.ledger.NodeUp(ev.node)
				e.emit(Event{At: e.now, Kind: NodeUp, Node: ev.node})
			}
			e.expectOutage(ev.node, ev.cause)
			continue
		}
		o.down = true
		if n.down++; n.down == 1 {
			e.emit(Event{At: e.now, Kind: NodeDown, Node: ev.node, Why: reason(ev.cause)})
			completed = e.clear(ev.node, ev.cause, &o.next) || completed
			e.ledger.NodeDown(ev.node)
		}
		e.expect(o.next.Up, ev.node, ev.cause)
	}
}

// reason is the text of a cause in events, "" for a failure.
func reason(c cause) string {
	if c == failure {
		return ""
	}
	return c.String()
}

// clear takes the devices of a node from all jobs, in the order they entered: with notice for
// their checkpoint they keep their progress, without it they fail. It reports whether one of
// them was done.
func (e *engine) clear(node int, c cause, o *Outage) (completed bool) {
	var jobs []*job
	for _, j := range e.holding {
		if slices.ContainsFunc(j.state.Grant.Slots, func(s scheduler.Slot) bool { return s.Node == node }) {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.state.Order, b.state.Order) })
	for _, j := range jobs {
		grant := j.state.Grant
		j.advance(e.now)
		kind := Failed
		switch {
		case !o.saves(e.write(j, grant)):
			e.fail(j)
		case j.state.Done >= j.work:
			e.complete(j, j.ends)
			completed = true
			continue
		default:
			kind = Evicted
			e.evict(j)
		}
		if c == reclaim {
			e.result.Jobs[j.state.Order].Reclaims++
		}
		e.emit(Event{At: e.now, Kind: kind, Job: j.state.Job, Node: node, Grant: grant, Why: reason(c)})
	}
	return completed
}

// evict takes away the devices of j, advanced to now, which keeps its progress.
func (e *engine) evict(j *job) {
	if j.state.Done > j.kept {
		j.kept, e.idleOutages = j.state.Done, 0
	}
	r := &e.result.Jobs[j.state.Order]
	r.Preemptions++
	r.Evictions++
	j.state.Restarts++
	e.ledger.Lose(&j.state)
	e.drop(j)
}

// leaving returns the nodes that are known by now to go down.
func (e *engine) leaving() (out []scheduler.Leaving) {
	if e.Maintenance == nil && e.Spot == nil {
		return nil
	}
	for i := range e.nodes {
		n := &e.nodes[i]
		l := scheduler.Leaving{Node: i, At: never}
		for c := range n.causes {
			if o := &n.causes[c]; n.down == 0 && o.left && o.next.Notice > 0 && o.next.Down-o.next.Notice <= e.now && o.next.Down < l.At {
				l.At, l.Back = o.next.Down, o.next.Up
			}
		}
		if l.At < never {
			out = append(out, l)
		}
	}
	return out
}

// postpone removes the grants that start a waiting job on a node that leaves before the start
// cost is paid: the job would be stopped before it makes progress.
func (e *engine) postpone(s *scheduler.Snapshot, d *scheduler.Decision) {
	if len(s.Leaving) == 0 {
		return
	}
	d.Grants = slices.DeleteFunc(d.Grants, func(g *scheduler.Grant) bool {
		if g == nil || g.With != "" || e.byID[g.Job] == nil || e.byID[g.Job].state.Grant != nil {
			return false
		}
		ready := e.now + e.startCost(e.byID[g.Job], g, false)
		for _, slot := range g.Slots {
			if l := s.Leaves(slot.Node); l != nil && l.At <= ready && ready > e.now {
				d.Because(s, g.Job, "node %d goes down in %.0f s, before the start is done", slot.Node, (l.At - e.now).Seconds())
				return true
			}
		}
		return false
	})
}
