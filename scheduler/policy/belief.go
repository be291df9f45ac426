package policy

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
)

// option is one way to run a job: a plan on a shape in a group of nodes.
type option struct {
	group   int
	plan    spec.Plan
	shape   spec.Shape
	devices int
	host    spec.Host // that each device takes, where it is more than the job needs
	load    float64   // devices that what it takes comes to: the largest of its shares of the group
	rate    float64   // believed steps/s, 0 = nothing is believed
	spread  float64   // half the width of the 90 % interval of its logarithm, 0 = none given
}

// ways are the ways to run one kind of job, fastest believed first.
type ways struct {
	options []option
	warning string // what a user should know about them, "" if nothing
	blind   bool   // nothing is known: the job's own plan on whatever layout the placer makes

	revision int // belief.revision then
}

// of returns the way that g, in a group, runs; nil if it is none of them.
func (w *ways) of(g *scheduler.Grant, group int) *option {
	i := slices.IndexFunc(w.options, func(o option) bool {
		return o.group == group && o.plan == g.Plan && o.shape.Devices == g.Shape.Devices
	})
	if i < 0 {
		return nil
	}
	return &w.options[i]
}

// belief is what the oracle says, put so that policies can compare it. It is
// asked once per kind of job, and again when it has learnt something about it.
type belief struct {
	oracle scheduler.Oracle  // may be nil
	learns scheduler.Learner // the oracle, nil if its answers do not change during a run
	placer scheduler.Placer
	cpus   bool               // curves tell what CPUs are worth to plans that offload
	speeds map[string]float64 // Deps.Speeds
	order  []int              // groups, fastest first by speeds; nil = not known yet

	submitted map[submittedKey]*ways
	curves    map[curveKey]*curve
}

// kindOf is what two jobs share that run alike on equal devices.
type kindOf struct {
	model      spec.Model
	seq, batch int
	host       spec.Host // what each device needs says where they can be
}

type submittedKey struct {
	kindOf
	plan        spec.Plan
	devices     int
	accelerator string
}

func newBelief(d Deps) *belief {
	b := &belief{oracle: d.Oracle, placer: d.Placer, speeds: d.Speeds,
		submitted: map[submittedKey]*ways{}, curves: map[curveKey]*curve{}}
	b.learns, _ = d.Oracle.(scheduler.Learner)
	if b.placer == nil {
		b.placer, _ = place.Lookup("") // the default exists
	}
	return b
}

// revision tells how often has changed what is believed of j on the groups of c.
func (b *belief) revision(c spec.Cluster, j *spec.Job) (n int) {
	if b.learns == nil {
		return 0
	}
	for i := range c.Groups {
		n += b.learns.Revision(spec.Key{Model: j.Model.Name, Accelerator: c.Groups[i].Accelerator.Name})
	}
	return n
}

func kind(j *spec.Job) kindOf { return kindOf{j.Model, j.SeqLen, j.Batch(), j.Host} }

// request asks how to run j on devices of group.
func request(j *spec.Job, g *spec.NodeGroup, devices int) planner.Request {
	return planner.Request{
		Model: j.Model, SeqLen: j.SeqLen, GlobalBatch: j.Batch(), Precision: j.Plan.Precision,
		Accelerator: g.Accelerator, Link: g.Link, Devices: devices, PerNode: g.Devices, NodeHostBytes: g.HostBytes,
	}
}

// asSubmitted returns the ways to run j with its own plan and device count, on
// any group it accepts. If the oracle allows its plan nowhere at that count,
// they are those of the best plans it allows there. If it knows nothing of such
// jobs, the ways are blind.
func (b *belief) asSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job) (*ways, error) {
	key := submittedKey{kind(j), j.Plan, j.Devices, j.Accelerator}
	revision := b.revision(c, j)
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

func (b *belief) findSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job) (*ways, error) {
	w := &ways{}
	if j.Plan != (spec.Plan{}) {
		own := j.Plan
		if err := b.rank(ctx, c, j, &own, w); err != nil || len(w.options) > 0 {
			return w, err
		}
	}
	if err := b.rank(ctx, c, j, nil, w); err != nil {
		return w, err
	}
	switch {
	case len(w.options) == 0:
		w.blind = true
		if b.oracle != nil {
			w.warning = fmt.Sprintf("%s on %s: no prediction, such jobs run as submitted", j.Model.Name, spec.Count(j.Devices, "device"))
		}
	case j.Plan != (spec.Plan{}):
		w.warning = fmt.Sprintf("%s on %s: plan %s is not among those allowed there, the best believed one is used",
			j.Model.Name, spec.Count(j.Devices, "device"), j.Plan)
	}
	return w, nil
}

// rank appends the ways to run j at its device count, with one plan or any.
func (b *belief) rank(ctx context.Context, c spec.Cluster, j *spec.Job, plan *spec.Plan, w *ways) error {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !accepts(j, g) || g.MostDevices(j.Host) < j.Devices {
			continue
		}
		r := request(j, g, j.Devices)
		if r.Plan = plan; plan != nil {
			r.GlobalBatch = plan.GlobalBatch() // that of a job can be one that its plan only comes close to
		}
		options, err := b.ask(ctx, gi, g, r, j.Host, anyPlan)
		if err != nil {
			return err
		}
		w.options = append(w.options, options...)
	}
	slices.SortStableFunc(w.options, func(a, b option) int { return cmp.Compare(b.rate, a.rate) })
	return nil
}

