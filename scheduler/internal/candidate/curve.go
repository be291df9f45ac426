package candidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Curve is the resource sensitivity of one kind of job: its candidates on any number of
// devices of any group it accepts, with the fastest plan of each shape.
type Curve struct {
	Configs []Config // by group, devices, fastest first
	byShape map[shapeKey]int

	index    int // in the order of the finder's first queries, equal for all revisions
	revision int // Finder.Revision at the query
}

type shapeKey struct {
	group int
	shape spec.Shape
}

// curveKey identifies jobs with the same curve.
type curveKey struct {
	Kind
	precision   spec.Precision
	accelerator string
	fixed       Fixed
	plan        spec.Plan // the job's own plan, if it is fixed
	devices     int       // its number of devices, if plan or size is fixed
}

// Fixed selects the parts of a job's configuration that stay as submitted.
type Fixed struct {
	Plan bool // the plan, except for the data parallel degree and the split of the batch
	Size bool // the number of devices
}

// sizes returns the device counts for j in g, ascending.
func (f Fixed) sizes(j *spec.Job, g *spec.NodeGroup) []int {
	if f.Size {
		return []int{j.Devices}
	}
	return Sizes(g)
}

// allows reports whether j may run with a plan.
func (f Fixed) allows(j *spec.Job, p spec.Plan) bool {
	return !f.Plan || scaled(j.Plan) == scaled(p)
}

// scaled returns a plan without the parts that change with the number of replicas.
func scaled(p spec.Plan) spec.Plan {
	p.DP, p.MicroBatch, p.AccumSteps, p.Shard = 1, 1, 1, 0
	return p.Normal()
}

// Curve returns the sensitivity curve of j. It is empty if the oracle has no predictions.
// The result is shared: do not change it.
func (f *Finder) Curve(ctx context.Context, c spec.Cluster, j *spec.Job) (*Curve, error) {
	return f.CurveOf(ctx, c, j, Fixed{})
}

// CurveOf returns the part of the sensitivity curve with the fixed parts of j. If its
// fixed plan is not feasible at any size, the curve is the set of AsSubmitted.
func (f *Finder) CurveOf(ctx context.Context, c spec.Cluster, j *spec.Job, fixed Fixed) (*Curve, error) {
	fixed.Plan = fixed.Plan && j.Plan != (spec.Plan{})
	key := curveKey{Kind: f.kindOn(c, j), precision: j.Plan.Precision, accelerator: j.Accelerator, fixed: fixed}
	if fixed.Plan {
		key.plan = j.Plan
	}
	if fixed.Plan || fixed.Size {
		key.devices = j.Devices
	}
	revision := f.Revision(c, j)
	old := f.curves[key]
	if old != nil && old.revision == revision {
		return old, nil
	}
	options, err := f.curveOptions(ctx, c, j, fixed, old)
	if err != nil {
		return nil, err
	}
	if len(options) == 0 && fixed.Plan {
		w, err := f.AsSubmitted(ctx, c, j)
		if err != nil {
			return nil, err
		}
		options = w.Configs
	}
	cv := &Curve{Configs: options, byShape: map[shapeKey]int{}, index: len(f.curves), revision: revision}
	if old != nil {
		cv.index = old.index
	}
	for i, o := range options {
		cv.byShape[shapeKey{o.Group, o.Shape}] = i
	}
	f.curves[key] = cv
	return cv, nil
}

// curveOptions returns the candidates of j. old is those of before, nil if there are none.
func (f *Finder) curveOptions(ctx context.Context, c spec.Cluster, j *spec.Job, fixed Fixed, old *Curve) (all []Config, err error) {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		if !j.Accepts(g) {
			continue
		}
		for _, n := range fixed.sizes(j, g) {
			if old != nil && fixed == (Fixed{}) && f.Learns == nil && f.progress.revision(j.Model.Name, gi, n) <= old.revision {
				all = append(all, old.of(gi, n)...)
				continue
			}
			allowed := func(p spec.Plan) bool { return fixed.allows(j, p) }
			options, err := f.Query(ctx, gi, g, RequestFor(j, g, n), j.Host, allowed)
			if err != nil {
				return nil, err
			}
			if options, err = f.withCPUs(ctx, gi, g, j, options, allowed); err != nil {
				return nil, err
			}
			all = append(all, options...)
		}
	}
	return all, nil
}

// manySizes bounds the device counts of a curve. Above it there are only whole nodes,
// and above manySizes nodes only powers of two of them. Otherwise a large cluster would
// need a hundred thousand queries per model.
const manySizes = 128

// Sizes returns the device counts of a curve in g, ascending.
func Sizes(g *spec.NodeGroup) []int {
	all := g.Count * g.Devices
	var out []int
	for n := 1; n <= min(all, manySizes); n++ {
		out = append(out, n)
	}
	for nodes := 1; nodes <= g.Count; nodes++ {
		if n := nodes * g.Devices; n > manySizes && (nodes <= manySizes || nodes&(nodes-1) == 0) {
			out = append(out, n)
		}
	}
	return out
}

