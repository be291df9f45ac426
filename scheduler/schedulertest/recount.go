package schedulertest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Recount computes the result of a run from its events and its inputs: devices held over
// time, the progress of each job, and the work lost to failures. It checks each event,
// and shares no code with the simulator.
type Recount struct {
	// The inputs of the run:
	Cluster spec.Cluster
	Jobs    []spec.Job
	Round   time.Duration // 0 = none
	Horizon time.Duration // 0 = none
	Every   time.Duration // training between checkpoints, 0 = none
	Speeds  sim.Speeds    // nil = all 1
	// Rate returns the steps/s of a job on a grant without a colocated job, at speed 1.
	Rate func(*spec.Job, *scheduler.Grant) float64
	// Beside returns the steps/s of a job on a grant that it shares with another;
	// nil = jobs may not share.
	Beside func(j *spec.Job, g *scheduler.Grant, other *spec.Job) float64
	// Away reports whether a node is down at a time by the tables that the run was given, and
	// whether outages begin then in which a job with a checkpoint that takes write keeps or
	// loses its progress; nil = no tables.
	Away func(node int, at, write time.Duration) (away, keeps, loses bool)
	// Quotas checks the jobs that are in the system at the same time; nil = no quotas.
	Quotas func(admitted []*spec.Job) error
	// Costs returns the parts of a job's start cost.
	Costs func(*spec.Job) sim.ModelCosts

	at    time.Duration
	seen  map[spec.JobID]*life
	order []*life // by first event
	down  map[int]bool
	usage []sim.Usage
	speed []func(time.Duration) (float64, time.Duration)
	err   error
}

// life is the history of one job.
type life struct {
	job    *spec.Job
	phase  string // held, waiting, holding, completed or rejected
	start  time.Duration
	end    time.Duration
	starts int

	grant *scheduler.Grant // held now
	since time.Duration
	paces []pace // segments of grant with different colocated jobs

	last     *scheduler.Grant // the previous grant
	failed   bool             // last ended in a failure
	done     float64          // steps
	attained float64
	lost     float64 // steps
	lostSec  float64 // device-seconds

	moved, stopped, failures, evicted int
}

// pace is a segment of a grant, with the job that shares its devices from a time on.
type pace struct {
	from  time.Duration
	grant *scheduler.Grant
	other *spec.Job // nil = none
}

// Observe checks and records an event, for sim.Config.Observe.
func (r *Recount) Observe(e sim.Event) {
	if r.seen == nil {
		r.seen, r.down = map[spec.JobID]*life{}, map[int]bool{}
	}
	if e.At < r.at {
		r.fail("%s at %v comes after %v: events are not in order", e.Kind, e.At, r.at)
	}
	if e.At > r.at {
		r.settle()
	}
	r.at = e.At
	switch e.Kind {
	case sim.NodeDown, sim.NodeUp:
		r.node(e)
	default:
		r.jobEvent(e)
	}
}

func (r *Recount) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at %v: "+format, append([]any{r.at}, args...)...)
	}
}

func (r *Recount) node(e sim.Event) {
	if e.Job != nil || e.Node < 0 || e.Node >= r.Cluster.Nodes() {
		r.fail("node %d goes %s", e.Node, e.Kind)
	}
	if r.down[e.Node] == (e.Kind == sim.NodeDown) {
		r.fail("node %d goes %s for the second time", e.Node, e.Kind)
	}
	r.down[e.Node] = e.Kind == sim.NodeDown
}

// allowed are the phases of a job before an event; "" = it had no event yet.
var allowed = map[sim.EventKind][]string{
	sim.Submitted: {"", "held"}, sim.Held: {"", "waiting"}, sim.Rejected: {"", "held"},
	sim.Started: {"waiting"}, sim.Moved: {"holding"}, sim.Stopped: {"holding"},
	sim.Completed: {"holding"}, sim.Failed: {"holding"}, sim.Evicted: {"holding"}, sim.Shared: {"holding"},
}

func (r *Recount) jobEvent(e sim.Event) {
	if e.Job == nil {
		r.fail("%s without a job", e.Kind)
		return
	}
	l := r.seen[e.Job.ID]
	if l == nil {
		l = &life{job: e.Job}
		r.seen[e.Job.ID] = l
		r.order = append(r.order, l)
	}
	if !slices.Contains(allowed[e.Kind], l.phase) {
		r.fail("job %s: %s after it was %q", e.Job.ID, e.Kind, l.phase)
		return
	}
	if e.At < e.Job.Submit {
		r.fail("job %s: %s before its submission at %v", e.Job.ID, e.Kind, e.Job.Submit)
	}
	if decided := e.Kind == sim.Started || e.Kind == sim.Moved || e.Kind == sim.Stopped; decided && r.Round > 0 && e.At%r.Round > 0 {
		r.fail("job %s: %s within a round of %v", e.Job.ID, e.Kind, r.Round)
	}
	r.apply(l, e)
}

