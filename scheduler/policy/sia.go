package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
)

func init() {
	register(Info{
		Name: "sia",
		Doc:  "type and number of devices of all jobs at once, for the most goodput relative to what each has on least (Jayaram Subramanya et al., Sia, SOSP 2023); resizes and preempts",
		Options: []Option{
			{Name: "p", Default: "-0.5", Doc: "exponent of fairness, below 0: the lower, the more jobs that have little count"},
			{Name: "wait", Default: "1.1", Doc: "what it costs to let a job wait, where one with its least goodput costs 1; above 1"},
			{Name: "interval", Default: "60", Doc: "seconds after which it decides anew though nothing happened"},
			{Name: "noise", Default: "0", Doc: "standard deviation of what is added to every cost, from the seed: how much hangs on ties"},
		},
		New: newSia,
	})
}

func newSia(d Deps) (scheduler.Policy, error) {
	p := &sia{belief: newBelief(d), known: map[*curve][]siaCell{}, seed: d.Seed, quirks: d.Quirks}
	p.elastic, _ = d.Oracle.(scheduler.Elastic)
	err := d.numbers(
		inRange{"p", -0.5, -100, -1e-3, &p.exponent},
		inRange{"wait", 1.1, 1.001, 1e6, &p.wait},
		inRange{"noise", 0, 0, 1, &p.noise})
	if err != nil {
		return nil, err
	}
	if p.interval, err = d.seconds("interval", time.Minute); err != nil {
		return nil, err
	}
	p.interval = max(p.interval, leastWake)
	return p, nil
}

// sia gives every job one of its configurations, a number of devices of one type,
// or none, such that
//
//	Σ_j (v_jc)^p + wait * (jobs that have none)
//
// is least and no type has more devices granted than it has:
//
//	v_jc   goodput of job j in configuration c, in terms of what it has where it
//	       has least, times the devices it takes there; times r_j unless j is in
//	       c already
//	r_j    (age - restarts*S) / (age + S), at least 0: what of the time a job has been
//	       there it would have trained after one more restart, which takes S
//
// Configurations are powers of two within a node and whole nodes beyond, all of the
// first 16 and then powers of two, so that they always fit side by side; jobs that cannot run on any of these may have what
// they can run on. Jobs of which nothing is believed run as submitted. Who pays its
// start cost is left alone.
//
// Source: sections 3.3 and 3.4. Differs: the factor of restarts is kept from the
// first second on and goodputs are not rounded, as the paper has it and its
// artifact, siasosp23/artifacts at commit aaf7a0d, has not; a job's batch and plan
// are those believed best at each size; S is what the engine says.
type sia struct {
	belief         *belief
	elastic        scheduler.Elastic // nil = jobs train their own batch
	quirks         compat.Quirks
	known          map[*curve][]siaCell
	shapes         map[groupRoom][]spec.Shape
	exponent, wait float64
	interval       time.Duration
	noise          float64
	seed           uint64
}

// siaCell is a configuration of a job.
type siaCell struct {
	group, devices int
	goodput        float64  // anything proportional to it
	options        []option // fastest first
	blind          bool     // nothing is known: options is a guess
	elastic        bool     // the batch is the job's to choose
}

// siaRow is a job that a configuration is chosen for.
type siaRow struct {
	*scheduler.JobState
	cells   []siaCell // by group and devices
	costs   []float64 // of each; only those below wait matter
	warning string
	grant   *scheduler.Grant // what it gets
}

func (p *sia) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	c, err := p.consider(ctx, s)
	if err != nil {
		return scheduler.Decision{}, err
	}
	picks, proven, err := chooseCells(ctx, c.rows, p.wait, c.room())
	if err != nil {
		return scheduler.Decision{}, fmt.Errorf("policy: sia: %w", err)
	}
	d := c.place(picks)
	if s.Reasons {
		for i, r := range c.rows {
			p.explain(s, &d, r, picks[i])
		}
	}
	if !proven {
		d.Warnings = append(d.Warnings, "what was chosen at times is not proven to be the best")
	}
	if len(s.Jobs()) > 0 {
		d.Wake = s.Now + p.interval
	}
	return d, nil
}

// siaChoice is one decision in the making.
type siaChoice struct {
	rows  []*siaRow          // who there is a choice for
	stuck []*siaRow          // who keeps its one configuration, on whatever nodes
	fixed []*scheduler.Grant // of who stays where it is
	floor siaFloor           // without fixed
}

