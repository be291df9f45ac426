package dl2

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/optimus"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

// Info is the registry entry of policy dl2.
var Info = policy.Info{
	Name:    "dl2",
	Doc:     "a network trained by reinforcement learning assigns devices to jobs in increments (Peng et al., DL2, TPDS 2021); resizes and preempts",
	Options: options,
	Reads:   []string{"model"},
	Servers: policy.ServesToo,
	New: func(d policy.Deps) (scheduler.Policy, error) {
		m, err := Read(d.Options["model"])
		if err != nil {
			return nil, err
		}
		return New(d, m.Form, Likeliest(m.Policy))
	},
}

var options = []policy.Option{
	{Name: "model", Default: "the one that comes with Pacer", Doc: "FILE written by pacer learn dl2; it also sets which models are known and how often the policy decides"},
}

// Likeliest returns a Chooser of the most probable allowed action of a network.
func Likeliest(net nn.Net) Chooser { return &likeliest{net: net} }

type likeliest struct {
	net     nn.Net
	scratch nn.Scratch
}

func (c *likeliest) Choose(v *View) (int, error) {
	best, z := v.Void, c.net.Infer(&c.scratch, v.State)
	for a, ok := range v.Allowed {
		if ok && z[a] > z[best] {
			best = a
		}
	}
	return best, nil
}

// New returns DL2 (sections 3 and 4) with actions from a chooser. Every slot starts from an
// empty cluster and assigns increments until the chooser picks the void action, or no action
// is allowed. Jobs beyond the columns of the state follow in batches by arrival. Then jobs
// without devices get their smallest size if it fits, so that no job waits while devices
// are free.
//
// For jobs with parameter servers an increment is a replica, a server or one of each. For
// others it leads to the next number of devices with a faster predicted plan. Jobs of models
// not in f.Types, or without a prediction, run as submitted and are placed first. Between
// two slots free devices go to waiting jobs in the same way.
func New(d policy.Deps, f Form, c Chooser) (scheduler.Policy, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	sizing, err := optimus.NewSizing(d.WithOptions(nil))
	if err != nil {
		return nil, err
	}
	if f.Servers != (d.Servers != nil) {
		with := map[bool]string{true: "with", false: "without"}
		return nil, fmt.Errorf("policy: dl2: the network was trained for jobs %s parameter servers, the workload is %s; pacer learn dl2 trains one: %w", with[f.Servers], with[!f.Servers], ErrOtherForm)
	}
	p := &dl2{form: f, chooser: c, sizing: sizing, speeds: paramserver.NewSpeeds(d), types: map[string]int{},
		slot: time.Duration(f.SlotSec * float64(time.Second)), last: -policy.Never}
	for i, name := range f.Types {
		p.types[name] = i
	}
	p.view = View{State: make([]float32, f.Inputs()), Allowed: make([]bool, f.Actions()), Void: f.Actions() - 1}
	return p, nil
}

type dl2 struct {
	form    Form
	chooser Chooser
	sizing  *optimus.Sizing
	speeds  *paramserver.Speeds
	types   map[string]int
	slot    time.Duration
	last    time.Duration // start of the present slot
	view    View
}

// Decide assigns increments in a new slot, or to waiting jobs between slots; see New.
func (p *dl2) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Wake: p.last + p.slot}
	newSlot := s.Now == p.last || s.Now >= p.last+p.slot
	if newSlot {
		p.last, d.Wake = s.Now, s.Now+p.slot
	} else if len(s.Waiting) == 0 {
		d.Keep = true
		return d, nil
	}
	if len(s.Jobs()) == 0 {
		d.Wake = 0
		return d, nil
	}
	if p.form.Servers {
		err := p.decidePS(ctx, s, newSlot, &d)
		return d, err
	}
	alloc, err := p.newAllocation(ctx, s, newSlot)
	if err != nil {
		return d, err
	}
	if err := p.assignBatches(s, alloc.seats, alloc.free); err != nil {
		return d, err
	}
	alloc.fill()
	alloc.grants(&d, s)
	return d, nil
}

// assignBatches assigns increments to batches of as many jobs as there are columns. free
// returns the free share of the cluster.
func (p *dl2) assignBatches(s *scheduler.Snapshot, seats []Seat, free func() float64) error {
	for len(seats) > 0 {
		n := min(len(seats), p.form.Jobs)
		if err := p.assign(s, seats[:n], free); err != nil {
			return err
		}
		seats = seats[n:]
	}
	return nil
}

// assign assigns increments to the jobs of some seats.
func (p *dl2) assign(s *scheduler.Snapshot, seats []Seat, free func() float64) error {
	v := &p.view
	v.Seats = seats
	for {
		if !p.setAllowed() {
			return nil
		}
		v.encode(&p.form, s.Now, free())
		a, err := p.chooser.Choose(v)
		if err != nil {
			return err
		}
		if a < 0 || a >= len(v.Allowed) || !v.Allowed[a] {
			return fmt.Errorf("policy: dl2: action %d is not allowed", a)
		}
		if a == v.Void {
			return nil
		}
		seat, kind := &seats[a/p.form.kinds()], a%p.form.kinds()
		seat.column.take(kind)
		for i := range seats {
			seats[i].column.show(&seats[i])
		}
	}
}

// setAllowed sets the allowed actions, and reports whether any but the void action is.
func (p *dl2) setAllowed() (any bool) {
	v := &p.view
	clear(v.Allowed)
	kinds := p.form.kinds()
	for i := range v.Seats {
		for k := range kinds {
			ok := v.Seats[i].column.allows(k)
			v.Allowed[i*kinds+k] = ok
			any = any || ok
		}
	}
	v.Allowed[v.Void] = true
	return any
}

