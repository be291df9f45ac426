package policy

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/nn"
)

func init() {
	register(Info{
		Name: "dl2",
		Doc:  "a trained network gives devices, one after the other, to whom it was rewarded for (Peng et al., DL2, TPDS 2021); resizes and preempts",
		Options: []Option{
			{Name: "model", Default: "the one that comes with Pacer", Doc: "FILE of pacer learn dl2: which models it knows, and how often it decides"},
		},
		Reads:   []string{"model"},
		Servers: ServesToo,
		New: func(d Deps) (scheduler.Policy, error) {
			m, err := ReadDL2(d.Options["model"])
			if err != nil {
				return nil, err
			}
			return NewDL2(d, m.DL2Form, Likeliest(m.Policy))
		},
	})
}

// Likeliest returns what chooses the action that a network prefers.
func Likeliest(net nn.Net) DL2Chooser { return &likeliest{net: net} }

type likeliest struct {
	net     nn.Net
	scratch nn.Scratch
}

func (c *likeliest) Choose(v *DL2View) (int, error) {
	best, z := v.Void, c.net.Infer(&c.scratch, v.State)
	for a, ok := range v.Allowed {
		if ok && z[a] > z[best] {
			best = a
		}
	}
	return best, nil
}

// NewDL2 returns the policy that decides as DL2 does (sections 3 and 4) by asking a
// chooser. In every slot all jobs are given devices from nothing: one increment after
// the other, until the chooser ends it, or nobody can be given more. Jobs beyond the
// columns of the state come after that, in batches by arrival; then those that hold
// nothing get the least they can have while there is room, so that no job waits for
// ever beside free devices.
//
// Of jobs with parameter servers an increment is a replica, a server or both; else it
// is to the next number of devices on which
// the job's best believed plan is faster. Jobs of other models than f.Types, or of
// which nothing is believed, run as submitted, in their turn and before all others.
// Between two slots devices that are free go to jobs that wait, in the same way.
func NewDL2(d Deps, f DL2Form, c DL2Chooser) (scheduler.Policy, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	sizing, err := newAnyOptimus(d)
	if err != nil {
		return nil, err
	}
	if f.Servers != (d.Servers != nil) {
		with := map[bool]string{true: "with", false: "without"}
		return nil, fmt.Errorf("policy: dl2: it was trained for jobs %s parameter servers, these are jobs %s: pacer learn dl2 trains one for them: %w", with[f.Servers], with[!f.Servers], ErrOtherForm)
	}
	p := &dl2{form: f, chooser: c, sizing: sizing, served: newServedBelief(d), types: map[string]int{},
		slot: time.Duration(f.SlotSec * float64(time.Second)), last: -never}
	for i, name := range f.Types {
		p.types[name] = i
	}
	p.view = DL2View{State: make([]float32, f.Inputs()), Allowed: make([]bool, f.Actions()), Void: f.Actions() - 1}
	return p, nil
}

type dl2 struct {
	form    DL2Form
	chooser DL2Chooser
	sizing  *optimus
	served  *servedBelief
	types   map[string]int
	slot    time.Duration
	last    time.Duration // when a slot began
	view    DL2View
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
		return d, p.decideServed(ctx, s, anew, &d)
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
func (p *dl2) dealBatches(s *scheduler.Snapshot, seats []DL2Seat, free func() float64) error {
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
func (p *dl2) deal(s *scheduler.Snapshot, seats []DL2Seat, free func() float64) error {
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
	show(s *DL2Seat) // what it has now
}

// dl2Deal is what is given away in a decision.
type dl2Deal struct {
	*dl2
	idle    *scheduler.Inventory
	cluster *spec.Cluster
	left    []int // devices, by group
	all     int
	growers []*grower // who keeps what it holds, or runs as submitted
	seats   []DL2Seat
	ringers []*ringer // of the seats
}

// open finds out who is to be given something, and what there is.
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
			deal.growers = append(deal.growers, &grower{JobState: j, keeps: true, arrival: i, group: -1})
		case sizes == nil:
			rigid = append(rigid, j)
		default:
			deal.ringers = append(deal.ringers, newRinger(deal, j, sizes))
		}
	}
	for _, j := range rigid {
		if err := deal.asSubmitted(ctx, s, j); err != nil {
			return nil, err
		}
	}
	deal.seats = make([]DL2Seat, len(deal.ringers))
	for i, r := range deal.ringers {
		deal.seats[i] = DL2Seat{Job: r.JobState, kind: p.types[r.Job.Model.Name], least: r.least, column: r, heldW: r.Grant.Devices()}
		r.show(&deal.seats[i])
	}
	return deal, nil
}

// sizesOf returns on what j can run, by group; nil of jobs that run as submitted.
func (p *dl2) sizesOf(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) ([][]size, error) {
	if _, known := p.types[j.Job.Model.Name]; !known {
		return nil, nil
	}
	cv, err := p.sizing.belief.curve(ctx, s.Cluster, j.Job)
	if err != nil || len(cv.options) == 0 {
		return nil, err
	}
	return p.sizing.sizes(j.Job, cv, &s.Cluster), nil
}

