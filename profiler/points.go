package profiler

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Points returns the points of c on m, in canonical order, and the combinations that cannot run, each with the
// reason. An exact plan that cannot run is an error, and so is a machine with another accelerator than c
// requires. The slices belong to the caller.
func (c Campaign) Points(m Machine) ([]Point, []Rejected, error) {
	if c.Space.Measured {
		points, err := c.measured(m)
		return points, nil, err
	}
	if err := c.checkMachine(m); err != nil {
		return nil, nil, err
	}
	if n := c.Space.combinations(len(c.Models)); n > maxPoints {
		return nil, nil, fmt.Errorf("profiler: campaign %s has %.0f combinations, want at most %d", c.Name, n, maxPoints)
	}
	e := expansion{c: c, m: m, used: map[string]bool{}, seen: map[Identity]bool{}}
	if err := e.exact(); err != nil { // first, so that the product does not claim an exact plan
		return nil, nil, err
	}
	e.product()
	if len(e.points) == 0 && len(e.rejected) == 0 {
		return nil, nil, fmt.Errorf("profiler: campaign %s has no models", c.Name)
	}
	slices.SortFunc(e.points, func(a, b Point) int { return perfmodel.CompareConfigs(a.Config, b.Config) })
	return e.points, e.rejections(), nil
}

// checkMachine returns an error if m has another accelerator than c requires.
func (c Campaign) checkMachine(m Machine) error {
	want := c.Space.Accelerator
	switch {
	case want == AnyGPU && m.CPU:
		return fmt.Errorf("profiler: campaign %s needs a GPU (accelerator: %s), the devices here are %s", c.Name, AnyGPU, m.Accelerator.Name)
	case want != "" && want != AnyGPU && want != m.Accelerator.Name:
		return fmt.Errorf("profiler: campaign %s is for %s, this machine has %s", c.Name, want, m.Accelerator.Name)
	}
	return nil
}

// shapes returns the shapes, or their default.
func (s Space) shapes() []spec.Shape { return orDefault(s.Shapes, spec.NewShape(1)) }

func orDefault[T any](list []T, def T) []T {
	if len(list) == 0 {
		return []T{def}
	}
	return list
}

// combinations returns the size of the product plus the number of exact plans.
func (s Space) combinations(models int) float64 {
	n := float64(models * max(len(s.Shapes), 1) * max(len(s.SeqLens), 1))
	each := 1.0
	for _, l := range []int{len(s.MicroBatch), len(s.AccumSteps), len(s.TP), len(s.PP), len(s.ZeRO), len(s.SP),
		len(s.Recompute), len(s.Offload), len(s.Precision)} {
		each *= float64(max(l, 1))
	}
	if s.Alone {
		n *= 3 // stages
	}
	return n * (each + float64(len(s.Plans)))
}

// expansion is the state of Campaign.Points.
type expansion struct {
	c        Campaign
	m        Machine
	points   []Point
	rejected []combination
	used     map[string]bool // values that some point has
	seen     map[Identity]bool
}

// combination is one element of the product, with its values.
type combination struct {
	Rejected
	values []string // "tp=2", "seq=512", "shape=8", ...
}

// product visits all combinations of the lists.
func (e *expansion) product() {
	s := &e.c.Space
	for _, model := range e.c.Models {
		for _, shape := range s.shapes() {
			for _, seq := range orDefault(s.SeqLens, 0) {
				s.eachPlan(func(p spec.Plan) { e.add(model, seq, shape, p) })
			}
		}
	}
}

// eachPlan calls f with every plan of the product; DP is not set.
func (s *Space) eachPlan(f func(spec.Plan)) {
	plans := []spec.Plan{{}}
	plans = cross(plans, s.MicroBatch, func(p *spec.Plan, v int) { p.MicroBatch = v })
	plans = cross(plans, s.AccumSteps, func(p *spec.Plan, v int) { p.AccumSteps = v })
	plans = cross(plans, s.TP, func(p *spec.Plan, v int) { p.TP = v })
	plans = cross(plans, s.PP, func(p *spec.Plan, v int) { p.PP = v })
	plans = cross(plans, s.ZeRO, func(p *spec.Plan, v int) { p.ZeRO = v })
	plans = cross(plans, s.SP, func(p *spec.Plan, v bool) { p.SequenceParallel = v })
	plans = cross(plans, s.Recompute, func(p *spec.Plan, v spec.Recompute) { p.Recompute = v })
	plans = cross(plans, s.Offload, func(p *spec.Plan, v spec.Offload) { p.Offload = v })
	plans = cross(plans, s.Precision, func(p *spec.Plan, v spec.Precision) { p.Precision = v })
	for _, p := range plans {
		f(p)
	}
}

