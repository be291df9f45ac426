package goodput

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Tables are the applications of a data set, by name. Immutable once read, and
// safe for concurrent use.
type Tables struct {
	apps   map[string]*app
	adjust Adjustment
}

// Adjustment changes what was measured. The zero value changes nothing.
type Adjustment struct {
	Limits []Limit // the first that matches applies
	// Slowdowns divide the speed of a model, by name; "" is for all others, none = 1.
	Slowdowns map[string]float64
}

// Limit restricts where an application runs.
type Limit struct {
	Model       string
	Accelerator string // "" = on all
	Devices     int    // at most, 0 = no limit
	Local       int    // samples per device and micro-batch at most, 0 = no limit
}

// With returns t as adjusted, in place of any adjustment before.
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

// Keys returns what is known: which applications on which accelerators, sorted.
func (t *Tables) Keys() []spec.Key {
	var out []spec.Key
	for _, name := range slices.Sorted(maps.Keys(t.apps)) {
		for _, acc := range slices.Sorted(maps.Keys(t.apps[name].speeds)) {
			out = append(out, spec.Key{Model: name, Accelerator: acc})
		}
	}
	return out
}

// lookup returns what is known of a model on an accelerator.
func (t *Tables) lookup(model, accelerator string) (*app, *speeds, error) {
	a, ok := t.apps[model]
	if !ok {
		return nil, nil, fmt.Errorf("goodput: no table of %q, there are: %s: %w", model, strings.Join(slices.Sorted(maps.Keys(t.apps)), ", "), errNotCovered)
	}
	s, ok := a.speeds[accelerator]
	if !ok {
		return nil, nil, fmt.Errorf("goodput: %s was not measured on %q, but on: %s: %w", model, accelerator, strings.Join(slices.Sorted(maps.Keys(a.speeds)), ", "), errNotCovered)
	}
	return a, s, nil
}

// app is what is known of one application.
type app struct {
	name   string
	runs   []run     // one for each validated global batch, ascending
	ends   []float64 // progress at the end of each epoch, in steps at the initial batch
	speeds map[string]*speeds
}

// run is a full training run at one global batch, by epoch. An epoch is
// statistical: it ends when training has come as far as at the initial batch.
type run struct {
	batch    int
	progress []float64 // at the end of the epoch, in steps at the initial batch
	steps    []float64 // run by the end of the epoch
	// Of the gradient of one step at the initial batch: its squared norm, and the
	// trace of its covariance.
	sqr, variance []float64
}

// initial and largest are the batches between which jobs may train.
func (a *app) initial() int { return a.runs[0].batch }
func (a *app) largest() int { return a.runs[len(a.runs)-1].batch }

// settle works out what follows from the runs: an epoch ends as soon as it does
// in any of them, as in the simulator of Pollux.
func (a *app) settle() {
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

// between returns the runs whose batches are next to the given one, and how far
// it is from the first to the second.
func (a *app) between(batch int) (lo, hi *run, share float64, err error) {
	if batch < a.initial() || batch > a.largest() {
		return nil, nil, 0, fmt.Errorf("goodput: %s was trained with %d to %d samples a step, not %d: %w", a.name, a.initial(), a.largest(), batch, errNotCovered)
	}
	i, exact := slices.BinarySearchFunc(a.runs, batch, func(r run, b int) int { return r.batch - b })
	if exact {
		return &a.runs[i], &a.runs[i], 0, nil
	}
	lo, hi = &a.runs[i-1], &a.runs[i]
	return lo, hi, float64(batch-lo.batch) / float64(hi.batch-lo.batch), nil
}

// gains returns, by epoch, how many steps at the initial batch M0 one step at
// batch M is worth, in [1, M/M0]:
//
//	gain = (var + sqr) / (var*M0/M + sqr)
//
//	sqr   squared norm of the gradient; var  trace of its covariance at M0;
//	      both linear in M between the batches that were trained
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

// noise is what of the gradients of an epoch decides what larger batches are worth.
type noise struct{ sqr, variance float64 }

func noiseBetween(lo, hi *run, share float64, epoch int) noise {
	return noise{mix(lo.sqr[epoch], hi.sqr[epoch], share), mix(lo.variance[epoch], hi.variance[epoch], share)}
}

// gain returns what a step is worth at a batch scale times the initial one.
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

// steps returns, by epoch, the steps run by its end at a batch, as they were
// counted in training: linear between the batches that were trained.
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