// asSubmitted gives j the devices it was submitted with, if they are left.
func (deal *dl2Deal) asSubmitted(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) error {
	w, err := deal.sizing.belief.asSubmitted(ctx, s.Cluster, j.Job)
	if err != nil {
		return err
	}
	if gi := deal.sizing.rigid(s, j, deal.idle.Group, deal.left); gi >= 0 {
		deal.left[gi] -= j.Job.Devices
		deal.growers = append(deal.growers, &grower{JobState: j, group: gi, ways: w})
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

// fill gives those who have nothing the least they can have.
func (deal *dl2Deal) fill() {
	for _, r := range deal.ringers {
		if r.at < 0 && r.allows(0) {
			r.take(0)
		}
	}
}

// grants finds devices for everybody, and says why.
func (deal *dl2Deal) grants(d *scheduler.Decision, s *scheduler.Snapshot) {
	growers := deal.growers
	for _, r := range deal.ringers {
		if r.at >= 0 {
			growers = append(growers, &grower{JobState: r.JobState, group: r.group, sizes: r.sizes[r.group], at: r.at})
		}
	}
	deal.sizing.place(growers, deal.idle, *deal.cluster)
	for _, g := range growers {
		deal.explain(d, s, g)
		if g.grant == nil {
			continue
		}
		d.Grants = append(d.Grants, g.grant)
		if g.ways == nil {
			continue
		}
		if g.ways.warning != "" {
			d.Warnings = append(d.Warnings, g.ways.warning)
		}
		if _, known := deal.types[g.Job.Model.Name]; !known && !g.ways.blind {
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

func (deal *dl2Deal) explain(d *scheduler.Decision, s *scheduler.Snapshot, g *grower) {
	switch {
	case !s.Reasons:
	case g.grant == nil:
		d.Because(s, g.Job.ID, "size %d is meant for it, and finds no room together", g.devices())
	case g.grant.Same(g.Grant):
	case g.ways != nil:
		d.Because(s, g.Job.ID, "as submitted: no model the network knows")
	default:
		d.Because(s, g.Job.ID, "size %d by the network's preferences", g.grant.Devices())
	}
}

// ringer is a job that is given devices one size after the other.
type ringer struct {
	*scheduler.JobState
	deal  *dl2Deal
	sizes [][]size // by group
	home  int      // group it runs in, -1 = none
	least float64  // believed seconds of a step on the least it can have
	worth float64  // share of its group that a device takes, in shares of devices
	group int      // of what it has
	at    int      // of the group's sizes, -1 = nothing
	next  int      // the next of them on which it is faster, -1 = there is none
}

func newRinger(deal *dl2Deal, j *scheduler.JobState, sizes [][]size) *ringer {
	r := &ringer{JobState: j, deal: deal, sizes: sizes, home: -1, least: math.Inf(1), at: -1, worth: 1}
	if j.Grant != nil {
		r.home = deal.idle.Group[j.Grant.Slots[0].Node]
	}
	for _, s := range sizes {
		if len(s) > 0 {
			r.least = min(r.least, s[0].sec)
		}
	}
	return r
}

// first returns the group in which r is given its first devices: that where it runs,
// or else the one where the fewest run it fastest; -1 if they are not left.
func (r *ringer) first() int {
	best := -1
	for gi, s := range r.sizes {
		switch {
		case len(s) == 0 || s[0].devices > r.deal.left[gi]:
		case gi == r.home:
			return gi
		case best < 0 || s[0].sec < r.sizes[best][0].sec:
			best = gi
		}
	}
	return best
}

func (r *ringer) allows(int) bool {
	if r.at < 0 {
		return r.first() >= 0
	}
	s := r.sizes[r.group]
	return r.next >= 0 && s[r.next].devices-s[r.at].devices <= r.deal.left[r.group]
}

func (r *ringer) take(int) {
	if r.at < 0 {
		r.group, r.next = r.first(), 0
		r.worth = dominantShare(&r.deal.cluster.Groups[r.group], r.Job.Host)
	}
	s := r.sizes[r.group]
	r.deal.left[r.group] -= s[r.next].devices - r.devices()
	r.at = r.next
	r.next = slices.IndexFunc(s[r.at:], func(o size) bool { return o.sec < s[r.at].sec })
	if r.next >= 0 {
		r.next += r.at
	}
}

// devices returns how many r has.
func (r *ringer) devices() int {
	if r.at < 0 {
		return 0
	}
	return r.sizes[r.group][r.at].devices
}

func (r *ringer) show(s *DL2Seat) {
	s.Workers, s.Next, s.sec, s.gains = r.devices(), 0, 0, [3]float64{}
	s.share = r.worth * float64(s.Workers) / float64(r.deal.all)
	more := r.allows(0)
	switch {
	case r.at >= 0:
		sizes := r.sizes[r.group]
		if s.sec = sizes[r.at].sec; more {
			s.Next, s.gains[0] = sizes[r.next].devices, math.Log(s.sec/sizes[r.next].sec)
		}
	case more:
		s.Next, s.gains[0] = r.sizes[r.first()][0].devices, 1
	}
}

// namedStream returns the random stream of a name.
func namedStream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
