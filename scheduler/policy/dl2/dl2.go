package dl2

import (
	"context"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/nn"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/optimus"
	"github.com/pacer-ml/pacer/scheduler/policy/paramserver"
)

var Info = policy.Info{
	Name:    "dl2",
	Doc:     "a network trained by reinforcement gives devices to jobs one after the other (Peng et al., DL2, TPDS 2021); resizes and preempts",
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

// Likeliest returns what chooses the action that a network prefers.
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

// New returns the policy that decides as DL2 does (sections 3 and 4) by asking a
// chooser. In every slot all jobs are given devices from nothing: one increment after
// the other, until the chooser ends it, or no job can be given more. Jobs beyond the
// columns of the state come after that, in batches by arrival; then those that hold
// nothing get the least they can have while there is room, so that no job waits for
// ever beside free devices.
//
// Of jobs with parameter servers an increment is a replica, a server or both; else it
// is to the next number of devices on which
// the job's best believed plan is faster. Jobs of other models than f.Types, or of
// which nothing is believed, run as submitted, in their turn and before all others.
// Between two slots devices that are free go to jobs that wait, in the same way.
func New(d policy.Deps, f Form, c Chooser) (scheduler.Policy, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	sizing, err := optimus.NewSizing(d)
	if err != nil {
		return nil, err
	}
	if f.Servers != (d.Servers != nil) {
		with := map[bool]string{true: "with", false: "without"}
		return nil, fmt.Errorf("policy: dl2: it was trained for jobs %s parameter servers, these are jobs %s: pacer learn dl2 trains one for them: %w", with[f.Servers], with[!f.Servers], ErrOtherForm)
	}
	p := &dl2{form: f, chooser: c, sizing: sizing, served: paramserver.NewSpeeds(d), types: map[string]int{},
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
	served  *paramserver.Speeds
	types   map[string]int
	slot    time.Duration
	last    time.Duration // when a slot began
	view    View
}

func (p *dl2) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	d := scheduler.Decision{Wake: p.last + p.slot}
	anew := s.Now == p.last || s.Now >= p.last+p.slot
	if anew {
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
		return d, p.decidePS(ctx, s, anew, &d)
	}
	deal, err := p.open(ctx, s, anew)
	if err != nil {
		return d, err
	}
	if err := p.dealBatches(s, deal.seats, deal.free); err != nil {
		return d, err
	}
	deal.fill()
	deal.grants(&d, s)
	return d, nil
}

// dealBatches gives away what there is to as many jobs at a time as there are columns.
// free returns the share that is left.
func (p *dl2) dealBatches(s *scheduler.Snapshot, seats []Seat, free func() float64) error {
	for len(seats) > 0 {
		n := min(len(seats), p.form.Jobs)
		if err := p.deal(s, seats[:n], free); err != nil {
			return err
		}
		seats = seats[n:]
	}
	return nil
}

// deal gives away what there is to the jobs of some seats.
func (p *dl2) deal(s *scheduler.Snapshot, seats []Seat, free func() float64) error {
	v := &p.view
	v.Seats = seats
	for {
		if !p.permit() {
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

// permit works out which actions are allowed, and reports whether there is one but
// to end the slot.
func (p *dl2) permit() (any bool) {
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

// dl2Column is what a job can be given.
type dl2Column interface {
	allows(kind int) bool
	take(kind int)
	show(s *Seat) // what it has now
}

// dl2Deal is what is given away in a decision.
type dl2Deal struct {
	*dl2
	idle    *scheduler.Inventory
	cluster *spec.Cluster
	left    []int // devices, by group
	all     int
	growers []*optimus.Grower // jobs that keep what they hold, or run as submitted
	seats   []Seat
	ringers []*sizedJob // of the seats
}

// open collects the jobs that are given devices, and the devices there are.
func (p *dl2) open(ctx context.Context, s *scheduler.Snapshot, anew bool) (*dl2Deal, error) {
	deal := &dl2Deal{dl2: p, idle: s.Idle(), cluster: &s.Cluster, left: make([]int, len(s.Cluster.Groups))}
	for gi := range deal.left {
		deal.left[gi] = deal.idle.FreeIn(gi)
		deal.all += deal.left[gi]
	}
	var rigid []*scheduler.JobState
	for i, j := range s.Jobs() {
		sizes, err := p.sizesOf(ctx, s, j)
		switch {
		case err != nil:
			return nil, err
		case j.Grant != nil && (sizes == nil || !anew):
			deal.left[deal.idle.Group[j.Grant.Slots[0].Node]] -= j.Grant.Devices()
			deal.growers = append(deal.growers, &optimus.Grower{JobState: j, Keeps: true, Arrival: i, Group: -1})
		case sizes == nil:
			rigid = append(rigid, j)
		default:
			deal.ringers = append(deal.ringers, newSizedJob(deal, j, sizes))
		}
	}
	for _, j := range rigid {
		if err := deal.asSubmitted(ctx, s, j); err != nil {
			return nil, err
		}
	}
	deal.seats = make([]Seat, len(deal.ringers))
	for i, r := range deal.ringers {
		deal.seats[i] = Seat{Job: r.JobState, kind: p.types[r.Job.Model.Name], least: r.least, column: r, heldW: r.Grant.Devices()}
		r.show(&deal.seats[i])
	}
	return deal, nil
}

// sizesOf returns on what j can run, by group; nil of jobs that run as submitted.
func (p *dl2) sizesOf(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) ([][]optimus.Size, error) {
	if _, known := p.types[j.Job.Model.Name]; !known {
		return nil, nil
	}
	cv, err := p.sizing.Belief.Curve(ctx, s.Cluster, j.Job)
	if err != nil || len(cv.Configs) == 0 {
		return nil, err
	}
	return p.sizing.Sizes(j.Job, cv, &s.Cluster), nil
}

// asSubmitted gives j the devices it was submitted with, if they are left.
func (deal *dl2Deal) asSubmitted(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) error {
	w, err := deal.sizing.Belief.AsSubmitted(ctx, s.Cluster, j.Job)
	if err != nil {
		return err
	}
	if gi := deal.sizing.GroupOfSubmitted(s, j, deal.idle.Group, deal.left); gi >= 0 {
		deal.left[gi] -= j.Job.Devices
		deal.growers = append(deal.growers, &optimus.Grower{JobState: j, Group: gi, Candidates: w})
	}
	return nil
}

// free returns the share of the devices that are left.
func (deal *dl2Deal) free() float64 {
	left := 0
	for _, n := range deal.left {
		left += n
	}
	return float64(left) / float64(max(deal.all, 1))
}

// fill gives jobs without devices the least they can have.
func (deal *dl2Deal) fill() {
	for _, r := range deal.ringers {
		if r.at < 0 && r.allows(0) {
			r.take(0)
		}
	}
}

// grants finds devices for all jobs, and gives the reasons.
func (deal *dl2Deal) grants(d *scheduler.Decision, s *scheduler.Snapshot) {
	growers := deal.growers
	for _, r := range deal.ringers {
		if r.at >= 0 {
			growers = append(growers, &optimus.Grower{JobState: r.JobState, Group: r.group, Sizes: r.sizes[r.group], At: r.at})
		}
	}
	deal.sizing.Place(growers, deal.idle, *deal.cluster)
	for _, g := range growers {
		deal.explain(d, s, g)
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
		if _, known := deal.types[g.Job.Model.Name]; !known && !g.Candidates.Blind {
			d.Warnings = append(d.Warnings, deal.unknownModel(g.Job.Model.Name, "run as submitted"))
		}
	}
	for _, r := range deal.ringers {
		if r.at < 0 {
			d.Because(s, r.Job.ID, "the network gives the devices to others first")
		}
	}
}

// unknownModel says what becomes of jobs of other models.
func (p *dl2) unknownModel(name, fate string) string {
	return fmt.Sprintf("%s is none of the models that dl2 was trained for, such jobs %s; pacer learn dl2 trains a policy for the models of a workload", name, fate)
}

func (deal *dl2Deal) explain(d *scheduler.Decision, s *scheduler.Snapshot, g *optimus.Grower) {
	switch {
	case !s.Reasons:
	case g.Granted == nil:
		d.Because(s, g.Job.ID, "size %d is meant for it, and finds no room together", g.Devices())
	case g.Granted.Same(g.Grant):
	case g.Candidates != nil:
		d.Because(s, g.Job.ID, "as submitted: no model the network knows")
	default:
		d.Because(s, g.Job.ID, "size %d by the network's preferences", g.Granted.Devices())
	}
}