// consider returns what there is to choose from.
func (p *sia) consider(ctx context.Context, s *scheduler.Snapshot) (*siaChoice, error) {
	c := &siaChoice{floor: siaFloor{belief: p.belief, s: s, free: s.Idle()}}
	for _, j := range s.Jobs() {
		if j.Grant != nil && s.Now < j.Ready {
			if p.quirks.FreeMoves {
				c.stuck = append(c.stuck, stuck(s, j))
				continue
			}
			c.floor.free.Take(j.Grant.Slots)
			c.fixed = append(c.fixed, j.Grant)
			continue
		}
		r, err := p.row(ctx, s, j)
		if err != nil {
			return nil, err
		}
		c.rows = append(c.rows, r)
	}
	p.perturb(s.Now, c.rows)
	return c, nil
}

// stuck returns the row of a job that keeps its configuration.
func stuck(s *scheduler.Snapshot, j *scheduler.JobState) *siaRow {
	g := j.Grant
	o := option{group: s.Free().Group[g.Slots[0].Node], plan: g.Plan, shape: g.Shape, devices: g.Devices()}
	cell := siaCell{group: o.group, devices: o.devices, options: []option{o}, elastic: g.Elastic}
	return &siaRow{JobState: j, cells: []siaCell{cell}}
}

// room returns the devices of each group that there is a choice of.
func (c *siaChoice) room() []int {
	out := make([]int, len(c.floor.s.Cluster.Groups))
	for g := range out {
		out[g] = c.floor.free.FreeIn(g)
	}
	for _, r := range c.stuck {
		out[r.cells[0].group] -= r.cells[0].devices
	}
	return out
}

// place grants what was picked.
func (c *siaChoice) place(picks []int) scheduler.Decision {
	rows := slices.Concat(c.stuck, c.rows)
	c.floor.place(rows, slices.Concat(make([]int, len(c.stuck)), picks))
	d := scheduler.Decision{Grants: c.fixed}
	for _, r := range rows {
		if r.grant == nil {
			continue
		}
		d.Grants = append(d.Grants, r.grant)
		if r.warning != "" {
			d.Warnings = append(d.Warnings, r.warning)
		}
	}
	return d
}

// explain says what decided about a job.
func (p *sia) explain(s *scheduler.Snapshot, d *scheduler.Decision, r *siaRow, pick int) {
	switch {
	case r.grant.Same(r.Grant) && r.grant != nil:
	case pick < 0:
		d.Because(s, r.Job.ID, "at a cost of %.3g for waiting the costs of all jobs add up to the least", p.wait)
	case r.grant == nil:
		d.Because(s, r.Job.ID, "%s are meant for it, and not free together", spec.Count(r.cells[pick].devices, "device"))
	default:
		d.Because(s, r.Job.ID, "on %s at a cost of %.3g, where waiting costs %.3g, the costs of all jobs add up to the least", spec.Count(r.cells[pick].devices, "device"), r.costs[pick], p.wait)
	}
}

// row returns the configurations of j and what they cost.
func (p *sia) row(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*siaRow, error) {
	r := &siaRow{JobState: j}
	var err error
	if r.cells, err = p.cells(ctx, s.Cluster, j); err != nil {
		return nil, err
	}
	if len(r.cells) == 0 {
		var options []option
		if options, r.warning, err = p.belief.guess(ctx, s, j); err != nil {
			return nil, err
		}
		for _, o := range options {
			r.cells = append(r.cells, siaCell{group: o.group, devices: o.devices, goodput: 1, options: []option{o}, blind: true})
		}
	}
	values := relative(r.cells)
	factor, now := p.restartFactor(s.Now, j), r.cellOf(s)
	for i, v := range values {
		if j.Grant != nil && i != now {
			v *= factor
		}
		r.costs = append(r.costs, p.cost(v))
	}
	return r, nil
}

// cost returns what a configuration of relative goodput v costs.
func (p *sia) cost(v float64) float64 {
	if !p.quirks.RoundedCosts {
		return math.Pow(v, p.exponent)
	}
	const most = 3000
	cost := float32(math.Pow(float64(float32(v)), p.exponent))
	return min(math.RoundToEven(float64(cost*100))/100, most)
}

// relative returns the goodputs of cells in terms of the least of them, times the
// fewest devices the job can run on.
func relative(cells []siaCell) []float64 {
	least, fewest := math.Inf(1), math.MaxInt
	for i := range cells {
		least, fewest = min(least, cells[i].goodput), min(fewest, cells[i].devices)
	}
	out := make([]float64, len(cells))
	for i := range cells {
		out[i] = float64(fewest)
		if least > 0 { // else it is to be tried
			out[i] *= cells[i].goodput / least
		}
	}
	return out
}

