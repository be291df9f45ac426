package candidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Config is a candidate configuration of a job: a plan on a shape in a group of nodes.
type Config struct {
	Group   int
	Plan    spec.Plan
	Shape   spec.Shape
	Counts  []int // Shape.PerNode, shared; nil = not computed
	Devices int
	Host    spec.Host // host resources per device of the configuration; a job may need more
	Load    float64   // largest share of the group's devices, CPUs or memory, in devices
	Rate    float64   // predicted steps/s, 0 = unknown
	Spread  float64   // half the width of the 90 % interval of the rate's logarithm, 0 = unknown
}

// PerNode returns the devices on each node, most first. The result is shared: do not change it.
func (c *Config) PerNode() []int {
	if c.Counts != nil {
		return c.Counts
	}
	return c.Shape.PerNode()
}

// Set is the candidates of one kind of job, fastest first.
type Set struct {
	Configs []Config
	Warning string // for users, "" = none
	Blind   bool   // the oracle has no prediction: the job's own plan on any layout of the placer

	revision int // Finder.SubmittedRevision at the query
}

// Of returns the candidate of a grant in a group; nil if it is none of them.
func (w *Set) Of(g *scheduler.Grant, group int) *Config {
	i := slices.IndexFunc(w.Configs, func(o Config) bool {
		return o.Group == group && o.Plan == g.Plan && o.Shape.Devices == g.Shape.Devices
	})
	if i < 0 {
		return nil
	}
	return &w.Configs[i]
}

// Finder finds the candidates of jobs. It queries the oracle once per kind of job, and
// again when the oracle has learnt about it. It is not safe for concurrent use.
type Finder struct {
	Oracle     scheduler.Oracle  // may be nil
	Learns     scheduler.Learner // the oracle, nil if its answers do not change during a run
	placer     scheduler.Placer
	Structured bool               // speeds are estimated from those of all configurations, see structure
	Cpus       bool               // curves have offloading plans at several numbers of CPUs
	speeds     map[string]float64 // Deps.Speeds
	order      []int              // groups, fastest first by speeds; nil = not computed yet

	submitted map[SubmittedKey]*Set
	curves    map[curveKey]*Curve

	progress   progress
	structures map[structureKey]*structure
}

// Kind identifies jobs with the same speed on equal devices.
type Kind struct {
	model      spec.Model
	seq, batch int
	host       spec.Host // per device; restricts layouts
}

// SubmittedKey identifies jobs that were submitted alike.
type SubmittedKey struct {
	Kind
	plan        spec.Plan
	devices     int
	accelerator string
}

// NewFinder returns a finder with the oracle, placer and speeds of d.
func NewFinder(d policy.Deps) *Finder {
	f := &Finder{Oracle: d.Oracle, placer: d.Placer, speeds: d.Speeds,
		submitted: map[SubmittedKey]*Set{}, curves: map[curveKey]*Curve{},
		structures: map[structureKey]*structure{}, progress: progress{shared: map[string]bool{}}}
	f.Learns, _ = d.Oracle.(scheduler.Learner)
	if f.placer == nil {
		f.placer, _ = place.Lookup("") // the default exists
	}
	return f
}

// Revision counts the changes of predictions about j on the groups of c.
func (f *Finder) Revision(c spec.Cluster, j *spec.Job) int {
	if f.Learns == nil {
		return f.progress.revisions[j.Model.Name]
	}
	return f.learned(c, j)
}

// SubmittedRevision changes whenever predictions about j on as many devices as it asks for change.
func (f *Finder) SubmittedRevision(c spec.Cluster, j *spec.Job) (n int) {
	if f.Learns != nil {
		return f.learned(c, j)
	}
	for i := range c.Groups {
		n = max(n, f.progress.revision(j.Model.Name, i, j.Devices))
	}
	return n
}

// learned counts the changes of the oracle's answers about j on the groups of c.
func (f *Finder) learned(c spec.Cluster, j *spec.Job) (n int) {
	for i := range c.Groups {
		n += f.Learns.Revision(spec.Key{Model: j.Model.Name, Accelerator: c.Groups[i].Accelerator.Name})
	}
	return n
}

// KeyOf returns the key of jobs that were submitted like j.
func KeyOf(j *spec.Job) SubmittedKey {
	return SubmittedKey{KindOf(j), j.Plan, j.Devices, j.Accelerator}
}

// KindOf returns the kind of j.
func KindOf(j *spec.Job) Kind { return Kind{j.Model, j.SeqLen, j.Batch(), j.Host} }

// kindOn returns the kind of j on c. Jobs that need no more of a host than the share of their devices have the same
// candidates, whatever they need. Where CPUs are a part of candidates the least number of them remains.
func (f *Finder) kindOn(c spec.Cluster, j *spec.Job) Kind {
	k := KindOf(j)
	most, same := j.Host, spec.Host{}
	if f.Cpus {
		same.MilliCPUs = 1000 * int64(leastCPUs(j))
		most = most.Max(same)
	}
	for i := range c.Groups {
		if g := &c.Groups[i]; !g.Host().Covers(most.Times(g.Devices)) {
			return k
		}
	}
	k.host = same
	return k
}

// RequestFor returns the request for plans of j on devices of a group.
func RequestFor(j *spec.Job, g *spec.NodeGroup, devices int) planner.Request {
	return planner.Request{
		Model: j.Model, SeqLen: j.SeqLen, GlobalBatch: j.Batch(), Precision: j.Plan.Precision,
		Accelerator: g.Accelerator, Link: g.Link, Devices: devices, PerNode: g.Devices, NodeHostBytes: g.HostBytes,
	}
}

