package policy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
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
	p := &sia{belief: newBelief(d), known: map[*curve][]siaCell{}, seed: d.Seed}
	var err error
	for _, o := range []struct {
		name        string
		def, lo, hi float64
		value       *float64
	}{
		{"p", -0.5, -100, -1e-3, &p.exponent},
		{"wait", 1.1, 1, 1e6, &p.wait},
		{"noise", 0, 0, 1, &p.noise},
	} {
		if *o.value, err = d.number(o.name, o.def, o.lo, o.hi); err != nil {
			return nil, err
		}
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
// Configurations are powers of two within a node and whole nodes beyond, so that
// they always fit side by side; jobs that cannot run on any of these may have what
// they can run on. Jobs of which nothing is believed run as submitted. Who pays its
// start cost is left alone.
//
// Source: sections 3.3 and 3.4. Differs: the factor of restarts is kept from the
// first second on and goodputs are not rounded, as the paper has it and its
// artifact, siasosp23/artifacts at commit aaf7a0d, has not; a job's batch and plan
// are those believed best at each size; S is what the engine says.
type sia struct {
	belief         *belief
	known          map[*curve][]siaCell
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
	var d scheduler.Decision
	f := siaFloor{belief: p.belief, s: s, free: s.Idle()}
	var rows []*siaRow
	for _, j := range s.Jobs() {
		if j.Grant != nil && s.Now < j.Ready {
			f.free.Take(j.Grant.Slots)
			d.Grants = append(d.Grants, j.Grant)
			continue
		}
		r, err := p.row(ctx, s, j)
		if err != nil {
			return d, err
		}
		rows = append(rows, r)
	}
	p.perturb(s.Now, rows)
	picks, proven, err := chooseCells(ctx, rows, p.wait, f.room())
	if err != nil {
		return d, fmt.Errorf("policy: sia: %w", err)
	}
	f.place(rows, picks)
	for i, r := range rows {
		if s.Reasons {
			p.explain(s, &d, r, picks[i])
		}
		if r.grant != nil {
			d.Grants = append(d.Grants, r.grant)
			if r.warning != "" {
				d.Warnings = append(d.Warnings, r.warning)
			}
		}
	}
	if !proven {
		d.Warnings = append(d.Warnings, "sia: what it chose is not proven to be the best")
	}
	if len(s.Jobs()) > 0 {
		d.Wake = s.Now + p.interval
	}
	return d, nil
}

// explain says what decided about a job.
func (p *sia) explain(s *scheduler.Snapshot, d *scheduler.Decision, r *siaRow, pick int) {
	switch {
	case r.grant.Same(r.Grant) && r.grant != nil:
	case pick < 0:
		d.Because(s, r.Job.ID, "waiting costs it %.3g, which is in the least sum of all", p.wait)
	case r.grant == nil:
		d.Because(s, r.Job.ID, "size %d is meant for it, and finds no room together", r.cells[pick].devices)
	default:
		d.Because(s, r.Job.ID, "size %d costs %.3g, which is in the least sum of all, and waiting %.3g", r.cells[pick].devices, r.costs[pick], p.wait)
	}
}

// row returns the configurations of j and what they cost.
func (p *sia) row(ctx context.Context, s *scheduler.Snapshot, j *scheduler.JobState) (*siaRow, error) {
	r := &siaRow{JobState: j}
	cv, err := p.belief.curve(ctx, s.Cluster, j.Job)
	if err != nil {
		return nil, err
	}
	if r.cells = p.cells(cv, s.Cluster); len(r.cells) == 0 {
		var options []option
		if options, r.warning, err = p.belief.guess(ctx, s, j); err != nil {
			return nil, err
		}
		for _, o := range options {
			r.cells = append(r.cells, siaCell{group: o.group, devices: o.devices, goodput: 1, options: []option{o}, blind: true})
		}
	}
	values := relative(r.cells)
	factor, now := restartFactor(s.Now, j), r.cellOf(s)
	for i, v := range values {
		if j.Grant != nil && i != now {
			v *= factor
		}
		r.costs = append(r.costs, math.Pow(v, p.exponent))
	}
	return r, nil
}

// relative returns the goodputs of cells in terms of the least of them, times the
// devices it takes.
func relative(cells []siaCell) []float64 {
	out, least := make([]float64, len(cells)), -1
	for i := range cells {
		if least < 0 || cells[i].goodput < cells[least].goodput {
			least = i
		}
	}
	for i := range cells {
		out[i] = cells[i].goodput / cells[least].goodput * float64(cells[least].devices)
	}
	return out
}

// restartFactor is r of a job that holds devices.
func restartFactor(now time.Duration, j *scheduler.JobState) float64 {
	age, cost := (now - j.Job.Submit).Seconds(), j.StartCost.Seconds()
	if age <= 0 {
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

// cells returns the configurations of a curve.
func (p *sia) cells(cv *curve, c spec.Cluster) []siaCell {
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

// fitsBesides reports whether so many devices are a power of two within a node or
// whole nodes.
func fitsBesides(devices, perNode int) bool {
	if devices < perNode {
		return devices&(devices-1) == 0
	}
	return devices%perNode == 0
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