// apply applies an event to the history of a job.
func (r *Recount) apply(l *life, e sim.Event) {
	if e.Kind == sim.Shared {
		if e.Grant == nil || !e.Grant.Stays(l.grant) || e.Grant.With == l.grant.With {
			r.fail("job %s continues with %v after %v", l.job.ID, e.Grant, l.grant)
			return
		}
		l.grant = e.Grant
		r.pace(l)
		return
	}
	if before := l.grant; before != nil {
		r.release(l, e)
		if e.Kind != sim.Moved && e.Grant != before {
			r.fail("job %s: %s, losing %v, but holds %v", e.Job.ID, e.Kind, e.Grant, before)
		}
	}
	switch e.Kind {
	case sim.Submitted:
		l.phase = "waiting"
	case sim.Held:
		l.phase = "held"
	case sim.Rejected:
		l.phase = "rejected"
	case sim.Stopped, sim.Failed, sim.Evicted:
		l.phase = "waiting"
	case sim.Completed:
		l.phase, l.end = "completed", e.At
	case sim.Started, sim.Moved:
		l.phase = "holding"
		r.grants(l, e.Grant)
	}
}

// grants checks a new grant, and makes l hold it.
func (r *Recount) grants(l *life, g *scheduler.Grant) {
	if l.starts++; l.starts == 1 {
		l.start = r.at
	}
	l.grant, l.since, l.paces = g, r.at, nil
	if g == nil || len(g.Slots) == 0 || g.Job != l.job.ID {
		r.fail("job %s is granted %v", l.job.ID, g)
		l.grant, l.phase = nil, "waiting"
		return
	}
	r.pace(l)
	var counts []int
	var held spec.Host
	workers, servers := 0, 0
	group := r.groupOf(g.Slots[0].Node)
	for i, s := range g.Slots {
		held, workers, servers = held.Plus(s.Host), workers+s.Workers, servers+s.Servers
		switch {
		case s.Devices < 0 || s.Workers < 0 || s.Servers < 0 || s.Devices+s.Workers+s.Servers == 0 || i > 0 && s.Node <= g.Slots[i-1].Node || r.groupOf(s.Node) != group || group == nil:
			r.fail("job %s is granted %v", l.job.ID, g.Slots)
		case r.down[s.Node]:
			r.fail("job %s is granted node %d, which is down", l.job.ID, s.Node)
		case !s.Host.Covers(needs(l.job, s)):
			r.fail("job %s is granted %v for %s, and needs %v", l.job.ID, s.Host, s.What(), needs(l.job, s))
		}
		counts = append(counts, s.Devices)
	}
	if needs := g.Shape.Host(); !held.Covers(needs) {
		r.fail("job %s is granted host resources %v for a shape with %v", l.job.ID, held, needs)
	}
	if l.job.Devices > 0 && workers > 0 || l.job.Devices == 0 && g.Shape.Total() > 0 {
		r.fail("job %s requests %d devices and is granted %v", l.job.ID, l.job.Devices, g.Slots)
	}
	if spec.NewShape(counts...).Devices != g.Shape.Devices || g.Plan.Devices() != g.Shape.Total()+workers || g.Plan.ParamServers != servers {
		r.fail("job %s is granted %v, plan %s on %s", l.job.ID, g.Slots, g.Plan, g.Shape)
	}
	if group != nil && l.job.Accelerator != "" && l.job.Accelerator != group.Accelerator.Name {
		r.fail("job %s requests %s and is granted %s", l.job.ID, l.job.Accelerator, group.Accelerator.Name)
	}
}

// needs returns the host resources that a job needs for a slot.
func needs(j *spec.Job, s scheduler.Slot) spec.Host {
	n, m := int64(s.Devices+s.Workers), int64(s.Servers)
	return spec.Host{
		MilliCPUs: n*j.Host.MilliCPUs + m*j.ServerHost.MilliCPUs,
		Bytes:     n*j.Host.Bytes + m*j.ServerHost.Bytes,
	}
}

// pace begins a segment of a job's grant with its present colocated job.
func (r *Recount) pace(l *life) {
	p := pace{from: r.at, grant: l.grant}
	for i := range r.Jobs {
		if r.Jobs[i].ID == l.grant.With {
			p.other = &r.Jobs[i]
		}
	}
	if (p.other == nil) != (l.grant.With == "") || p.other != nil && (r.Beside == nil || p.other.ID == l.job.ID) {
		r.fail("job %s shares devices with %q", l.job.ID, l.grant.With)
	}
	l.paces = append(l.paces, p)
}

// at returns the segment at a time, and its end.
func (l *life) at(t time.Duration) (p pace, until time.Duration) {
	until = math.MaxInt64
	for _, next := range l.paces {
		if next.from > t {
			return p, next.from
		}
		p = next
	}
	return p, until
}

// received returns the device-seconds of l in a part of its grant. Shared devices count
// half; a replica on CPUs counts as a device.
func (l *life) received(from, to time.Duration) (sum float64) {
	for t := from; t < to; {
		p, until := l.at(t)
		until = min(until, to)
		part := float64(l.grant.Plan.Devices()) * (until - t).Seconds()
		if p.other != nil {
			part /= 2
		}
		sum += part
		t = until
	}
	return sum
}