// AsSubmitted returns the candidates of j with its own plan and device count, on any
// group it accepts. If its plan is not feasible at that count, it returns those with
// the best feasible plans. Without predictions the set is blind. The result is shared:
// do not change it.
func (f *Finder) AsSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job) (*Set, error) {
	key := KeyOf(j)
	key.Kind = f.kindOn(c, j)
	revision := f.SubmittedRevision(c, j)
	if w, ok := f.submitted[key]; ok && w.revision == revision {
		return w, nil
	}
	w, err := f.findSubmitted(ctx, c, j)
	if err != nil {
		return nil, err
	}
	w.revision = revision
	f.submitted[key] = w
	return w, nil
}

// Refresh returns set, an earlier answer of AsSubmitted for j, where no prediction changed
// since, and the answer of today otherwise. It saves looking j up. set may be nil.
func (f *Finder) Refresh(ctx context.Context, c spec.Cluster, j *spec.Job, set *Set) (*Set, error) {
	if set != nil && set.revision == f.SubmittedRevision(c, j) {
		return set, nil
	}
	return f.AsSubmitted(ctx, c, j)
}

func (f *Finder) findSubmitted(ctx context.Context, c spec.Cluster, j *spec.Job) (*Set, error) {
	w := &Set{}
	if j.Plan != (spec.Plan{}) {
		own := j.Plan
		if err := f.rank(ctx, c, j, &own, w); err != nil || len(w.Configs) > 0 {
			return w, err
		}
	}
	if err := f.rank(ctx, c, j, nil, w); err != nil {
		return w, err
	}
	switch {
	case len(w.Configs) == 0:
		w.Blind = true
		if f.Oracle != nil {
			w.Warning = fmt.Sprintf("%s on %s: no prediction, such jobs run as submitted", j.Model.Name, spec.Count(j.Devices, "device"))
		}
	case j.Plan != (spec.Plan{}):
		w.Warning = fmt.Sprintf("%s on %s: plan %s is not feasible there, the fastest predicted plan is used",
			j.Model.Name, spec.Count(j.Devices, "device"), j.Plan)
	}
	return w, nil
}

// rank appends the candidates of j at its device count, with one plan or any.
func (f *Finder) rank(ctx context.Context, c spec.Cluster, j *spec.Job, plan *spec.Plan, w *Set) error {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !j.Accepts(g) || g.MostDevices(j.Host) < j.Devices {
			continue
		}
		r := RequestFor(j, g, j.Devices)
		if r.Plan = plan; plan != nil {
			r.GlobalBatch = plan.GlobalBatch() // a job's batch may differ from that of its plan
		}
		options, err := f.Query(ctx, gi, g, r, j.Host, AnyPlan)
		if err != nil {
			return err
		}
		w.Configs = append(w.Configs, options...)
	}
	slices.SortStableFunc(w.Configs, func(a, b Config) int { return cmp.Compare(b.Rate, a.Rate) })
	return nil
}

// AnyPlan allows all plans, for Query.
func AnyPlan(spec.Plan) bool { return true }

// Query returns the candidates for a request that fit in memory and on the nodes of g,
// with the best allowed plan of each shape, fastest first. need is the host resources
// per device. The result is empty, without error, if the oracle has no plan or no
// prediction.
func (f *Finder) Query(ctx context.Context, group int, g *spec.NodeGroup, r planner.Request, need spec.Host, allowed func(spec.Plan) bool) ([]Config, error) {
	if f.Oracle == nil || r.GlobalBatch < 1 {
		return nil, nil
	}
	accept := func(c *spec.Config) bool {
		return c.Shape.Most() <= g.Room(need.Max(taken(c, g))) && c.Shape.Nodes() <= g.Count && allowed(c.Plan)
	}
	choices, err := f.perShape(ctx, r, group, g, accept)
	if errors.Is(err, planner.ErrInfeasible) || errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %s on %s: %w", r.Model.Name, spec.Count(r.Devices, "device"), err)
	}
	var out []Config
	for i := range choices {
		c := &choices[i]
		host := taken(&c.Config, g)
		counts := c.Config.Shape.PerNode()
		devices := c.Config.Shape.Total()
		out = append(out, Config{
			Group: group, Plan: c.Config.Plan, Shape: c.Config.Shape, Counts: counts, Devices: devices, Host: host, Load: loadOf(devices, need.Max(host), g),
			Rate: c.Prediction.Throughput / float64(c.Config.Plan.GlobalBatch()), Spread: c.Prediction.HalfWidth(),
		})
	}
	return f.choose(out), nil
}

// choose leaves out the candidates that the placer rules out.
func (f *Finder) choose(options []Config) []Config {
	chooser, ok := f.placer.(scheduler.Chooser)
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

// OwnPlan returns the plan that a job was submitted with, or else plain data
// parallelism.
func OwnPlan(j *spec.Job) spec.Plan {
	if j.Plan != (spec.Plan{}) {
		return j.Plan
	}
	return spec.Plan{DP: j.Devices}.Normal()
}

// GroupOfSubmitted returns the group for j as submitted: its present group, or else the
// first that it accepts, with enough devices left. It is -1 if there is none. nodes has
// the group of each node.
func GroupOfSubmitted(j *scheduler.JobState, groups []spec.NodeGroup, nodes, left []int) int {
	for gi := range groups {
		fits := j.Job.Accepts(&groups[gi])
		if j.Grant != nil {
			fits = nodes[j.Grant.Slots[0].Node] == gi
		}
		if fits && left[gi] >= j.Job.Devices {
			return gi
		}
	}
	return -1
}
