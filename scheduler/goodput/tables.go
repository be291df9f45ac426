package goodput

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Tables are the applications of a data set, by name. They are immutable and safe for
// concurrent use.
type Tables struct {
	apps   map[string]*app
	adjust Adjustment
}

// Adjustment changes the measured tables. The zero value changes nothing.
type Adjustment struct {
	Limits []Limit // the first match applies
	// Slowdowns divide the speed of a model, by name; "" is the default, missing = 1.
	Slowdowns map[string]float64
}

// Limit restricts where an application runs.
type Limit struct {
	Model       string
	Accelerator string // "" = on all
	Devices     int    // most devices, 0 = no limit
	Local       int    // most samples per device and micro-batch, 0 = no limit
}

// With returns t with an adjustment, which replaces that of t.
func (t *Tables) With(a Adjustment) *Tables { return &Tables{apps: t.apps, adjust: a} }

// limit returns the limit of an application on the devices of s.
func (t *Tables) limit(model string, s *speeds) Limit {
	for _, l := range t.adjust.Limits {
		if l.Model == model && (l.Accelerator == "" || l.Accelerator == s.accelerator) {
			return l
		}
	}
	return Limit{}
}

// slowdown returns the divisor of the speed of a model.
func (t *Tables) slowdown(model string) float64 {
	if by, ok := t.adjust.Slowdowns[model]; ok {
		return by
	}
	return cmp.Or(t.adjust.Slowdowns[""], 1)
}

// Keys returns the measured pairs of application and accelerator, sorted.
func (t *Tables) Keys() []spec.Key {
	var out []spec.Key
	for _, name := range slices.Sorted(maps.Keys(t.apps)) {
		for _, acc := range slices.Sorted(maps.Keys(t.apps[name].speeds)) {
			out = append(out, spec.Key{Model: name, Accelerator: acc})
		}
	}
	return out
}

// lookup returns a model's application and its speeds on an accelerator.
func (t *Tables) lookup(model, accelerator string) (*app, *speeds, error) {
	a, ok := t.apps[model]
	if !ok {
		return nil, nil, fmt.Errorf("goodput: no table for model %q, want one of %s: %w", model, strings.Join(slices.Sorted(maps.Keys(t.apps)), ", "), errNotCovered)
	}
	s, ok := a.speeds[accelerator]
	if !ok {
		return nil, nil, fmt.Errorf("goodput: %s was not measured on %q, only on %s: %w", model, accelerator, strings.Join(slices.Sorted(maps.Keys(a.speeds)), ", "), errNotCovered)
	}
	return a, s, nil
}

// app is the tables of one application.
type app struct {
	name   string
	runs   []run     // one for each validated global batch, ascending
	ends   []float64 // progress at the end of each epoch, in steps at the initial batch
	speeds map[string]*speeds
}

// run is a full training run at one global batch, by epoch. An epoch is statistical: it
// ends when training has made as much progress as at the initial batch.
type run struct {
	batch    int
	progress []float64 // at the end of the epoch, in steps at the initial batch
	steps    []float64 // steps until the end of the epoch
	// The gradient of one step at the initial batch has this squared norm and trace of
	// its covariance.
	sqr, variance []float64
}

// initial and largest are the smallest and largest batch that jobs may train.
func (a *app) initial() int { return a.runs[0].batch }
func (a *app) largest() int { return a.runs[len(a.runs)-1].batch }

// setEnds sets the ends of epochs: an epoch ends at its least progress over all runs,
// as in the simulator of Pollux.
func (a *app) setEnds() {
	slices.SortFunc(a.runs, func(x, y run) int { return x.batch - y.batch })
	epochs := len(a.runs[0].progress)
	for _, r := range a.runs {
		epochs = min(epochs, len(r.progress))
	}
	a.ends = make([]float64, epochs)
	for e := range a.ends {
		a.ends[e] = a.runs[0].progress[e]
		for _, r := range a.runs {
			a.ends[e] = min(a.ends[e], r.progress[e])
		}
	}
}

// between returns the runs with the next smaller and larger batch, and the position of
// the given batch between them, 0 to 1.
func (a *app) between(batch int) (lo, hi *run, share float64, err error) {
	if batch < a.initial() || batch > a.largest() {
		return nil, nil, 0, fmt.Errorf("goodput: %s was trained with %d to %d samples per step, not %d: %w", a.name, a.initial(), a.largest(), batch, errNotCovered)
	}
	i, exact := slices.BinarySearchFunc(a.runs, batch, func(r run, b int) int { return r.batch - b })
	if exact {
		return &a.runs[i], &a.runs[i], 0, nil
	}
	lo, hi = &a.runs[i-1], &a.runs[i]
	return lo, hi, float64(batch-lo.batch) / float64(hi.batch-lo.batch), nil
}

// gains returns, by epoch, the gain of a step at batch M: the number of steps at the
// initial batch M0 with the same progress, in [1, M/M0]:
//
//	gain = (var + sqr) / (var*M0/M + sqr)
//
//	sqr   squared norm of the gradient
//	var   trace of its covariance at M0
//
// Both are linear in M between trained batches.
//
// Source: Pollux, section 3.1; petuum/adaptdl at commit c793c70, class Job.
func (a *app) gains(batch int) ([]float64, error) {
	lo, hi, share, err := a.between(batch)
	if err != nil {
		return nil, err
	}
	scale := float64(batch) / float64(a.initial())
	out := make([]float64, len(a.ends))
	for e := range out {
		out[e] = noiseBetween(lo, hi, share, e).gain(scale)
	}
	return out, nil
}

// noise is the statistics of an epoch's gradients that determine gains, see run.
type noise struct{ sqr, variance float64 }

func noiseBetween(lo, hi *run, share float64, epoch int) noise {
	return noise{mix(lo.sqr[epoch], hi.sqr[epoch], share), mix(lo.variance[epoch], hi.variance[epoch], share)}
}

// gain returns the gain of a step at scale times the initial batch.
func (n noise) gain(scale float64) float64 {
	return (n.variance + n.sqr) / (n.variance/scale + n.sqr)
}

// noiseAt returns the noise at a batch in an epoch.
func (a *app) noiseAt(batch, epoch int) (noise, error) {
	lo, hi, share, err := a.between(batch)
	if err != nil {
		return noise{}, err
	}
	return noiseBetween(lo, hi, share, epoch), nil
}

// steps returns, by epoch, the steps until its end at a batch, as counted in training;
// linear between trained batches.
func (a *app) steps(batch int) ([]float64, error) {
	lo, hi, share, err := a.between(batch)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(a.ends))
	for e := range out {
		out[e] = mix(lo.steps[e], hi.steps[e], share)
	}
	return out, nil
}

// mix is a at share 0 and b at share 1.
func mix(a, b, share float64) float64 {
	if share == 0 {
		return a
	}
	return (1-share)*a + share*b
}