// groupOf returns the group of a node, nil if there is no such node.
func (r *Recount) groupOf(node int) *spec.NodeGroup {
	if i := r.Cluster.GroupOf(node); i >= 0 {
		return &r.Cluster.Groups[i]
	}
	return nil
}

// settle checks the devices held after all events of a time, and adds them to the usage.
func (r *Recount) settle() {
	used, milliCPUs, bytes := map[int]int{}, map[int]int64{}, map[int]int64{}
	now := sim.Usage{At: r.at}
	if err := r.quotas(); err != nil {
		r.fail("%w", err)
	}
	for _, l := range r.order {
		switch l.phase {
		case "held", "waiting":
			now.Waiting++
		case "holding":
			shared := r.shares(l)
			for _, s := range l.grant.Slots {
				milliCPUs[s.Node] += needs(l.job, s).MilliCPUs
				bytes[s.Node] += needs(l.job, s).Bytes
				used[s.Node] += 0
				if !shared || l.grant.Job < l.grant.With { // colocated jobs count once
					used[s.Node] += s.Devices
					now.Held += s.Devices
				}
				if r.down[s.Node] {
					r.fail("job %s holds devices of node %d, which is down", l.job.ID, s.Node)
				}
				if r.Away != nil {
					if away, _, _ := r.Away(s.Node, r.at, 0); away {
						r.fail("job %s holds devices of node %d, which is planned to be down", l.job.ID, s.Node)
					}
				}
			}
		}
	}
	for node, n := range used {
		switch g := r.groupOf(node); {
		case g == nil || n > g.Devices:
			r.fail("%d devices of node %d are held", n, node)
		case g.CPUs > 0 && milliCPUs[node] > 1000*int64(g.CPUs):
			r.fail("%g CPUs of node %d are held, it has %d", float64(milliCPUs[node])/1000, node, g.CPUs)
		case g.HostBytes > 0 && float64(bytes[node]) > g.HostBytes:
			r.fail("%d bytes of the host of node %d are held, it has %g", bytes[node], node, g.HostBytes)
		}
	}
	r.usage = append(r.usage, now)
}

// shares reports whether a job shares its devices, and checks that the other job shares
// the same devices with it.
func (r *Recount) shares(l *life) bool {
	with := l.grant.With
	if with == "" {
		return false
	}
	o := r.seen[with]
	if o == nil || o.phase != "holding" || o.grant.With != l.job.ID || len(o.grant.Slots) != len(l.grant.Slots) {
		r.fail("job %s shares devices with job %s, but not the reverse", l.job.ID, with)
		return false
	}
	for i, s := range o.grant.Slots {
		if s.Node != l.grant.Slots[i].Node || s.Devices != l.grant.Slots[i].Devices {
			r.fail("job %s shares %v with job %s, which shares %v", l.job.ID, l.grant.Slots, with, o.grant.Slots)
		}
	}
	return true
}

// release adds the progress of a job on its grant, which the event ends. At the end of
// a run the grant ends too.
func (r *Recount) release(l *life, e sim.Event) {
	g := l.grant
	l.attained += l.received(l.since, r.at)
	done, saved, savedAt := r.progress(l)
	tolerance := 1e-7*l.job.Steps + 1e-8*r.Rate(l.job, g)
	switch e.Kind {
	case sim.Completed:
		if work := r.work(l.job); math.Abs(done-work) > tolerance+1e-7*work {
			r.fail("job %s completes after %g of %g steps", l.job.ID, done, work)
		}
		l.done = done
	case sim.Failed:
		l.failures++
		l.lost += done - saved
		l.lostSec += l.received(savedAt, r.at)
		l.done = saved
		if r.Away != nil {
			if _, keeps, loses := r.Away(e.Node, r.at, r.Costs(l.job).Checkpoint); keeps && !loses {
				r.fail("job %s loses work with node %d, which gave notice", l.job.ID, e.Node)
			}
		}
		if !r.down[e.Node] || !slices.ContainsFunc(g.Slots, func(s scheduler.Slot) bool { return s.Node == e.Node }) {
			r.fail("job %s fails with node %d", l.job.ID, e.Node)
		}
	case sim.Moved:
		l.moved++
		l.done = done
	case sim.Stopped:
		l.stopped++
		l.done = done
	case sim.Evicted:
		l.stopped++
		l.evicted++
		l.done = done
		keeps := false
		if r.Away != nil {
			_, keeps, _ = r.Away(e.Node, r.at, r.Costs(l.job).Checkpoint)
		}
		if e.Node >= 0 && (!keeps || !r.down[e.Node]) || e.Node >= 0 && !slices.ContainsFunc(g.Slots, func(s scheduler.Slot) bool { return s.Node == e.Node }) {
			r.fail("job %s is evicted from node %d", l.job.ID, e.Node)
		}
	}
	l.last, l.failed, l.grant = g, e.Kind == sim.Failed, nil
}
