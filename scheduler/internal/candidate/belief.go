package candidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Config is one way to run a job: a plan on a shape in a group of nodes.
type Config struct {
	Group   int
	Plan    spec.Plan
	Shape   spec.Shape
	Devices int
	Host    spec.Host // that each device takes, where it is more than the job needs
	Load    float64   // devices that what it takes comes to: the largest of its shares of the group
	Rate    float64   // believed steps/s, 0 = nothing is believed
	Spread  float64   // half the width of the 90 % interval of its logarithm, 0 = none given
}

// Set are the ways to run one kind of job, fastest believed first.
type Set struct {
	Configs []Config
	Warning string // what a user should know about them, "" if nothing
	Blind   bool   // nothing is known: the job's own plan on whatever layout the placer makes

	revision int // belief.revision then
}

// Of returns the way that g, in a group, runs; nil if it is none of them.
func (w *Set) Of(g *scheduler.Grant, group int) *Config {
	i := slices.IndexFunc(w.Configs, func(o Config) bool {
		return o.Group == group && o.Plan == g.Plan && o.Shape.Devices == g.Shape.Devices
	})
	if i < 0 {
		return nil
	}
	return &w.Configs[i]
}

// Belief is what the oracle says, put so that policies can compare it. It is
// asked once per kind of job, and again when it has learnt something about it.
type Belief struct {
	Oracle scheduler.Oracle  // may be nil
	Learns scheduler.Learner // the oracle, nil if its answers do not change during a run
	placer scheduler.Placer
	Cpus   bool               // curves tell what CPUs are worth to plans that offload
	speeds map[string]float64 // Deps.Speeds
	order  []int              // groups, fastest first by speeds; nil = not known yet

	submitted map[SubmittedKey]*Set
	curves    map[CurveKey]*Curve
}

// Kind is what two jobs share that run alike on equal devices.
type Kind struct {
	model      spec.Model
	seq, batch int
	host       spec.Host // what each device needs says where they can be
}

type SubmittedKey struct {
	Kind
	plan        spec.Plan
	devices     int
	accelerator string
}

func NewBelief(d policy.Deps) *Belief {
	b := &Belief{Oracle: d.Oracle, placer: d.Placer, speeds: d.Speeds,
		submitted: map[SubmittedKey]*Set{}, curves: map[CurveKey]*Curve{}}
	b.Learns, _ = d.Oracle.(scheduler.Learner)
	if b.placer == nil {
		b.placer, _ = place.Lookup("") // the default exists
	}
	return b
}

// Revision tells how often has changed what is believed of j on the groups of c.
func (b *Belief) Revision(c spec.Cluster, j *spec.Job) (n int) {
	if b.Learns == nil {
		return 0
	}
	for i := range c.Groups {
		n += b.Learns.Revision(spec.Key{Model: j.Model.Name, Accelerator: c.Groups[i].Accelerator.Name})
	}
	return n
}

// KeyOf returns the key of jobs submitted as j is.
func KeyOf(j *spec.Job) SubmittedKey {
	return SubmittedKey{KindOf(j), j.Plan, j.Devices, j.Accelerator}
}

func KindOf(j *spec.Job) Kind { return Kind{j.Model, j.SeqLen, j.Batch(), j.Host} }

// RequestFor asks how to run j on devices of group.
func RequestFor(j *spec.Job, g *spec.NodeGroup, devices int) planner.Request {
	return planner.Request{
		Model: j.Model, SeqLen: j.SeqLen, GlobalBatch: j.Batch(), Precision: j.Plan.Precision,
		Accelerator: g.Accelerator, Link: g.Link, Devices: devices, PerNode: g.Devices, NodeHostBytes: g.HostBytes,
	}
}

// AsSubmitted returns the ways to run j with its own plan and device count, on
// any group it accepts. If the oracle allows its plan nowhere at that count,
// they are those of the best plans it allows there. If it knows nothing of such
// jobs, the ways are blind.
func (b *Belief) AsSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job) (*Set, error) {
	key := KeyOf(j)
	revision := b.Revision(c, j)
	if w, ok := b.submitted[key]; ok && w.revision == revision {
		return w, nil
	}
	w, err := b.findSubmitted(ctx, c, j)
	if err != nil {
		return nil, err
	}
	w.revision = revision
	b.submitted[key] = w
	return w, nil
}