// At returns the candidate with the group, shape and plan of o, nil if there is none.
func (cv *Curve) At(o *Config) *Config {
	i, ok := cv.byShape[shapeKey{o.Group, o.Shape}]
	if !ok || cv.Configs[i].Plan != o.Plan {
		return nil
	}
	return &cv.Configs[i]
}

// of returns the candidates on n devices of a group.
func (cv *Curve) of(group, n int) []Config {
	from := func(n int) int {
		i, _ := slices.BinarySearchFunc(cv.Configs, n, func(o Config, n int) int { return cmp.Or(cmp.Compare(o.Group, group), cmp.Compare(o.Devices, n)) })
		return i
	}
	return cv.Configs[from(n):from(n+1)]
}

// BySize yields the runs of configurations with equal group and number of devices.
func BySize(configs []Config) iter.Seq[[]Config] {
	return func(yield func([]Config) bool) {
		for len(configs) > 0 {
			n := 1
			for n < len(configs) && configs[n].Group == configs[0].Group && configs[n].Devices == configs[0].Devices {
				n++
			}
			if !yield(configs[:n]) {
				return
			}
			configs = configs[n:]
		}
	}
}

// Undominated returns the candidates, in order, without those that another one replaces: it is at least as fast, in
// place of them it fits on the same nodes, and it needs no more host resources.
func Undominated(configs []Config) []Config {
	order := make([]int, len(configs)) // fastest first, so that only earlier ones can replace a candidate
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &configs[a], &configs[b]
		return cmp.Or(cmp.Compare(y.Rate, x.Rate), cmp.Compare(x.Devices, y.Devices))
	})
	kept := make([]bool, len(configs))
	var front []int
	for _, i := range order {
		if !slices.ContainsFunc(front, func(k int) bool { return configs[k].replaces(&configs[i]) }) {
			kept[i], front = true, append(front, i)
		}
	}
	var out []Config
	for i, keep := range kept {
		if keep {
			out = append(out, configs[i])
		}
	}
	return out
}

// replaces reports whether c, which is at least as fast as o, fits wherever o does.
func (c *Config) replaces(o *Config) bool {
	mine, others := c.PerNode(), o.PerNode()
	if c.Group != o.Group || len(mine) > len(others) {
		return false
	}
	for i, n := range mine {
		if n > others[i] || int64(n)*c.Host.MilliCPUs > int64(others[i])*o.Host.MilliCPUs || int64(n)*c.Host.Bytes > int64(others[i])*o.Host.Bytes {
			return false
		}
	}
	return true
}

// PerCurve caches a value derived from each curve of one Finder. It forgets the value of
// a curve that a newer revision replaced.
type PerCurve[T any] struct {
	entries []curveEntry[T] // by Curve.index
}

type curveEntry[T any] struct {
	curve *Curve
	value T
}

// Of returns the cached value of cv, or else that of derive.
func (p *PerCurve[T]) Of(cv *Curve, derive func() T) T {
	if missing := cv.index + 1 - len(p.entries); missing > 0 {
		p.entries = append(p.entries, make([]curveEntry[T], missing)...)
	}
	e := &p.entries[cv.index]
	if e.curve != cv {
		*e = curveEntry[T]{cv, derive()}
	}
	return e.value
}

// Held returns the candidate of the grant that j holds in a group. It is not in cv if
// the oracle has learnt that another plan is faster on this shape. It is nil without a
// prediction.
func (f *Finder) Held(ctx context.Context, c spec.Cluster, j *scheduler.JobState, group int, cv *Curve) (*Config, error) {
	if o := cv.At(&Config{Group: group, Shape: j.Grant.Shape, Plan: j.Grant.Plan}); o != nil || f.Learns == nil && cv.revision == 0 || len(cv.Configs) == 0 {
		return o, nil
	}
	g, in := j.Grant, &c.Groups[group]
	held := spec.Config{Model: j.Job.Model, SeqLen: j.Job.SeqLen, Plan: g.Plan, Accelerator: in.Accelerator, Shape: g.Shape, Link: in.Link}
	p, err := f.predict(ctx, held, group)
	if errors.Is(err, perfmodel.ErrNotCovered) {
		return nil, nil
	}
	if err == nil && independent(&p) {
		r := RequestFor(j.Job, in, g.Devices())
		var s *structure
		if s, err = f.structureOf(ctx, &r, group, in); s != nil {
			s.correct(&held, &p)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %s on %s: %w", j.Job.Model.Name, g.Shape.Devices, err)
	}
	return &Config{Group: group, Plan: g.Plan, Shape: g.Shape, Devices: g.Devices(),
		Rate: p.Throughput / float64(g.Plan.Normal().GlobalBatch()), Spread: p.HalfWidth()}, nil
}

// Reaching returns the candidates that are at least as fast as rate.
func Reaching(options []Config, rate float64) []Config {
	return slices.DeleteFunc(slices.Clone(options), func(o Config) bool { return o.Rate < rate })
}
