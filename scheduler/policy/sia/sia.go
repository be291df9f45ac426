package sia

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/internal/candidate"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Info is the registry entry of policy sia.
var Info = policy.Info{
	Name:    "sia",
	Doc:     "one integer program chooses type and number of devices of all jobs by normalised goodput (Jayaram Subramanya et al., Sia, SOSP 2023); resizes and preempts",
	Options: options,
	New:     newSia,
}

var options = []policy.Option{
	{Name: "p", Default: "-0.5", Min: -100, Max: -1e-3, Doc: "fairness power, below 0; lower gives jobs with low goodput more weight"},
	{Name: "wait", Default: "1.1", Min: 1.001, Max: 1e6, Doc: "cost of a waiting job, above 1; a job at its lowest goodput costs 1"},
	{Name: "interval", Default: "60", Unit: "s", Max: 1e9, Doc: "seconds between two decisions without an event"},
	{Name: "noise", Default: "0", Max: 1, Doc: "standard deviation of random noise added to every cost, drawn from the seed: shows the effect of ties"},
}

func newSia(d policy.Deps) (scheduler.Policy, error) {
	elastic, _ := d.Oracle.(scheduler.Elastic)
	p := &sia{Space: NewSpace(d, elastic), seed: d.Seed, rules: policy.VariantOf[Variant](d)}
	v := d.Values(options)
	p.exponent, p.wait, p.noise = v.Float("p"), v.Float("wait"), v.Float("noise")
	p.interval = max(v.Duration("interval"), policy.MinWake)
	return p, v.Err()
}

// sia chooses one configuration for every job, a number of devices of one type, or none.
// Subject to the devices of each type, it minimises
//
//	Σ_j (v_jc)^p + wait * (number of jobs without a configuration)
//
//	v_jc   normalised goodput: goodput of job j in configuration c, divided by its lowest
//	       goodput, times the fewest devices it can run on; times r_j for every c but the
//	       present one
//	r_j    restart factor (age - restarts*S) / (age + S), at least 0
//	S      time of a restart
//
// Configurations are powers of two within a node, and beyond that up to 16 whole nodes and
// powers of two of nodes, so that they always fit. A job that can run on none of these may
// have any number of devices. Jobs without a prediction run as submitted. A job that is
// starting keeps its devices.
//
// Source: sections 3.3 and 3.4. As in the paper, but not in its artifact,
// siasosp23/artifacts at commit aaf7a0d, the restart factor applies from the first second
// and goodputs are not rounded. Differs: batch and plan are those predicted best for each
// configuration; S is the start cost in the snapshot.
type sia struct {
	*Space
	rules          Variant
	exponent, wait float64
	interval       time.Duration
	noise          float64
	seed           uint64

	last, before timedChoice // the last choice, and the last of an earlier time
}

// timedChoice is a choice at a time; the next one starts from its prices.
type timedChoice struct {
	at time.Duration
	Choice
}

// Row is a job that a configuration is chosen for.
type Row struct {
	*scheduler.JobState
	Cells   []Cell    // by group and devices
	Costs   []float64 // of each cell; only costs below wait matter
	Warning string
	Granted *scheduler.Grant // result of placement
}

// Decide computes the costs of all configurations (section 3.3), solves the integer program
// and places the jobs (section 3.4).
func (p *sia) Decide(ctx context.Context, s *scheduler.Snapshot) (scheduler.Decision, error) {
	c, err := p.program(ctx, s)
	if err != nil {
		return scheduler.Decision{}, err
	}
	if p.last.at < s.Now { // once per instant, so that Decide is idempotent
		p.before = p.last
	}
	choice, err := Choose(ctx, c.rows, p.wait, c.room(), p.before.Prices)
	if err != nil {
		return scheduler.Decision{}, fmt.Errorf("policy: sia: %w", err)
	}
	p.last = timedChoice{s.Now, choice}
	d := c.place(choice.Picks)
	if s.Reasons {
		for i, r := range c.rows {
			p.explain(s, &d, r, choice.Picks[i])
		}
	}
	if !choice.Proven {
		d.Warnings = append(d.Warnings, "some decisions are not proven optimal")
	}
	if len(s.Jobs()) > 0 {
		d.Wake = s.Now + p.interval
	}
	return d, nil
}

