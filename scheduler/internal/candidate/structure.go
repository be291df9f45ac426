package candidate

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/planner"
)

// structure estimates the speeds of all configurations of a kind of job on a group from all their predictions. The
// fastest of many uncertain predictions is mostly too high (winner's curse). Speeds of configurations that are alike
// are alike, so that their predictions say how much. The logarithms of speeds are a Gaussian process, see alike, and
// each prediction has an error of its own with the standard deviation of its interval: a table does, the errors of a
// fitted model are common. The variances are those of maximum likelihood (empirical Bayes): what similar
// configurations have in common is seen in the predictions, and nothing has to be tuned.
type structure struct {
	choices  map[int][]planner.Choice // by number of devices, as predicted
	index    map[ranKey]int           // in those below
	configs  []*planner.Choice
	alike    []parts // of each pair, by row
	variance parts   // of the speeds' parts

	revision int // progress.revisions at the last estimate
	mean, sd []float64
}

// structureKey identifies configurations that have a structure.
type structureKey struct {
	model      spec.Model
	seq, batch int
	precision  spec.Precision
	group      int
}

// parts has a value for each part of the logarithm of a speed, see alike.
type parts [6]float64

const (
	// maxStructured bounds the configurations of a structure: its time grows with the third power of them.
	maxStructured = 200
	// anyMean is the variance of the mean of all logarithms: it is not known.
	anyMean = 10
)

// independent reports whether a prediction has an error of its own: it is of a table that states its errors.
func independent(p *spec.Prediction) bool { return p.By == spec.ByTable && p.HalfWidth() > 0 }

// structureOf returns the structure of the configurations of a request, with an independent prediction; nil if the oracle
// learns by itself, if there are too many configurations, or if others have no such predictions.
func (f *Finder) structureOf(ctx context.Context, r *planner.Request, group int, g *spec.NodeGroup) (*structure, error) {
	if !f.Structured || f.Learns != nil {
		return nil, nil
	}
	key := structureKey{r.Model, r.SeqLen, r.GlobalBatch, r.Precision, group}
	s, known := f.structures[key]
	if !known {
		var err error
		if s, err = f.newStructure(ctx, *r, g); err != nil {
			return nil, err
		}
		f.structures[key] = s
		f.progress.shared[r.Model.Name] = f.progress.shared[r.Model.Name] || s != nil
	}
	if s != nil && (s.mean == nil || s.revision != f.progress.revisions[r.Model.Name]) {
		s.estimate(&f.progress, group)
		s.revision = f.progress.revisions[r.Model.Name]
	}
	return s, nil
}

// newStructure queries all configurations of a request, on any number of devices.
func (f *Finder) newStructure(ctx context.Context, r planner.Request, g *spec.NodeGroup) (*structure, error) {
	s := &structure{choices: map[int][]planner.Choice{}, index: map[ranKey]int{}}
	r.Plan = nil
	for _, n := range Sizes(g) {
		r.Devices = n
		ranking, err := f.Oracle.Rank(ctx, r)
		if errors.Is(err, planner.ErrInfeasible) || errors.Is(err, perfmodel.ErrNotCovered) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all := slices.DeleteFunc(slices.Clone(ranking.Choices), func(c planner.Choice) bool { return !c.Fits || c.Prediction.Throughput <= 0 })
		for i := range all {
			if !independent(&all[i].Prediction) {
				return nil, nil
			}
			s.index[ranOf(&all[i].Config)] = len(s.configs)
			s.configs = append(s.configs, &all[i])
		}
		s.choices[n] = all
		if len(s.configs) > maxStructured {
			return nil, nil
		}
	}
	if len(s.configs) == 0 {
		return nil, nil
	}
	s.fit()
	return s, nil
}

// alike returns the covariance of each part of the logarithms of two speeds, for a variance of 1: of the kind of the
// plan; of the devices and of the nodes, random walks over the logarithm of their number; of the devices with this
// kind; of the shape; and of the configuration alone.
func alike(a, b *spec.Config) (out parts) {
	if scaled(a.Plan) == scaled(b.Plan) {
		out[0] = 1
	}
	out[1] = math.Log(float64(min(a.Shape.Total(), b.Shape.Total())))
	out[2] = math.Log(float64(min(a.Shape.Nodes(), b.Shape.Nodes())))
	out[3] = out[0] * out[1]
	if a.Shape == b.Shape {
		out[4] = 1
		if a.Plan.Normal() == b.Plan.Normal() {
			out[5] = 1
		}
	}
	return out
}

// predicted returns the logarithm of a prediction, and its standard deviation.
func predicted(p *spec.Prediction) (mean, sd float64) {
	return math.Log(p.Throughput), p.HalfWidth() / stats.Normal90
}

