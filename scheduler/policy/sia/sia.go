package sia

import (
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
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

var Info = policy.Info{
	Name:    "sia",
	Doc:     "type and number of devices of all jobs at once, for the highest goodput relative to that of each job on its least configuration (Jayaram Subramanya et al., Sia, SOSP 2023); resizes and preempts",
	Options: options,
	New:     newSia,
}

var options = []policy.Option{
	{Name: "p", Default: "-0.5", Min: -100, Max: -1e-3, Doc: "exponent of fairness, below 0: the lower, the more jobs with little goodput count"},
	{Name: "wait", Default: "1.1", Min: 1.001, Max: 1e6, Doc: "cost of a waiting job, where a job at its least goodput costs 1; above 1"},
	{Name: "interval", Default: "60", Unit: "s", Max: 1e9, Doc: "seconds between two decisions when nothing happens"},
	{Name: "noise", Default: "0", Max: 1, Doc: "standard deviation of random noise added to every cost, drawn from the seed: shows the effect of ties"},
}

func newSia(d policy.Deps) (scheduler.Policy, error) {
	elastic, _ := d.Oracle.(scheduler.Elastic)
	p := &sia{Space: NewSpace(d, elastic), seed: d.Seed, rules: policy.VariantOf[Variant](d)}
	v := d.Values(options)
	p.exponent, p.wait, p.noise = v.Float("p"), v.Float("wait"), v.Float("noise")
	p.interval = max(v.Seconds("interval"), policy.MinWake)
	return p, v.Err()
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
// first 16 and then powers of two, so that they always fit side by side. A job that can run
// on none of these may have what it can run on. Jobs without a prediction run as
// submitted. A job that pays its start cost is left alone.
//
// Source: sections 3.3 and 3.4. Differs: the factor of restarts is kept from the
// first second on and goodputs are not rounded, as the paper has it and its
// artifact, siasosp23/artifacts at commit aaf7a0d, has not; a job's batch and plan
// are those believed best at each size; S is what the engine says.
type sia struct {
	*Space
	rules          Variant
	exponent, wait float64
	interval       time.Duration
	noise          float64
	seed           uint64
}

// Space lists the configurations of jobs.
type Space struct {
	Belief  *candidate.Finder
	elastic scheduler.Elastic // nil = jobs train their own batch
	known   map[*candidate.Curve][]Cell
	shapes  map[groupRoom][]spec.Shape
}

// NewSpace returns the space that the oracle of d believes in; elastic may be nil.
func NewSpace(d policy.Deps, elastic scheduler.Elastic) *Space {
	return &Space{Belief: candidate.NewFinder(d), elastic: elastic, known: map[*candidate.Curve][]Cell{}, shapes: map[groupRoom][]spec.Shape{}}
}

// Cell is a configuration of a job.
type Cell struct {
	Group, Devices int
	Goodput        float64            // anything proportional to it
	Options        []candidate.Config // fastest first
	Blind          bool               // nothing is known: options is a guess
	Elastic        bool               // the batch is the job's to choose
}

// Row is a job that a configuration is chosen for.
type Row struct {
	*scheduler.JobState
	Cells   []Cell    // by group and devices
	Costs   []float64 // of each; only those below wait matter
	Warning string
	Granted *scheduler.Grant // what it gets
}

func (p *sia) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	c, err := p.consider(ctx, s)
	if err != nil {
		return scheduler.Decision{}, err
	}
	picks, proven, err := Choose(ctx, c.rows, p.wait, c.room())
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
	rows  []*Row             // jobs with a choice
	stuck []*Row             // jobs that keep their configuration, on any nodes
	fixed []*scheduler.Grant // of jobs that keep their devices
	floor siaFloor           // without fixed
}

// consider returns what there is to choose from.
func (p *sia) consider(ctx context.Context, s *scheduler.Snapshot) (*siaChoice, error) {
	c := &siaChoice{floor: siaFloor{belief: p.Belief, s: s, free: s.Idle()}}
	for _, j := range s.Jobs() {
		if j.Grant != nil && s.Now < j.Ready {
			if p.rules.FreeMoves {
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
func stuck(s *scheduler.Snapshot, j *scheduler.JobState) *Row {
	g := j.Grant
	o := candidate.Config{Group: s.Free().Group[g.Slots[0].Node], Plan: g.Plan, Shape: g.Shape, Devices: g.Devices()}
	cell := Cell{Group: o.Group, Devices: o.Devices, Options: []candidate.Config{o}, Elastic: g.Elastic}
	return &Row{JobState: j, Cells: []Cell{cell}}
}

// room returns the devices of each group that there is a choice of.
func (c *siaChoice) room() []int {
	out := make([]int, len(c.floor.s.Cluster.Groups))
	for g := range out {
		out[g] = c.floor.free.FreeIn(g)
	}
	for _, r := range c.stuck {
		out[r.Cells[0].Group] -= r.Cells[0].Devices
	}
	return out
}

// place grants what was picked.
func (c *siaChoice) place(picks []int) scheduler.Decision {
	rows := slices.Concat(c.stuck, c.rows)
	c.floor.place(rows, slices.Concat(make([]int, len(c.stuck)), picks))
	d := scheduler.Decision{Grants: c.fixed}
	for _, r := range rows {
		if r.Granted == nil {
			continue
		}
		d.Grants = append(d.Grants, r.Granted)
		if r.Warning != "" {
			d.Warnings = append(d.Warnings, r.Warning)
		}
	}
	return d
}

// explain says what decided about a job.
func (p *sia) explain(s *scheduler.Snapshot, d *scheduler.Decision, r *Row, pick int) {
	switch {
	case r.Granted.Same(r.Grant) && r.Granted != nil:
	case pick < 0:
		d.Because(s, r.Job.ID, "at a cost of %.3g for waiting the costs of all jobs add up to the least", p.wait)
	case r.Granted == nil:
		d.Because(s, r.Job.ID, "%s are meant for it, and not free together", spec.Count(r.Cells[pick].Devices, "device"))
	default:
		d.Because(s, r.Job.ID, "on %s at a cost of %.3g, where waiting costs %.3g, the costs of all jobs add up to the least", spec.Count(r.Cells[pick].Devices, "device"), r.Costs[pick], p.wait)
	}
}

// row returns the configurations of j and what they cost.
func (p *sia) row(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*Row, error) {
	r := &Row{JobState: j}
	var err error
	if r.Cells, err = p.Cells(ctx, s.Cluster, j); err != nil {
		return nil, err
	}
	if len(r.Cells) == 0 {
		var options []candidate.Config
		if options, r.Warning, err = p.Belief.Guess(ctx, s, j); err != nil {
			return nil, err
		}
		for _, o := range options {
			r.Cells = append(r.Cells, Cell{Group: o.Group, Devices: o.Devices, Goodput: 1, Options: []candidate.Config{o}, Blind: true})
		}
	}
	values := relative(r.Cells)
	factor, now := p.restartFactor(s.Now, j), r.CellOf(s)
	for i, v := range values {
		if j.Grant != nil && i != now {
			v *= factor
		}
		r.Costs = append(r.Costs, p.cost(v))
	}
	return r, nil
}

// cost returns what a configuration of relative goodput v costs.
func (p *sia) cost(v float64) float64 {
	if p.rules.Cost != nil {
		return p.rules.Cost(v, p.exponent)
	}
	return math.Pow(v, p.exponent)
}

// relative returns the goodputs of cells in terms of the least of them, times the
// fewest devices the job can run on.
func relative(cells []Cell) []float64 {
	least, fewest := math.Inf(1), math.MaxInt
	for i := range cells {
		least, fewest = min(least, cells[i].Goodput), min(fewest, cells[i].Devices)
	}
	out := make([]float64, len(cells))
	for i := range cells {
		out[i] = float64(fewest)
		if least > 0 { // else it is to be tried
			out[i] *= cells[i].Goodput / least
		}
	}
	return out
}

// restartFactor is r of a job that holds devices.
func (p *sia) restartFactor(now time.Duration, j *scheduler.JobState) float64 {
	age, cost := (now - j.Job.Submit).Seconds(), j.StartCost.Seconds()
	if p.rules.RestartTime != nil {
		cost = p.rules.RestartTime(j).Seconds()
	}
	if age <= 0 || p.rules.YoungMove && age < cost {
		return 1
	}
	return max(age-float64(j.Restarts)*cost, 0) / (age + cost)
}

// CellOf returns the configuration that the job of r holds, -1 if none.
func (r *Row) CellOf(s *scheduler.Snapshot) int {
	if r.Grant == nil {
		return -1
	}
	group, devices := s.Free().Group[r.Grant.Slots[0].Node], r.Grant.Devices()
	return slices.IndexFunc(r.Cells, func(c Cell) bool { return c.Group == group && c.Devices == devices })
}

// Best returns the largest goodput of a job, 0 where it is not known.
func (r *Row) Best() (v float64) {
	for i := range r.Cells {
		v = max(v, r.Cells[i].Goodput)
	}
	return v
}

// Cells returns the configurations of a job, none where nothing is believed of it.
func (p *Space) Cells(ctx context.Context, c spec.Cluster, j *scheduler.JobState) ([]Cell, error) {
	if p.elastic != nil {
		if out, err := p.elasticCells(ctx, c, j); err != nil || len(out) > 0 {
			return out, err
		}
	}
	cv, err := p.Belief.Curve(ctx, c, j.Job)
	if err != nil {
		return nil, err
	}
	return p.cellsOf(cv, c), nil
}

// elasticCells returns the configurations of a job that chooses its batch.
func (p *Space) elasticCells(ctx context.Context, c spec.Cluster, j *scheduler.JobState) (out []Cell, err error) {
	for gi := range c.Groups {
		g := &c.Groups[gi]
		room := g.Room(j.Job.Host)
		if !candidate.Accepts(j.Job, g) || room < 1 {
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
			o := candidate.Config{Group: gi, Plan: plan, Shape: shape, Devices: plan.Devices(), Rate: rate}
			out = append(out, Cell{Group: gi, Devices: o.Devices, Goodput: rate, Options: []candidate.Config{o}, Elastic: true})
		}
	}
	return out, nil
}

// shapesOf returns the configurations in a group whose nodes have room for so many
// devices each.
func (p *Space) shapesOf(group int, g *spec.NodeGroup, room int) []spec.Shape {
	key := groupRoom{group, room}
	out, ok := p.shapes[key]
	if ok {
		return out
	}
	for _, n := range candidate.Sizes(g) {
		if shape := spec.Packed(n, room); fitsBesides(n, g.Devices) && shape.Nodes() <= g.Count {
			out = append(out, shape)
		}
	}
	p.shapes[key] = out
	return out
}

// groupRoom is a group of nodes that have room for so many devices each.
type groupRoom struct{ group, room int }

// cellsOf returns the configurations of a curve.
func (p *Space) cellsOf(cv *candidate.Curve, c spec.Cluster) []Cell {
	if out, ok := p.known[cv]; ok {
		return out
	}
	var all, out []Cell
	for i := 0; i < len(cv.Configs); {
		o, k := &cv.Configs[i], i
		for k < len(cv.Configs) && cv.Configs[k].Group == o.Group && cv.Configs[k].Devices == o.Devices {
			k++
		}
		all = append(all, Cell{Group: o.Group, Devices: o.Devices, Goodput: o.Rate, Options: cv.Configs[i:k]})
		i = k
	}
	for _, cell := range all {
		if fitsBesides(cell.Devices, c.Groups[cell.Group].Devices) {
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
func (p *sia) perturb(now time.Duration, rows []*Row) {
	if p.noise == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(p.seed, uint64(now)))
	for _, r := range rows {
		for i := range r.Costs {
			r.Costs[i] += p.noise * rng.NormFloat64()
		}
	}
}