func (b *Belief) findSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job) (*Set, error) {
	w := &Set{}
	if j.Plan != (spec.Plan{}) {
		own := j.Plan
		if err := b.rank(ctx, c, j, &own, w); err != nil || len(w.Configs) > 0 {
			return w, err
		}
	}
	if err := b.rank(ctx, c, j, nil, w); err != nil {
		return w, err
	}
	switch {
	case len(w.Configs) == 0:
		w.Blind = true
		if b.Oracle != nil {
			w.Warning = fmt.Sprintf("%s on %s: no prediction, such jobs run as submitted", j.Model.Name, spec.Count(j.Devices, "device"))
		}
	case j.Plan != (spec.Plan{}):
		w.Warning = fmt.Sprintf("%s on %s: plan %s is not among those allowed there, the best believed one is used",
			j.Model.Name, spec.Count(j.Devices, "device"), j.Plan)
	}
	return w, nil
}

// rank appends the ways to run j at its device count, with one plan or any.
func (b *Belief) rank(ctx context.Context, c spec.Cluster, j *spec.Job, plan *spec.Plan, w *Set) error {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !Accepts(j, g) || g.MostDevices(j.Host) < j.Devices {
			continue
		}
		r := RequestFor(j, g, j.Devices)
		if r.Plan = plan; plan != nil {
			r.GlobalBatch = plan.GlobalBatch() // that of a job can be one that its plan only comes close to
		}
		options, err := b.Ask(ctx, gi, g, r, j.Host, AnyPlan)
		if err != nil {
			return err
		}
		w.Configs = append(w.Configs, options...)
	}
	slices.SortStableFunc(w.Configs, func(a, b Config) int { return cmp.Compare(b.Rate, a.Rate) })
	return nil
}

func AnyPlan(spec.Plan) bool { return true }

// Ask returns the choices of r that fit in memory and on the nodes of g, where each
// device needs so much of the host, as options, the best allowed plan of each shape only, fastest first. That the oracle has
// no plan or no opinion is no error.
func (b *Belief) Ask(ctx context.Context, group int, g *spec.NodeGroup, r planner.Request, need spec.Host, allowed func(spec.Plan) bool) ([]Config, error) {
	if b.Oracle == nil || r.GlobalBatch < 1 {
		return nil, nil
	}
	ranking, err := b.Oracle.Rank(ctx, r)
	if errors.Is(err, planner.ErrInfeasible) || errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %s on %s: %w", r.Model.Name, spec.Count(r.Devices, "device"), err)
	}
	var out []Config
	seen := map[spec.Shape]bool{}
	for i := range ranking.Choices {
		c := &ranking.Choices[i]
		host := taken(&c.Config, g)
		if c.Config.Shape.Most() > g.Room(need.Max(host)) || c.Config.Shape.Nodes() > g.Count {
			continue
		}
		if !c.Fits || seen[c.Config.Shape] || !(c.Prediction.Throughput > 0) || !allowed(c.Config.Plan) {
			continue
		}
		seen[c.Config.Shape] = true
		out = append(out, Config{
			Group: group, Plan: c.Config.Plan, Shape: c.Config.Shape, Devices: c.Config.Shape.Total(), Host: host, Load: loadOf(c.Config.Shape.Total(), need.Max(host), g),
			Rate: c.Prediction.Throughput / float64(c.Config.Plan.GlobalBatch()), Spread: spread(c.Prediction),
		})
	}
	return b.choose(out), nil
}

// spread returns half the width of p's interval on a logarithmic scale, 0 if it has
// none.
func spread(p spec.Prediction) float64 {
	if !(p.Lo > 0 && p.Hi > p.Lo) || math.IsInf(p.Hi, 0) {
		return 0
	}
	return math.Log(p.Hi/p.Lo) / 2
}

// choose leaves out the options that the placer rules out.
func (b *Belief) choose(options []Config) []Config {
	chooser, ok := b.placer.(scheduler.Chooser)
	if !ok || len(options) == 0 {
		return options
	}
	var all []scheduler.Candidate
	for i := range options {
		o := &options[i]
		all = append(all, scheduler.Candidate{Group: o.Group, Plan: o.Plan, Shape: o.Shape, Rate: o.Rate})
	}
	kept := map[scheduler.Candidate]bool{}
	for _, w := range chooser.Choose(all) {
		kept[w] = true
	}
	var out []Config
	for i, w := range all {
		if kept[w] {
			out = append(out, options[i])
		}
	}
	return out
}