// cross returns every plan with every value. Without values it returns the plans unchanged.
func cross[T any](plans []spec.Plan, values []T, set func(*spec.Plan, T)) []spec.Plan {
	if len(values) == 0 {
		return plans
	}
	out := make([]spec.Plan, 0, len(plans)*len(values))
	for _, p := range plans {
		for _, v := range values {
			set(&p, v)
			out = append(out, p)
		}
	}
	return out
}

// add turns a combination into a point, or records why it cannot run. p has no DP yet.
func (e *expansion) add(model spec.Model, seq int, shape spec.Shape, p spec.Plan) {
	p = p.Normal()
	n, split := shape.Total(), p.TP*p.PP
	p.DP = max(n/split, 1)
	for i, c := range e.ranks(e.m.config(model, seq, shape, p, e.c.Point.Threads)) {
		id := IdentityOf(c)
		if e.seen[id] {
			continue
		}
		e.seen[id] = true
		values := valuesOf(c)
		if r, bad := e.reject(c, n%split != 0); !bad {
			e.take(c, values)
		} else if i == 0 || r.Group == ForMemory { // other reasons hold for all stages
			e.rejected = append(e.rejected, combination{r, values})
		}
	}
}

// ranks returns c, or if it is for more devices than the machine has and the campaign measures ranks alone, one rank of
// each different stage: the first, with the embedding and the most activations; the second, which stands for those after
// it; and the last, with the vocabulary head. Ranks of one stage do the same work.
func (e *expansion) ranks(c spec.Config) []spec.Config {
	if !e.c.Space.Alone || c.Plan.Devices() <= len(e.m.Devices)*max(e.m.Nodes, 1) {
		return []spec.Config{c}
	}
	var out []spec.Config
	for _, stage := range []int{1, 2, c.Plan.PP} {
		if stage <= c.Plan.PP && (len(out) == 0 || stage > out[len(out)-1].AloneStage) {
			c.AloneStage = stage
			out = append(out, c)
		}
	}
	return out
}

// reject returns whether c is rejected, and why.
func (e *expansion) reject(c spec.Config, uneven bool) (Rejected, bool) {
	divides := ""
	if uneven {
		divides = fmt.Sprintf("tp=%d x pp=%d does not divide %d devices", c.Plan.TP, c.Plan.PP, c.Shape.Total())
	}
	for _, rule := range []struct {
		Group
		why func() string
	}{
		{ForDevices, func() string { return cmp.Or(e.m.deviceMismatch(c), divides) }},
		{ForModel, func() string { return cannotRun(c.Model, c.SeqLen, c.Plan) }},
		{ForDuplicate, func() string { return planner.Redundant(&c.Plan) }},
		{ForStack, func() string { return e.m.lacks(c) }},
		{ForMemory, func() string { return e.m.tooLarge(c) }},
	} {
		if why := rule.why(); why != "" {
			return Rejected{Config: c, Why: why, Group: rule.Group}, true
		}
	}
	return Rejected{}, false
}

func (e *expansion) take(c spec.Config, values []string) {
	e.points = append(e.points, Point{c})
	for _, v := range values {
		e.used[v] = true
	}
}

// valuesOf returns the values of c as texts, the most likely cause of a rejection first.
func valuesOf(c spec.Config) []string {
	p := c.Plan
	return []string{
		"model=" + c.Model.Name, "shape=" + c.Shape.String(),
		fmt.Sprintf("tp=%d", p.TP), fmt.Sprintf("pp=%d", p.PP), fmt.Sprintf("zero=%d", p.ZeRO),
		fmt.Sprintf("sp=%t", p.SequenceParallel), "offload=" + string(p.Offload), "precision=" + string(p.Precision),
		"recompute=" + string(p.Recompute), fmt.Sprintf("seq=%d", c.SeqLen),
		fmt.Sprintf("micro_batch=%d", p.MicroBatch), fmt.Sprintf("accumulation=%d", p.AccumSteps),
	}
}

// rejections returns the rejected combinations in canonical order.
func (e *expansion) rejections() []Rejected {
	e.setUnusedValues()
	out := make([]Rejected, len(e.rejected))
	for i, r := range e.rejected {
		out[i] = r.Rejected
	}
	slices.SortFunc(out, func(a, b Rejected) int { return perfmodel.CompareConfigs(a.Config, b.Config) })
	return out
}

