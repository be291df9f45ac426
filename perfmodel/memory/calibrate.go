package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

const (
	// rowNoise is the standard deviation of log(measured / estimated) between runs of one model on one stack,
	// for example from peaks printed in whole GB and from allocators near their limit. modelNoise is that of
	// the error shared by all runs of one model.
	rowNoise, modelNoise = 0.06, 0.08
	// sourceRows limits the weight of one data source, in rows.
	sourceRows = 20
	// priorRows is the weight of the prior's spread, in rows.
	priorRows = 5
	// stackSpread is the prior standard deviation between stacks, in log memory: Megatron Core's peaks were this
	// far off before its own tensors were counted. It has the weight of priorStacks stacks.
	stackSpread, priorStacks = 0.1, 2
)

// Calibrate fits the constants to the measured peaks of rows: first the constants common to all training stacks
// from all rows, then those of each stack, shrunk towards the common ones. It ignores rows that are not OK,
// record no peak, are in doubt, have no sequence length, or have a model that cannot be counted per tensor.
// Without a usable row it returns Prior.
//
// The fit is the maximum a posteriori in log memory under Prior, with a robust likelihood. The result does not
// depend on the order of rows. The spreads above and in `between` were chosen with the published rows in view,
// so that a few rows of a stack do not worsen the others of that stack. The error is that of ctx, or reports
// values that are not finite.
func Calibrate(ctx context.Context, rows []spec.Measurement) (*Calibration, error) {
	obs := usable(rows)
	out := Prior()
	if len(obs) == 0 {
		return out, nil
	}
	fit, err := fitDistribution(ctx, &out.Pooled, obs)
	if err != nil {
		return nil, err
	}
	cal := &Calibration{Pooled: fit, Stacks: map[string]Distribution{}}
	groups := byStack(obs)
	cal.Pooled.LogSD = unseenStack(groups, &fit)
	return cal.conditioned(ctx, groups)
}

// Condition returns cal updated by rows: the constants of the training stacks in rows start from those of cal;
// other stacks keep theirs. It does not change cal. Rows are selected, and errors are, as in Calibrate.
func Condition(ctx context.Context, cal *Calibration, rows []spec.Measurement) (*Calibration, error) {
	return cal.conditioned(ctx, byStack(usable(rows)))
}

func (cal *Calibration) conditioned(ctx context.Context, groups map[string][]observation) (*Calibration, error) {
	out := &Calibration{Pooled: cal.Pooled, Stacks: maps.Clone(cal.Stacks)}
	if out.Stacks == nil {
		out.Stacks = map[string]Distribution{}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		prior, ok := cal.Stacks[name]
		if !ok {
			prior = cal.Pooled
			prior.Rows = 0
			prior.SD = widened(prior.SD)
		}
		b, err := fitDistribution(ctx, &prior, groups[name])
		if err != nil {
			return nil, err
		}
		out.Stacks[name] = b
	}
	return out, nil
}

// widened returns the spread of one stack's constants, given sd, the spread of the common ones.
func widened(sd Constants) Constants {
	v, w := sd.vector(), between.vector()
	for i := range v {
		v[i] = math.Hypot(v[i], w[i])
	}
	return fromVector(v)
}

// observation is a row prepared for the fit.
type observation struct {
	est    Estimator
	plan   spec.Plan
	log    float64 // log of the peak in bytes
	kind   stack.Memory
	source string
	model  string
}

// usable returns the rows with a peak that can be estimated, in an order that does not depend on that of rows.
func usable(rows []spec.Measurement) []observation {
	var all []observation
	var from []*spec.Measurement
	var configs []spec.Config
	for i := range rows {
		m := &rows[i]
		if m.Outcome != spec.OK || !(m.PeakBytes > 0) || math.IsInf(m.PeakBytes, 0) || m.DoubtReason() != "" || m.Config.Seq() == 0 {
			continue
		}
		e, err := Prior().For(m.Config)
		if err != nil || !e.shape {
			continue
		}
		all = append(all, observation{est: e, plan: m.Config.Plan, log: math.Log(m.PeakBytes), kind: KindOf(m), source: m.Source, model: m.Source + "/" + m.Config.Model.Name})
		from, configs = append(from, m), append(configs, m.Config)
	}
	out := make([]observation, 0, len(all))
	for _, i := range perfmodel.OrderConfigs(configs, func(i, j int) int {
		a, b := from[i], from[j]
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.PeakBytes, b.PeakBytes))
	}) {
		out = append(out, all[i])
	}
	return out
}