// column is a job that can get increments.
type column interface {
	allows(kind int) bool
	take(kind int)
	show(s *Seat) // writes its present resources to s
}

// allocation is the state of a decision for jobs without parameter servers.
type allocation struct {
	*dl2
	idle    *scheduler.Inventory
	cluster *spec.Cluster
	left    []int // devices, by group
	all     int
	growers []*optimus.Grower // jobs that keep their grant or run as submitted
	seats   []Seat
	sized   []*sizedJob // of the seats
}

// newAllocation collects the jobs and the free devices.
func (p *dl2) newAllocation(ctx context.Context, s *scheduler.Snapshot, newSlot bool) (*allocation, error) {
	alloc := &allocation{dl2: p, idle: s.Idle(), cluster: &s.Cluster, left: make([]int, len(s.Cluster.Groups))}
	for gi := range alloc.left {
		alloc.left[gi] = alloc.idle.FreeIn(gi)
		alloc.all += alloc.left[gi]
	}
	var rigid []*scheduler.JobState
	for i, j := range s.Jobs() {
		sizes, err := p.sizesOf(ctx, s, j)
		switch {
		case err != nil:
			return nil, err
		case j.Grant != nil && (sizes == nil || !newSlot):
			alloc.left[alloc.idle.Group[j.Grant.Slots[0].Node]] -= j.Grant.Devices()
			alloc.growers = append(alloc.growers, &optimus.Grower{JobState: j, Keeps: true, Arrival: i, Group: -1})
		case sizes == nil:
			rigid = append(rigid, j)
		default:
			alloc.sized = append(alloc.sized, newSizedJob(alloc, j, sizes))
		}
	}
	for _, j := range rigid {
		if err := alloc.asSubmitted(ctx, s, j); err != nil {
			return nil, err
		}
	}
	alloc.seats = make([]Seat, len(alloc.sized))
	for i, r := range alloc.sized {
		alloc.seats[i] = Seat{Job: r.JobState, kind: p.types[r.Job.Model.Name], least: r.least, column: r, heldW: r.Grant.Devices()}
		r.show(&alloc.seats[i])
	}
	return alloc, nil
}

// sizesOf returns the sizes of j by group, nil if it runs as submitted.
func (p *dl2) sizesOf(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) ([][]optimus.Size, error) {
	if _, known := p.types[j.Job.Model.Name]; !known {
		return nil, nil
	}
	cv, err := p.sizing.Finder.Curve(ctx, s.Cluster, j.Job)
	if err != nil || len(cv.Configs) == 0 {
		return nil, err
	}
	return p.sizing.Sizes(cv, &s.Cluster), nil
}

// asSubmitted assigns j its submitted number of devices if enough are left.
func (alloc *allocation) asSubmitted(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) error {
	w, err := alloc.sizing.Finder.AsSubmitted(ctx, s.Cluster, j.Job)
	if err != nil {
		return err
	}
	if gi := candidate.GroupOfSubmitted(j, s.Cluster.Groups, alloc.idle.Group, alloc.left); gi >= 0 {
		alloc.left[gi] -= j.Job.Devices
		alloc.growers = append(alloc.growers, &optimus.Grower{JobState: j, Group: gi, Candidates: w})
	}
	return nil
}

// free returns the share of the devices that are left.
func (alloc *allocation) free() float64 {
	left := 0
	for _, n := range alloc.left {
		left += n
	}
	return float64(left) / float64(max(alloc.all, 1))
}

// fill gives jobs without devices their smallest size.
func (alloc *allocation) fill() {
	for _, r := range alloc.sized {
		if r.at < 0 && r.allows(0) {
			r.take(0)
		}
	}
}

// grants places all jobs and adds the reasons.
func (alloc *allocation) grants(d *scheduler.Decision, s *scheduler.Snapshot) {
	growers := alloc.growers
	for _, r := range alloc.sized {
		if r.at >= 0 {
			growers = append(growers, &optimus.Grower{JobState: r.JobState, Group: r.group, Sizes: r.sizes[r.group], At: r.at})
		}
	}
	alloc.sizing.Place(growers, alloc.idle, *alloc.cluster)
	for _, g := range growers {
		alloc.explain(d, s, g)
		if g.Granted == nil {
			continue
		}
		d.Grants = append(d.Grants, g.Granted)
		if g.Candidates == nil {
			continue
		}
		if g.Candidates.Warning != "" {
			d.Warnings = append(d.Warnings, g.Candidates.Warning)
		}
		if _, known := alloc.types[g.Job.Model.Name]; !known && !g.Candidates.Blind {
			d.Warnings = append(d.Warnings, alloc.unknownModel(g.Job.Model.Name, "run as submitted"))
		}
	}
	for _, r := range alloc.sized {
		if r.at < 0 {
			d.Because(s, r.Job.ID, "the network prefers other jobs")
		}
	}
}

// unknownModel returns a warning about jobs of models that the network was not trained for.
func (p *dl2) unknownModel(name, consequence string) string {
	return fmt.Sprintf("dl2 was not trained for %s, such jobs %s; pacer learn dl2 trains a policy for the models of a workload", name, consequence)
}

func (alloc *allocation) explain(d *scheduler.Decision, s *scheduler.Snapshot, g *optimus.Grower) {
	switch {
	case !s.Reasons:
	case g.Granted == nil:
		d.Because(s, g.Job.ID, "size %d was chosen, but the free devices are too fragmented", g.Devices())
	case g.Granted.Same(g.Grant):
	case g.Candidates != nil:
		d.Because(s, g.Job.ID, "runs as submitted: the network was not trained for its model")
	default:
		d.Because(s, g.Job.ID, "size %d by the network's preferences", g.Granted.Devices())
	}
}