// program is the integer program of one decision.
type program struct {
	rows  []*Row             // jobs to choose for
	stuck []*Row             // jobs that keep their configuration but may move to other nodes
	fixed []*scheduler.Grant // of jobs that keep their devices
	floor placement          // free devices exclude those of fixed
}

// program returns the program of a decision.
func (p *sia) program(ctx context.Context, s *scheduler.Snapshot) (*program, error) {
	c := &program{floor: placement{finder: p.Finder, s: s, free: s.Idle()}}
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

// room returns the devices of each group that may be assigned.
func (c *program) room() []int {
	out := make([]int, len(c.floor.s.Cluster.Groups))
	for g := range out {
		out[g] = c.floor.free.FreeIn(g)
	}
	for _, r := range c.stuck {
		out[r.Cells[0].Group] -= r.Cells[0].Devices
	}
	return out
}

// place places the chosen configurations and returns the decision.
func (c *program) place(picks []int) scheduler.Decision {
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

// explain adds the reason for the devices of a job.
func (p *sia) explain(s *scheduler.Snapshot, d *scheduler.Decision, r *Row, pick int) {
	switch {
	case r.Granted.Same(r.Grant) && r.Granted != nil:
	case pick < 0:
		d.Because(s, r.Job.ID, "waiting, at a cost of %.3g, minimises the sum of costs of all jobs", p.wait)
	case r.Granted == nil:
		d.Because(s, r.Job.ID, "%s were chosen, but the free devices are too fragmented", spec.Count(r.Cells[pick].Devices, "device"))
	default:
		d.Because(s, r.Job.ID, "%s at a cost of %.3g (waiting: %.3g) minimise the sum of costs of all jobs", spec.Count(r.Cells[pick].Devices, "device"), r.Costs[pick], p.wait)
	}
}

// row returns the configurations of j with their costs.
func (p *sia) row(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*Row, error) {
	r, err := p.Row(ctx, s, j)
	if err != nil {
		return nil, err
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

// cost returns the cost of a configuration with normalised goodput v.
func (p *sia) cost(v float64) float64 {
	if p.rules.Cost != nil {
		return p.rules.Cost(v, p.exponent)
	}
	return math.Pow(v, p.exponent)
}

// relative returns the normalised goodputs of cells: divided by the lowest goodput, times
// the fewest devices the job can run on.
func relative(cells []Cell) []float64 {
	least, fewest := math.Inf(1), math.MaxInt
	for i := range cells {
		least, fewest = min(least, cells[i].Goodput), min(fewest, cells[i].Devices)
	}
	out := make([]float64, len(cells))
	for i := range cells {
		out[i] = float64(fewest)
		if least > 0 { // else every cell is worth trying
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

// Best returns the highest goodput of a job, 0 if unknown.
func (r *Row) Best() (v float64) {
	for i := range r.Cells {
		v = max(v, r.Cells[i].Goodput)
	}
	return v
}

// Row returns a job with its configurations, without costs. Those of a job without a
// prediction are guesses, at the speed of candidate.GuessRate.
func (p *Space) Row(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*Row, error) {
	r := &Row{JobState: j}
	var err error
	if r.Cells, err = p.Cells(ctx, s.Cluster, j); err != nil || len(r.Cells) > 0 {
		return r, err
	}
	guesses, warning, err := p.Finder.Guess(ctx, s, j)
	r.Warning = warning
	for i := range guesses {
		o := &guesses[i]
		r.Cells = append(r.Cells, Cell{Group: o.Group, Devices: o.Devices, Goodput: o.Rate, Options: guesses[i : i+1], Unpredicted: true})
	}
	return r, err
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