// setUnusedValues sets UnusedValue for combinations with a value that no point has. Such a value has many
// combinations, and most of them break other rules too, for reasons that combinations of used values also have.
// Those reasons are reported only if there are no others.
func (e *expansion) setUnusedValues() {
	common := map[string]bool{} // reasons that combinations of used values also have
	for _, r := range e.rejected {
		if e.unusedValue(r) == "" {
			common[r.Why] = true
		}
	}
	reported := map[string]bool{}
	for _, passOver := range []bool{true, false} {
		before := maps.Clone(reported)
		for i, r := range e.rejected {
			if v := e.unusedValue(r); v != "" && !before[v] && !(passOver && common[r.Why]) {
				e.rejected[i].UnusedValue = v
				reported[v] = true
			}
		}
	}
}

// unusedValue returns the first value of r that no point has, "" if all are used.
func (e *expansion) unusedValue(r combination) string {
	for _, v := range r.values {
		if !e.used[v] {
			return v
		}
	}
	return ""
}

// exact adds the plans that are listed one by one, regardless of their memory estimate. A plan that cannot run
// is an error.
func (e *expansion) exact() error {
	var errs []error
	for _, p := range e.c.Space.Plans {
		p = p.Normal()
		fits := false
		for _, shape := range e.c.Space.shapes() {
			if shape.Total() == p.Devices() {
				fits = true
				errs = append(errs, e.exactOn(shape, p)...)
			}
		}
		if !fits {
			errs = append(errs, fmt.Errorf("profiler: campaign %s: plan %s: no shape has its %d devices", e.c.Name, p, p.Devices()))
		}
	}
	return errors.Join(errs...)
}

func (e *expansion) exactOn(shape spec.Shape, p spec.Plan) (errs []error) {
	for _, model := range e.c.Models {
		for _, seq := range orDefault(e.c.Space.SeqLens, 0) {
			for _, c := range e.ranks(e.m.config(model, seq, shape, p, e.c.Point.Threads)) {
				if why := cmp.Or(cannotRun(model, c.SeqLen, c.Plan), e.m.deviceMismatch(c), e.m.lacks(c)); why != "" {
					errs = append(errs, fmt.Errorf("profiler: campaign %s: plan %s: %s", e.c.Name, p, why))
					break
				}
				if id := IdentityOf(c); !e.seen[id] {
					e.seen[id] = true
					e.take(c, valuesOf(c))
				}
			}
		}
	}
	return errs
}

// measured returns the points of a table, limited to c's models and accelerator if c names any.
func (c Campaign) measured(m Machine) ([]Point, error) {
	if len(m.Configs) == 0 {
		return nil, fmt.Errorf("profiler: campaign %s has measured: true, but the table of %q is empty: import its rows first",
			c.Name, c.Runner.Source)
	}
	seen := map[Identity]bool{}
	var points []Point
	for _, x := range m.Configs {
		named := len(c.Models) == 0 || slices.ContainsFunc(c.Models, func(o spec.Model) bool { return o.Name == x.Model.Name })
		if id := IdentityOf(x); named && !seen[id] && (c.Space.Accelerator == "" || c.Space.Accelerator == x.Accelerator.Name) {
			seen[id] = true
			points = append(points, Point{x})
		}
	}
	for _, o := range c.Models {
		if !slices.ContainsFunc(points, func(p Point) bool { return p.Config.Model.Name == o.Name }) {
			return nil, fmt.Errorf("profiler: campaign %s: the table of %q has no rows of model %s", c.Name, c.Runner.Source, o.Name)
		}
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("profiler: campaign %s: the table of %q has no rows on %s", c.Name, c.Runner.Source, c.Space.Accelerator)
	}
	slices.SortFunc(points, func(a, b Point) int { return perfmodel.CompareConfigs(a.Config, b.Config) })
	return points, nil
}

// Identity identifies a point. It excludes host memory and the values that describe a model, an accelerator or
// a link: a catalog may be corrected, and a kernel may report another memory size after an update.
type Identity struct {
	key       spec.Key
	plan      spec.Plan
	seq       int
	devices   string
	cpus      int
	framework string
	stage     int // spec.Config.AloneStage
}

// IdentityOf returns the identity of c.
func IdentityOf(c spec.Config) Identity {
	return Identity{c.Key(), c.Plan.Normal(), c.Seq(), c.Shape.Devices, c.Shape.CPUs, c.Framework, c.AloneStage}
}

// String formats all fields.
func (id Identity) String() string {
	text := fmt.Sprintf("%s, %s, %d tokens, shape %s with %d CPUs, framework %q",
		id.key, id.plan, id.seq, id.devices, id.cpus, id.framework)
	if id.stage != 0 {
		text += fmt.Sprintf(", one rank of stage %d alone", id.stage)
	}
	return text
}