// fit sets the variances to those of the greatest likelihood. Each is multiplied and divided in turn, by less and
// less.
func (s *structure) fit() {
	n := len(s.configs)
	logs, noise := make([]float64, n), make([]float64, n)
	for i, c := range s.configs {
		mean, sd := predicted(&c.Prediction)
		logs[i], noise[i] = mean, sd*sd
		for _, o := range s.configs {
			s.alike = append(s.alike, alike(&c.Config, &o.Config))
		}
	}
	all := stat.PopVariance(logs, nil)
	rest := max(all-stat.Mean(noise, nil), all/10)
	for k := range s.variance {
		s.variance[k] = rest / float64(len(s.variance))
	}
	best := s.likelihood(logs, noise)
	for _, factor := range []float64{8, 8, 4, 2} {
		for k := range s.variance {
			was, top := s.variance[k], s.variance[k]
			for _, v := range []float64{was * factor, was / factor} {
				s.variance[k] = v
				if l := s.likelihood(logs, noise); l > best {
					best, top = l, v
				}
			}
			s.variance[k] = top
		}
	}
}

// factor returns the Cholesky factor of the covariance of predictions, and the inverse times their differences from
// the mean.
func (s *structure) factor(logs, noise []float64) (c mat.Cholesky, weights *mat.VecDense, ok bool) {
	n := len(logs)
	covariance := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			sum := anyMean + 0.
			for k, v := range s.alike[i*n+j] {
				sum += s.variance[k] * v
			}
			if i == j {
				sum += noise[i]
			}
			covariance.SetSym(i, j, sum)
		}
	}
	weights = mat.NewVecDense(n, nil)
	if !c.Factorize(covariance) {
		return c, weights, false
	}
	mean := stat.Mean(logs, nil)
	for i, l := range logs {
		weights.SetVec(i, l-mean)
	}
	return c, weights, c.SolveVecTo(weights, weights) == nil
}

// likelihood returns the logarithm of the likelihood of logs, with errors of these variances, but for a constant.
func (s *structure) likelihood(logs, noise []float64) float64 {
	c, weights, ok := s.factor(logs, noise)
	if !ok {
		return math.Inf(-1)
	}
	square, mean := 0.0, stat.Mean(logs, nil)
	for i, l := range logs {
		square += (l - mean) * weights.AtVec(i)
	}
	return -(c.LogDet() + square) / 2
}

// estimate sets the speeds, given predictions and what was observed. With K the covariance of the speeds, D that of
// the errors and C = K + D, the means K/C (x - m) + m are x - D/C (x - m), and the covariance K - K/C K is D - D/C D.
func (s *structure) estimate(p *progress, group int) {
	n := len(s.configs)
	s.mean, s.sd = make([]float64, n), make([]float64, n)
	noise := make([]float64, n)
	for i, c := range s.configs {
		out := c.Prediction
		if n := p.sizes[sizeKey{c.Config.Model.Name, group, c.Config.Shape.Total()}]; n != nil {
			n.correct(&c.Config, &out)
		}
		s.mean[i], s.sd[i] = predicted(&out)
		noise[i] = s.sd[i] * s.sd[i]
	}
	c, weights, ok := s.factor(s.mean, noise)
	var inverse mat.SymDense
	if !ok || c.InverseTo(&inverse) != nil {
		return
	}
	for i, d := range noise {
		s.mean[i] -= d * weights.AtVec(i)
		s.sd[i] *= math.Sqrt(max(0, 1-d*inverse.At(i, i)))
	}
}

// correct changes the prediction of c to the estimate, if there is one.
func (s *structure) correct(c *spec.Config, out *spec.Prediction) {
	if i, ok := s.index[ranOf(c)]; ok {
		width := math.Exp(s.sd[i] * stats.Normal90)
		out.Throughput = math.Exp(s.mean[i])
		out.Lo, out.Hi = out.Throughput/width, out.Throughput*width
	}
}

// perShape is scheduler.PerShape with the estimates, for a number of devices that has choices.
func (s *structure) perShape(devices int, accept func(*spec.Config) bool) (out []planner.Choice) {
	for _, c := range s.choices[devices] {
		if accept(&c.Config) {
			s.correct(&c.Config, &c.Prediction)
			out = append(out, c)
		}
	}
	return fastest(out)
}

// fastest returns the fastest choice of each shape, fastest first.
func fastest(all []planner.Choice) []planner.Choice {
	slices.SortFunc(all, func(a, b planner.Choice) int {
		if c := cmp.Or(cmp.Compare(b.Prediction.Throughput, a.Prediction.Throughput), cmp.Compare(a.Config.Shape.Devices, b.Config.Shape.Devices)); c != 0 {
			return c
		}
		return cmp.Compare(a.Config.Plan.String(), b.Config.Plan.String())
	})
	shapes := map[spec.Shape]bool{}
	return slices.DeleteFunc(all, func(c planner.Choice) bool {
		known := shapes[c.Config.Shape]
		shapes[c.Config.Shape] = true
		return known
	})
}