func byStack(obs []observation) map[string][]observation {
	out := map[string][]observation{}
	for _, o := range obs {
		out[o.est.of.Name] = append(out[o.est.of.Name], o)
	}
	return out
}

// fitDistribution returns prior updated by obs.
func fitDistribution(ctx context.Context, prior *Distribution, obs []observation) (Distribution, error) {
	p := bayes.Regression{
		Prior:  bayes.Independent(prior.logs(), prior.SD.vector()),
		Noise:  make([]float64, len(obs)),
		Weight: sourceWeights(obs),
		Y:      make([]float64, len(obs)),
		Tail:   1,
		Predict: func(x, out []float64) error {
			k := fromLogs(x)
			for i := range obs {
				out[i] = logPrinted(&obs[i], k)
			}
			return ctx.Err()
		},
	}
	n := map[string]float64{}
	for i := range obs {
		n[obs[i].model]++
	}
	for i := range obs {
		// n rows with a shared error determine their mean as well as n rows without a shared error and with
		// this larger noise.
		p.Y[i], p.Noise[i] = obs[i].log, math.Sqrt(rowNoise*rowNoise+n[obs[i].model]*modelNoise*modelNoise)
	}
	post, err := p.Fit()
	if err != nil {
		return Distribution{}, fmt.Errorf("memory: %w", err)
	}
	b := Distribution{Constants: fromLogs(post.Mean), Rows: prior.Rows + len(obs), LogSD: spread(prior.LogSD, post.LeftOut)}
	sd := make([]float64, len(post.Mean))
	for i := range sd {
		sd[i] = math.Sqrt(post.Cov.At(i, i))
	}
	b.SD = fromVector(sd)
	return b, nil
}

func logPrinted(o *observation, k Constants) float64 {
	e := o.est
	own := *e.variant
	own.k, e.variant = k, &own
	if e.rest != nil {
		e.rest = slices.Clone(e.rest)
		for i := range e.rest {
			e.rest[i].k = k
		}
	}
	return math.Log(e.Measured(o.plan, o.kind))
}

// sourceWeights returns the weight of each row: at most sourceRows per source.
func sourceWeights(obs []observation) []float64 {
	n := map[string]float64{}
	for i := range obs {
		n[obs[i].source]++
	}
	w := make([]float64, len(obs))
	for i := range obs {
		w[i] = min(1, sourceRows/n[obs[i].source])
	}
	return w
}

// spread returns the standard deviation of residuals, with prior counting as priorRows of them. A residual
// counts as at most three prior standard deviations.
func spread(prior float64, residuals []float64) float64 {
	sum := priorRows * prior * prior
	for _, r := range residuals {
		r = min(math.Abs(r), 3*prior)
		sum += r * r
	}
	return math.Sqrt(sum / float64(priorRows+len(residuals)))
}

// unseenStack returns the spread for a stack without measurements. It combines the spread of rows within stacks
// and that of stacks around the common constants.
func unseenStack(groups map[string][]observation, pooled *Distribution) float64 {
	sum := float64(priorStacks) * stackSpread * stackSpread
	for _, name := range slices.Sorted(maps.Keys(groups)) { // fixed order: sums of floats depend on it
		obs, mean := groups[name], 0.0
		for i := range obs {
			mean += (obs[i].log - logPrinted(&obs[i], pooled.Constants)) / float64(len(obs))
		}
		sum += mean * mean
	}
	return math.Hypot(pooled.LogSD, math.Sqrt(sum/float64(priorStacks+len(groups))))
}
