package memory

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/internal/bayes"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

const (
	// rowNoise is the spread of log(measured / estimated) between runs of one
	// model on one stack: figures printed to the GB, allocators near their limit.
	// modelNoise is what all runs of one model are off together.
	rowNoise, modelNoise = 0.06, 0.08
	// sourceRows bounds what one source counts for, so that many rows of one
	// document do not outvote another.
	sourceRows = 20
	// priorRows is how many rows the spread believed beforehand counts for.
	priorRows = 5
	// stackSpread is how far stacks are believed to be from what all have in
	// common, in log memory, counting for priorStacks stacks.
	stackSpread, priorStacks = 0.05, 2
)

// Calibrate fits the constants to the peaks rows record: what all training
// stacks have in common from all rows, then what each adds, shrunk to that.
// Rows that are not OK, record no peak, are doubted, or name neither a sequence
// length nor a model this package counts are left out. With no usable row it
// returns Prior.
//
// It is the maximum a posteriori in log memory under Prior, with a robust
// likelihood; the result does not depend on the order of rows. The spreads
// above and in between were chosen with the published rows in view, so that
// few rows of a stack do not make others of it worse.
func Calibrate(rows []spec.Measurement) (*Calibration, error) {
	obs := usable(rows)
	out := Prior()
	if len(obs) == 0 {
		return out, nil
	}
	fit, err := fitBelief(&out.Pooled, obs)
	if err != nil {
		return nil, err
	}
	cal := &Calibration{Pooled: fit, Stacks: map[string]Belief{}}
	groups := byStack(obs)
	cal.Pooled.LogSD = unseenStack(groups, &fit)
	return cal.conditioned(groups)
}

// Condition returns cal with what rows say of the training stacks they ran:
// their constants move from where cal has them, as far as the rows warrant.
// Rows are chosen as by Calibrate; of other stacks nothing changes.
func Condition(cal *Calibration, rows []spec.Measurement) (*Calibration, error) {
	return cal.conditioned(byStack(usable(rows)))
}

func (cal *Calibration) conditioned(groups map[string][]observation) (*Calibration, error) {
	out := &Calibration{Pooled: cal.Pooled, Stacks: maps.Clone(cal.Stacks)}
	if out.Stacks == nil {
		out.Stacks = map[string]Belief{}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		prior, ok := cal.Stacks[name]
		if !ok {
			prior = cal.Pooled
			prior.Rows = 0
			prior.SD = widened(prior.SD)
		}
		b, err := fitBelief(&prior, groups[name])
		if err != nil {
			return nil, err
		}
		out.Stacks[name] = b
	}
	return out, nil
}

// widened returns the spread of one stack's constants where sd is that of what
// all have in common.
func widened(sd Constants) Constants {
	v, w := sd.vector(), between.vector()
	for i := range v {
		v[i] = math.Hypot(v[i], w[i])
	}
	return fromVector(v)
}

// observation is a row on its way into a fit.
type observation struct {
	est    Estimator
	plan   spec.Plan
	log    float64 // of the peak in bytes
	source string
	model  string
	row    string // names it, for a stable order
}

func usable(rows []spec.Measurement) []observation {
	var out []observation
	for i := range rows {
		m := &rows[i]
		if m.Outcome != spec.OK || !(m.PeakBytes > 0) || math.IsInf(m.PeakBytes, 0) || m.Doubt != "" || m.WrongConfig() || m.Config.Seq() == 0 {
			continue
		}
		e, err := Prior().For(m.Config)
		if err != nil || !e.shape {
			continue
		}
		out = append(out, observation{est: e, plan: m.Config.Plan, log: math.Log(m.PeakBytes), source: m.Source, model: m.Source + "/" + m.Config.Model.Name,
			row: fmt.Sprintf("%s/%s/%s/%g", m.Source, m.Origin, m.Config.Plan, m.PeakBytes)})
	}
	slices.SortStableFunc(out, func(a, b observation) int {
		switch {
		case a.row < b.row:
			return -1
		case a.row > b.row:
			return 1
		}
		return 0
	})
	return out
}

func byStack(obs []observation) map[string][]observation {
	out := map[string][]observation{}
	for _, o := range obs {
		out[o.est.stack.name] = append(out[o.est.stack.name], o)
	}
	return out
}

// fitBelief returns prior updated by obs.
func fitBelief(prior *Belief, obs []observation) (Belief, error) {
	p := bayes.Problem{
		Prior:  bayes.Independent(prior.logs(), prior.SD.vector()),
		Noise:  make([]float64, len(obs)),
		Weight: sourceWeights(obs),
		Y:      make([]float64, len(obs)),
		Tail:   1,
		Predict: func(x, out []float64) {
			k := fromLogs(x)
			for i := range obs {
				out[i] = logPrinted(&obs[i], k)
			}
		},
	}
	n := map[string]float64{}
	for i := range obs {
		n[obs[i].model]++
	}
	for i := range obs {
		// n rows that share an error of their own tell no more of their mean than
		// rows without it and this much more noise.
		p.Y[i], p.Noise[i] = obs[i].log, math.Sqrt(rowNoise*rowNoise+n[obs[i].model]*modelNoise*modelNoise)
	}
	post, err := p.Fit()
	if err != nil {
		return Belief{}, fmt.Errorf("memory: %w", err)
	}
	b := Belief{Constants: fromLogs(post.Mean), Rows: prior.Rows + len(obs), LogSD: spread(prior.LogSD, post.LeftOut)}
	sd := make([]float64, len(post.Mean))
	for i := range sd {
		sd[i] = math.Sqrt(post.Cov.At(i, i))
	}
	b.SD = fromVector(sd)
	return b, nil
}

func logPrinted(o *observation, k Constants) float64 {
	e := o.est
	e.k = k
	return math.Log(e.Printed(o.plan))
}

// sourceWeights makes the rows of each source count for sourceRows at most.
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

// spread returns the standard deviation of residuals, prior counting for
// priorRows of them; a residual counts for three standard deviations at most.
func spread(prior float64, residuals []float64) float64 {
	sum := priorRows * prior * prior
	for _, r := range residuals {
		r = min(math.Abs(r), 3*prior)
		sum += r * r
	}
	return math.Sqrt(sum / float64(priorRows+len(residuals)))
}

// unseenStack returns the spread for a stack nobody measured: that of rows
// within stacks, and that of stacks around what they have in common.
func unseenStack(groups map[string][]observation, pooled *Belief) float64 {
	sum := float64(priorStacks) * stackSpread * stackSpread
	for _, name := range slices.Sorted(maps.Keys(groups)) { // sums depend on their order
		obs, mean := groups[name], 0.0
		for i := range obs {
			mean += (obs[i].log - logPrinted(&obs[i], pooled.Constants)) / float64(len(obs))
		}
		sum += mean * mean
	}
	return math.Hypot(pooled.LogSD, math.Sqrt(sum/float64(priorStacks+len(groups))))
}