// Place returns a grant of the first of w's options that fits into free, nil if
// none does.
func (b *Belief) Place(free *scheduler.Inventory, c spec.Cluster, j *spec.Job, w *Set) *scheduler.Grant {
	if w.Blind {
		return b.PlaceBlind(free, c, j)
	}
	for i := range w.Configs {
		if g := b.PlaceOption(free, j, &w.Configs[i]); g != nil {
			return g
		}
	}
	return nil
}

func (b *Belief) PlaceOption(free *scheduler.Inventory, j *spec.Job, o *Config) *scheduler.Grant {
	if free.FreeIn(o.Group) < o.Devices {
		return nil
	}
	slots, ok := b.Find(free, j, o)
	if !ok {
		return nil
	}
	return &scheduler.Grant{Job: j.ID, Plan: o.Plan, Shape: o.Shape, Slots: slots}
}

// Find returns free devices for o, with what j needs of the host for them, or what
// o takes where that is more.
func (b *Belief) Find(free *scheduler.Inventory, j *spec.Job, o *Config) ([]scheduler.Slot, bool) {
	need := j.Host.Max(o.Host)
	slots, ok := b.placer.Place(free.For(o.Group, need), o.Group, o.Shape)
	if need != (spec.Host{}) {
		for i := range slots {
			slots[i].Host = need.Times(slots[i].Devices)
		}
	}
	return slots, ok
}

// Lay returns the shape that devices for j would take.
func (b *Belief) Lay(free *scheduler.Inventory, group int, j *spec.Job, devices int) (spec.Shape, bool) {
	return b.placer.Lay(free.For(group, j.Host), group, devices)
}

// bySpeed returns the groups, the ones believed faster first.
func (b *Belief) bySpeed(c spec.Cluster) []int {
	if b.order == nil {
		speed := func(gi int) float64 {
			if v, ok := b.speeds[c.Groups[gi].Accelerator.Name]; ok {
				return v
			}
			return 1
		}
		for gi := range c.Groups {
			b.order = append(b.order, gi)
		}
		slices.SortStableFunc(b.order, func(x, y int) int { return cmp.Compare(speed(y), speed(x)) })
	}
	return b.order
}

// PlaceBlind places a job nothing is known about on the fastest group it accepts
// that has room, the first of equals.
func (b *Belief) PlaceBlind(free *scheduler.Inventory, c spec.Cluster, j *spec.Job) *scheduler.Grant {
	for _, gi := range b.bySpeed(c) {
		if !Accepts(j, &c.Groups[gi]) {
			continue
		}
		if g := b.PlaceBlindIn(free, gi, j); g != nil {
			return g
		}
	}
	return nil
}

func (b *Belief) PlaceBlindIn(free *scheduler.Inventory, group int, j *spec.Job) *scheduler.Grant {
	shape, ok := b.Lay(free, group, j, j.Devices)
	if !ok {
		return nil
	}
	return b.PlaceOption(free, j, &Config{Group: group, Plan: OwnPlan(j), Shape: shape, Devices: j.Devices})
}

// PlaceIn is place in one group.
func (b *Belief) PlaceIn(free *scheduler.Inventory, group int, j *spec.Job, w *Set) *scheduler.Grant {
	if w.Blind {
		return b.PlaceBlindIn(free, group, j)
	}
	for i := range w.Configs {
		if o := &w.Configs[i]; o.Group == group {
			if g := b.PlaceOption(free, j, o); g != nil {
				return g
			}
		}
	}
	return nil
}

// OwnPlan is the plan a job was submitted with; without one, plain data
// parallelism.
func OwnPlan(j *spec.Job) spec.Plan {
	if j.Plan != (spec.Plan{}) {
		return j.Plan
	}
	return spec.Plan{DP: j.Devices}.Normal()
}

// Accepts reports whether j may run on g.
func Accepts(j *spec.Job, g *spec.NodeGroup) bool {
	return j.Accelerator == "" || j.Accelerator == g.Accelerator.Name
}