func anyPlan(spec.Plan) bool { return true }

// ask returns the choices of r that fit in memory and on the nodes of g, where each
// device needs so much of the host, as options, the best allowed plan of each shape only, fastest first. That the oracle has
// no plan or no opinion is no error.
func (b *belief) ask(ctx context.Context, group int, g *spec.NodeGroup, r planner.Request, need spec.Host, allowed func(spec.Plan) bool) ([]option, error) {
	if b.oracle == nil || r.GlobalBatch < 1 {
		return nil, nil
	}
	ranking, err := b.oracle.Rank(ctx, r)
	if errors.Is(err, planner.ErrInfeasible) || errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %s on %s: %w", r.Model.Name, spec.Count(r.Devices, "device"), err)
	}
	var out []option
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
		out = append(out, option{
			group: group, plan: c.Config.Plan, shape: c.Config.Shape, devices: c.Config.Shape.Total(), host: host, load: loadOf(c.Config.Shape.Total(), need.Max(host), g),
			rate: c.Prediction.Throughput / float64(c.Config.Plan.GlobalBatch()), spread: spread(c.Prediction),
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
func (b *belief) choose(options []option) []option {
	chooser, ok := b.placer.(scheduler.Chooser)
	if !ok || len(options) == 0 {
		return options
	}
	var all []scheduler.Way
	for i := range options {
		o := &options[i]
		all = append(all, scheduler.Way{Group: o.group, Plan: o.plan, Shape: o.shape, Rate: o.rate})
	}
	kept := map[scheduler.Way]bool{}
	for _, w := range chooser.Choose(all) {
		kept[w] = true
	}
	var out []option
	for i, w := range all {
		if kept[w] {
			out = append(out, options[i])
		}
	}
	return out
}

// place returns a grant of the first of w's options that fits into free, nil if
// none does.
func (b *belief) place(free *scheduler.Inventory, c spec.Cluster, j *spec.Job, w *ways) *scheduler.Grant {
	if w.blind {
		return b.placeBlind(free, c, j)
	}
	for i := range w.options {
		if g := b.placeOption(free, j, &w.options[i]); g != nil {
			return g
		}
	}
	return nil
}

func (b *belief) placeOption(free *scheduler.Inventory, j *spec.Job, o *option) *scheduler.Grant {
	if free.FreeIn(o.group) < o.devices {
		return nil
	}
	slots, ok := b.find(free, j, o)
	if !ok {
		return nil
	}
	return &scheduler.Grant{Job: j.ID, Plan: o.plan, Shape: o.shape, Slots: slots}
}

// find returns free devices for o, with what j needs of the host for them, or what
// o takes where that is more.
func (b *belief) find(free *scheduler.Inventory, j *spec.Job, o *option) ([]scheduler.Slot, bool) {
	need := j.Host.Max(o.host)
	slots, ok := b.placer.Place(free.For(o.group, need), o.group, o.shape)
	if need != (spec.Host{}) {
		for i := range slots {
			slots[i].Host = need.Times(slots[i].Devices)
		}
	}
	return slots, ok
}

// lay returns the shape that devices for j would take.
func (b *belief) lay(free *scheduler.Inventory, group int, j *spec.Job, devices int) (spec.Shape, bool) {
	return b.placer.Lay(free.For(group, j.Host), group, devices)
}

// bySpeed returns the groups, the ones believed faster first.
func (b *belief) bySpeed(c spec.Cluster) []int {
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

// placeBlind places a job nothing is known about on the fastest group it accepts
// that has room, the first of equals.
func (b *belief) placeBlind(free *scheduler.Inventory, c spec.Cluster, j *spec.Job) *scheduler.Grant {
	for _, gi := range b.bySpeed(c) {
		if !accepts(j, &c.Groups[gi]) {
			continue
		}
		if g := b.placeBlindIn(free, gi, j); g != nil {
			return g
		}
	}
	return nil
}

func (b *belief) placeBlindIn(free *scheduler.Inventory, group int, j *spec.Job) *scheduler.Grant {
	shape, ok := b.lay(free, group, j, j.Devices)
	if !ok {
		return nil
	}
	return b.placeOption(free, j, &option{group: group, plan: ownPlan(j), shape: shape, devices: j.Devices})
}

// placeIn is place in one group.
func (b *belief) placeIn(free *scheduler.Inventory, group int, j *spec.Job, w *ways) *scheduler.Grant {
	if w.blind {
		return b.placeBlindIn(free, group, j)
	}
	for i := range w.options {
		if o := &w.options[i]; o.group == group {
			if g := b.placeOption(free, j, o); g != nil {
				return g
			}
		}
	}
	return nil
}

// ownPlan is the plan a job was submitted with; without one, plain data
// parallelism.
func ownPlan(j *spec.Job) spec.Plan {
	if j.Plan != (spec.Plan{}) {
		return j.Plan
	}
	return spec.Plan{DP: j.Devices}.Normal()
}

// accepts reports whether j may run on g.
func accepts(j *spec.Job, g *spec.NodeGroup) bool {
	return j.Accelerator == "" || j.Accelerator == g.Accelerator.Name
}
