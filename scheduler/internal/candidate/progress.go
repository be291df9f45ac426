package candidate

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/scheduler"
)

// progress is the speed of configurations in which jobs made progress. A prediction becomes the mean of what was predicted
// and what was observed, by logarithms, each weighted with the reciprocal of its variance. The predicted one has that of its
// interval. The rate of n steps is exact to one step, so that its logarithm has a standard deviation of 1/n.
type progress struct {
	running   map[spec.JobID]stretch
	revisions map[string]int  // changes of predictions, by name of the model
	shared    map[string]bool // models of a structure: an observation changes all their predictions
	sizes     map[sizeKey]*size
	kept      int // configurations in sizes
}

// sizeKey identifies the configurations of a model on so many devices.
type sizeKey struct {
	model          string
	group, devices int
}

// size has the configurations of a size in which jobs ran.
type size struct {
	revision int // the last of progress.revisions that changed one of them
	ran      map[ranKey]*observation
}

// ranKey identifies jobs of equal speed, with a sizeKey.
type ranKey struct {
	model spec.Model
	seq   int
	plan  spec.Plan // normal
	shape spec.Shape
}

// stretch is what was observed of a job with a grant.
type stretch struct {
	since time.Duration // JobState.Since
	ran   scheduler.Ran
}

// observation is the progress of all jobs in one configuration.
type observation struct {
	now  ran // since used was replaced for the last time
	used ran // what predictions use
}

// ran is progress in some time.
type ran struct{ steps, seconds float64 }

const (
	// mostSteps is the number of steps after which an observation begins anew, so that it follows the speed of today. They are
	// exact to a thousandth.
	mostSteps = 1000
	// sameSpeed is the part by which an observed speed differs at most from the one before it that remains in use.
	sameSpeed = 0.01
	// mostRan bounds the configurations that are kept.
	mostRan = 4096
)

// Observe learns from the progress of jobs since the last call: candidates have the speed with which jobs ran in them. held has
// the running jobs, each with its candidate. It reports whether candidates changed. An oracle that learns has observations of
// its own, so there is nothing to do then.
func (f *Finder) Observe(held iter.Seq2[*scheduler.JobState, *Config]) (changed bool) {
	if f.Learns != nil || f.Oracle == nil {
		return false
	}
	p := &f.progress
	running := make(map[spec.JobID]stretch, len(p.running))
	for j, w := range held {
		last := p.running[j.Job.ID].ran
		if p.running[j.Job.ID].since != j.Since || j.Ran.Time < last.Time {
			last = scheduler.Ran{}
		}
		running[j.Job.ID] = stretch{j.Since, j.Ran}
		r := ran{j.Ran.Steps - last.Steps, (j.Ran.Time - last.Time).Seconds()}
		if r.steps > 0 && r.seconds > 0 && w.Spread > 0 && w.Plan.GlobalBatch() == j.Job.Batch() {
			key := sizeKey{j.Job.Model.Name, w.Group, w.Devices}
			changed = p.add(key, ranKey{j.Job.Model, j.Job.SeqLen, w.Plan.Normal(), w.Shape}, r, w.Spread) || changed
		}
	}
	p.running = running
	return changed
}

// add adds an observation of a configuration with this Config.Spread. Predictions change when it is more exact than they are,
// then whenever there are twice the steps, and after mostSteps with every so many, unless the speed is the same.
func (p *progress) add(key sizeKey, of ranKey, r ran, spread float64) (changed bool) {
	if p.sizes == nil {
		p.sizes, p.revisions = map[sizeKey]*size{}, map[string]int{}
	}
	if p.kept >= mostRan {
		p.forget()
	}
	n := p.sizes[key]
	if n == nil {
		n = &size{ran: map[ranKey]*observation{}}
		p.sizes[key] = n
	}
	o := n.ran[of]
	if o == nil {
		o = &observation{}
		n.ran[of] = o
		p.kept++
	}
	o.now.steps, o.now.seconds = o.now.steps+r.steps, o.now.seconds+r.seconds
	if o.now.steps < min(max(2*o.used.steps, stats.Normal90/spread), mostSteps) {
		return false
	}
	before := o.used
	o.used = o.now
	if o.now.steps >= mostSteps {
		o.now = ran{}
		if before.steps >= mostSteps/2 && math.Abs(math.Log(o.used.rate()/before.rate())) < sameSpeed {
			o.used = before
			return false
		}
	}
	p.revisions[key.model]++
	n.revision = p.revisions[key.model]
	return true
}

