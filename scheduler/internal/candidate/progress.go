package candidate

import (
	"cmp"
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
	observed  map[ranKey]*observation
	revisions map[string]int  // changes of predictions, by name of the model
	sizes     map[sizeKey]int // the last of them for configurations of a size
}

// sizeKey identifies the configurations of a model on so many devices.
type sizeKey struct {
	model          string
	group, devices int
}

// ranKey identifies jobs of equal speed.
type ranKey struct {
	model spec.Model
	seq   int
	group int
	plan  spec.Plan // normal
	shape spec.Shape
}

// stretch is the run of a job in one configuration.
type stretch struct {
	since time.Duration // JobState.Since
	at    time.Duration // the last decision
	done  float64       // JobState.Done then
}

// observation is the progress of all jobs in one configuration.
type observation struct {
	ran
	used ran // what predictions use
}

// ran is the progress of jobs in some time.
type ran struct{ steps, seconds float64 }

// Observe learns from the progress of jobs since the last call: candidates have the speed with which jobs ran in them. held has
// the running jobs, each with its candidate. It reports whether candidates changed. An oracle that learns has observations of
// its own, so there is nothing to do then.
func (f *Finder) Observe(now time.Duration, held iter.Seq2[*scheduler.JobState, *Config]) (changed bool) {
	if f.Learns != nil || f.Oracle == nil {
		return false
	}
	p := &f.progress
	running := make(map[spec.JobID]stretch, len(p.running))
	for j, w := range held {
		last, ok := p.running[j.Job.ID]
		if running[j.Job.ID] = (stretch{j.Since, now, j.Done}); !ok || last.since != j.Since || w.Spread == 0 {
			continue
		}
		r := ran{j.Done - last.done, (now - max(last.at, j.Ready)).Seconds()}
		if r.steps > 0 && r.seconds > 0 {
			changed = p.add(ranKey{j.Job.Model, j.Job.SeqLen, w.Group, w.Plan.Normal(), w.Shape}, r, w.Spread) || changed
		}
	}
	p.running = running
	return changed
}

// add adds an observation of a configuration with this Config.Spread. Predictions change when it is more exact than they are,
// and then whenever there are twice the steps.
func (p *progress) add(key ranKey, r ran, spread float64) (changed bool) {
	o := p.observed[key]
	if o == nil {
		o = &observation{}
		if p.observed == nil {
			p.observed, p.revisions, p.sizes = map[ranKey]*observation{}, map[string]int{}, map[sizeKey]int{}
		}
		p.observed[key] = o
	}
	o.steps, o.seconds = o.steps+r.steps, o.seconds+r.seconds
	if o.steps < max(2*o.used.steps, stats.Normal90/spread) {
		return false
	}
	o.used = o.ran
	model := key.model.Name
	p.revisions[model]++
	p.sizes[sizeKey{model, key.group, key.shape.Total()}] = p.revisions[model]
	return true
}

// changed reports whether predictions of configurations of a size changed after a revision.
func (p *progress) changed(model string, group, devices, revision int) bool {
	return p.sizes[sizeKey{model, group, devices}] > revision
}

// correct changes the prediction of c on devices of a group to the mean with what was observed.
func (p *progress) correct(c *spec.Config, group int, out *spec.Prediction) {
	o, spread := p.observed[ranKey{c.Model, c.SeqLen, group, c.Plan.Normal(), c.Shape}], out.HalfWidth()
	if o == nil || o.used.steps == 0 || spread == 0 {
		return
	}
	// The variances are those of spread/Normal90 and 1/steps.
	exact := spread / stats.Normal90 * o.used.steps
	weight := 1 / (1 + 1/(exact*exact))
	observed := o.used.steps / o.used.seconds * float64(c.Plan.GlobalBatch())
	out.Throughput *= math.Pow(observed/out.Throughput, weight)
	width := math.Exp(spread * math.Sqrt(1-weight))
	out.Lo, out.Hi = out.Throughput/width, out.Throughput*width
}

// corrected is an oracle with predictions that progress corrects, on devices of one group. Only Predict and Rank are.
type corrected struct {
	scheduler.Oracle
	*progress
	group int
}

// oracle returns f.Oracle with what was observed of a model on so many devices of a group.
func (f *Finder) oracle(model string, group, devices int) scheduler.Oracle {
	if !f.progress.changed(model, group, devices, 0) {
		return f.Oracle
	}
	return corrected{f.Oracle, &f.progress, group}
}

func (o corrected) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, err := o.Oracle.Predict(ctx, c)
	if err == nil {
		o.correct(&c, o.group, &p)
	}
	return p, err
}

func (o corrected) Rank(ctx context.Context, r planner.Request) (planner.Ranking, error) {
	out, err := o.Oracle.Rank(ctx, r)
	out.Choices = slices.Clone(out.Choices)
	for i := range out.Choices {
		c := &out.Choices[i]
		o.correct(&c.Config, o.group, &c.Prediction)
	}
	slices.SortStableFunc(out.Choices, func(a, b planner.Choice) int { return cmp.Compare(b.Prediction.Throughput, a.Prediction.Throughput) })
	return out, err
}