// restartFactor is r of a job that holds devices.
func (p *sia) restartFactor(now time.Duration, j *scheduler.JobState) float64 {
	age, cost := (now - j.Job.Submit).Seconds(), j.StartCost.Seconds()
	if p.quirks.AssumedStarts {
		const others = 30 * time.Second
		cost = cmp.Or(compat.SiaAssumedStarts[j.Job.Model.Name], others).Seconds()
	}
	if age <= 0 || p.quirks.YoungMove && age < cost {
		return 1
	}
	return max(age-float64(j.Restarts)*cost, 0) / (age + cost)
}

// cellOf returns the configuration that the job of r holds, -1 if none.
func (r *siaRow) cellOf(s *scheduler.Snapshot) int {
	if r.Grant == nil {
		return -1
	}
	group, devices := s.Free().Group[r.Grant.Slots[0].Node], r.Grant.Devices()
	return slices.IndexFunc(r.cells, func(c siaCell) bool { return c.group == group && c.devices == devices })
}

// cells returns the configurations of a job, none where nothing is believed of it.
func (p *sia) cells(ctx context.Context, c spec.Cluster, j *scheduler.JobState) ([]siaCell, error) {
	if p.elastic != nil {
		if out, err := p.elasticCells(ctx, c, j); err != nil || len(out) > 0 {
			return out, err
		}
	}
	cv, err := p.belief.curve(ctx, c, j.Job)
	if err != nil {
		return nil, err
	}
	return p.cellsOf(cv, c), nil
}

// elasticCells returns the configurations of a job that chooses its batch.
func (p *sia) elasticCells(ctx context.Context, c spec.Cluster, j *scheduler.JobState) (out []siaCell, err error) {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		room := g.Room(j.Job.Host)
		if !accepts(j.Job, g) || room < 1 {
			continue
		}
		for _, shape := range p.shapesOf(gi, g, room) {
			plan, rate, err := p.elastic.Goodput(ctx, j, g, shape)
			if errors.Is(err, perfmodel.ErrNotCovered) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("policy: sia: %w", err)
			}
			o := option{group: gi, plan: plan, shape: shape, devices: plan.Devices(), rate: rate}
			out = append(out, siaCell{group: gi, devices: o.devices, goodput: rate, options: []option{o}, elastic: true})
		}
	}
	return out, nil
}

// shapesOf returns the configurations in a group whose nodes have room for so many
// devices each.
func (p *sia) shapesOf(group int, g *spec.NodeGroup, room int) []spec.Shape {
	key := groupRoom{group, room}
	out, ok := p.shapes[key]
	if ok {
		return out
	}
	for _, n := range sizes(g) {
		if shape := spec.Packed(n, room); fitsBesides(n, g.Devices) && shape.Nodes() <= g.Count {
			out = append(out, shape)
		}
	}
	if p.shapes == nil {
		p.shapes = map[groupRoom][]spec.Shape{}
	}
	p.shapes[key] = out
	return out
}

// groupRoom is a group of nodes that have room for so many devices each.
type groupRoom struct{ group, room int }

// cellsOf returns the configurations of a curve.
func (p *sia) cellsOf(cv *curve, c spec.Cluster) []siaCell {
	if out, ok := p.known[cv]; ok {
		return out
	}
	var all, out []siaCell
	for i := 0; i < len(cv.options); {
		o, k := &cv.options[i], i
		for k < len(cv.options) && cv.options[k].group == o.group && cv.options[k].devices == o.devices {
			k++
		}
		all = append(all, siaCell{group: o.group, devices: o.devices, goodput: o.rate, options: cv.options[i:k]})
		i = k
	}
	for _, cell := range all {
		if fitsBesides(cell.devices, c.Groups[cell.group].Devices) {
			out = append(out, cell)
		}
	}
	if len(out) == 0 {
		out = all
	}
	p.known[cv] = out
	return out
}

// manyNodes is up to where every number of whole nodes is a configuration; beyond
// it powers of two are.
const manyNodes = 16

// fitsBesides reports whether so many devices are a power of two within a node or
// whole nodes.
func fitsBesides(devices, perNode int) bool {
	powerOfTwo := func(n int) bool { return n&(n-1) == 0 }
	if devices < perNode {
		return powerOfTwo(devices)
	}
	nodes := devices / perNode
	return devices%perNode == 0 && (nodes <= manyNodes || powerOfTwo(nodes))
}

// perturb adds the noise of this time to all costs.
func (p *sia) perturb(now time.Duration, rows []*siaRow) {
	if p.noise == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(p.seed, uint64(now)))
	for _, r := range rows {
		for i := range r.costs {
			r.costs[i] += p.noise * rng.NormFloat64()
		}
	}
}