func (r ran) rate() float64 { return r.steps / r.seconds }

// forget removes all observations.
func (p *progress) forget() {
	for key, n := range p.sizes {
		p.revisions[key.model]++
		*n = size{p.revisions[key.model], map[ranKey]*observation{}}
	}
	p.kept = 0
}

// revision returns the last revision that changed predictions of configurations of a size, 0 if none did.
func (p *progress) revision(model string, group, devices int) int {
	if p.shared[model] {
		return p.revisions[model]
	}
	if n := p.sizes[sizeKey{model, group, devices}]; n != nil {
		return n.revision
	}
	return 0
}

// correct changes the prediction of c to the mean with what was observed.
func (n *size) correct(c *spec.Config, out *spec.Prediction) {
	o, spread := n.ran[ranOf(c)], out.HalfWidth()
	if o == nil || o.used.steps == 0 || spread == 0 {
		return
	}
	// The variances are those of spread/Normal90 and 1/steps.
	exact := spread / stats.Normal90 * o.used.steps
	weight := 1 / (1 + 1/(exact*exact))
	out.Throughput *= math.Pow(o.used.rate()*float64(c.Plan.GlobalBatch())/out.Throughput, weight)
	width := math.Exp(spread * math.Sqrt(1-weight))
	out.Lo, out.Hi = out.Throughput/width, out.Throughput*width
}

func ranOf(c *spec.Config) ranKey { return ranKey{c.Model, c.SeqLen, c.Plan.Normal(), c.Shape} }

// predict is Oracle.Predict on devices of a group, with what was observed.
func (f *Finder) predict(ctx context.Context, c spec.Config, group int) (spec.Prediction, error) {
	p, err := f.Oracle.Predict(ctx, c)
	if n := f.progress.sizes[sizeKey{c.Model.Name, group, c.Shape.Total()}]; n != nil && err == nil {
		n.correct(&c, &p)
	}
	return p, err
}

// perShape is scheduler.PerShape on devices of a group, with what was observed.
func (f *Finder) perShape(ctx context.Context, r planner.Request, group int, g *spec.NodeGroup, accept func(*spec.Config) bool) ([]planner.Choice, error) {
	out, err := f.perShapeAlone(ctx, r, group, accept)
	if err != nil || len(out) == 0 || !independent(&out[0].Prediction) {
		return out, err
	}
	s, err := f.structureOf(ctx, &r, group, g)
	if s == nil || err != nil {
		return out, err
	}
	if r.Plan == nil && s.choices[r.Devices] != nil {
		return s.perShape(r.Devices, accept), nil
	}
	out = slices.Clone(out)
	for i := range out {
		s.correct(&out[i].Config, &out[i].Prediction)
	}
	return fastest(out), nil
}

// perShapeAlone is perShape with what was observed of each configuration alone.
func (f *Finder) perShapeAlone(ctx context.Context, r planner.Request, group int, accept func(*spec.Config) bool) ([]planner.Choice, error) {
	var seen []ranKey
	n := f.progress.sizes[sizeKey{r.Model.Name, group, r.Devices}]
	if n != nil {
		for k, o := range n.ran {
			if o.used.steps > 0 && k.model == r.Model && k.seq == r.SeqLen && k.plan.GlobalBatch() == r.GlobalBatch {
				seen = append(seen, k)
			}
		}
	}
	if seen == nil {
		return scheduler.PerShape(ctx, f.Oracle, r, accept)
	}
	// The best of the others, and each that ran.
	out, err := scheduler.PerShape(ctx, f.Oracle, r, func(c *spec.Config) bool { return !slices.Contains(seen, ranOf(c)) && accept(c) })
	if err != nil {
		return nil, err
	}
	out = slices.Clone(out)
	for _, k := range seen {
		one, err := scheduler.PerShape(ctx, f.Oracle, r, func(c *spec.Config) bool { return ranOf(c) == k && accept(c) })
		if err != nil {
			return nil, err
		}
		for _, c := range one {
			n.correct(&c.Config, &c.Prediction)
			out = append(out, c)
		}
	}
	return fastest(out), nil
}
