package accuracy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// Leave-one-source-out: a family is trained on the usable rows of all sources
// but one, then scored on that one. With revealed rows of that source it is
// conditioned on them, and scored on the others. A family without a prior is
// fitted to the revealed rows of each (model, accelerator).

func publishedProtocols() []Protocol {
	return []Protocol{
		{Name: "published-0", Doc: "data/published, each source left out in turn, nothing of it revealed", run: zeroShot},
		{Name: "published-0-unnamed", Doc: "the same, read without the columns that name the training stack", run: unnamedStack},
		{Name: "published-0-misnamed", Doc: "the same, with the release before of stacks that have one", run: misnamedStack},
		{Name: "field-0", Doc: "data/field, each source left out in turn", run: field},
		{Name: "lora", Doc: "the adapters of field-0", run: fineTuned},
		{Name: "moe", Doc: "the mixtures of experts of published-0 and field-0", run: mixtures},
		revealing(5, 0.08, 0.06, 0.15),
		revealing(10, 0.065, 0.05, 0.11),
		revealing(30, 0.045, 0.035, 0.09),
	}
}

// manyRows is the number of scored rows from which a source has its own coverage.
const manyRows = 20

func zeroShot(ctx context.Context, b *Bench, c Contender) (Result, error) {
	r, predictions, err := b.leaveOut(ctx, c, publishedRows)
	if err != nil {
		return r, err
	}
	r.Figures = []Figure{
		fraction("pooled median", r.Median, 0.09, 0.07),
		fraction("mean of source medians", meanOfMedians(r.Parts), 0.12, 0.09),
		{Name: "rows refused", Value: float64(refusedRows(predictions)), Unit: "rows", Must: Limit{AtMost: 45}, Aim: Limit{AtMost: 39}},
		{Name: "predicted of those that may not be refused", Value: predictedOfMust(predictions), Unit: "1", Must: Limit{AtLeast: 1}},
	}
	r.intervalFigures(Limit{0.85, 0.95}, 0.28, 0.22)
	return r, nil
}

// unnamedStack predicts the rows of published-0 without the training stack.
func unnamedStack(ctx context.Context, b *Bench, c Contender) (Result, error) {
	r, _, err := b.leaveOut(ctx, c, unnamedRows)
	if err != nil {
		return r, err
	}
	r.Figures = []Figure{fraction("pooled median", r.Median, 0.15, 0.12)}
	r.intervalFigures(Limit{0.87, 0.93}, 0.5, 0.35)
	return r, nil
}

// misnamedStack predicts the rows of published-0 with the release before that of their training stack. Rows without one
// are left out.
func misnamedStack(ctx context.Context, b *Bench, c Contender) (Result, error) {
	r, _, err := b.leaveOut(ctx, c, misnamedRows)
	if err != nil {
		return r, err
	}
	r.Figures = []Figure{{Name: "pooled median", Value: r.Median, Unit: "1"}}
	if r.Intervals > 0 {
		r.Figures = append(r.Figures, Figure{Name: "coverage", Value: r.Coverage, Unit: "1"})
	}
	return r, nil
}

// fineTuned scores the adapters of field-0.
func fineTuned(ctx context.Context, b *Bench, c Contender) (Result, error) {
	predictions, err := b.oneOutPredictions(ctx, c, fieldRows)
	if err != nil {
		return Result{}, err
	}
	predictions = slices.DeleteFunc(slices.Clone(predictions), func(a prediction) bool { return a.config.Model.Adapter == (spec.Adapter{}) })
	r := scored(predictions)
	r.Standing = standing(c)
	r.Figures = []Figure{fraction("mean", r.Mean, 0.15, 0.10)}
	return r, nil
}

// field predicts the rows of data/field.
func field(ctx context.Context, b *Bench, c Contender) (Result, error) {
	r, _, err := b.leaveOut(ctx, c, fieldRows)
	r.Figures = append([]Figure{{Name: "pooled median", Value: r.Median, Unit: "1"}}, sourceFigures(r.Parts)...)
	return r, err
}

// mixtures scores the mixtures of experts of published-0 and field-0.
func mixtures(ctx context.Context, b *Bench, c Contender) (Result, error) {
	var predictions []prediction
	for _, of := range []testSet{publishedRows, fieldRows} {
		more, err := b.oneOutPredictions(ctx, c, of)
		if err != nil {
			return Result{}, err
		}
		predictions = append(predictions, more...)
	}
	predictions = slices.DeleteFunc(predictions, func(a prediction) bool { return a.config.Model.Experts == 0 })
	r := scored(predictions)
	r.Standing = standing(c)
	r.Figures = []Figure{fraction("pooled median", r.Median, 0.15, 0.10)}
	if r.Intervals > 0 {
		r.Figures = append(r.Figures, Figure{Name: "coverage", Value: r.Coverage, Unit: "1", Must: Limit{AtLeast: 0.85}})
	}
	return r, nil
}

// leaveOut scores c on a test set, each source left out in turn.
func (b *Bench) leaveOut(ctx context.Context, c Contender, of testSet) (Result, []prediction, error) {
	predictions, err := b.oneOutPredictions(ctx, c, of)
	if err != nil {
		return Result{}, nil, err
	}
	r := scored(predictions).withRegret(predictions)
	r.Standing = standing(c)
	return r, predictions, nil
}

// mayRefuse reports whether a family may refuse a published row, because it records too little: samples of unknown
// length, and models without a description or any size.
func mayRefuse(a *prediction) bool {
	m := &a.config.Model
	return a.config.Seq() == 0 || m.Layers == 0 && m.Hidden == 0 && m.ParamCount == 0
}

// refusedRows returns the number of rows, before equal configurations are merged, without a prediction.
func refusedRows(predictions []prediction) (n int) {
	for i := range predictions {
		if predictions[i].err != nil {
			n += max(predictions[i].rows, 1)
		}
	}
	return n
}

// predictedOfMust returns the predicted share of the rows that must not be
// refused.
func predictedOfMust(predictions []prediction) float64 {
	predicted, all := 0, 0
	for i := range predictions {
		if a := &predictions[i]; !mayRefuse(a) {
			all++
			if a.err == nil {
				predicted++
			}
		}
	}
	return share(predicted, all)
}

// revealing returns the protocol that reveals k rows of a source. must and aim limit the pooled median, worst the mean
// error of each source.
func revealing(k int, must, aim, worst float64) Protocol {
	return Protocol{
		Name: fmt.Sprintf("published-%d", k),
		Doc:  fmt.Sprintf("data/published, each source left out in turn, %d rows of it drawn and revealed, mean over %d draws; sources with %d rows or more", k, randomDraws, pooledRows+k),
		run: func(ctx context.Context, b *Bench, c Contender) (Result, error) {
			p, err := b.published()
			if err != nil {
				return Result{}, err
			}
			from := slices.DeleteFunc(slices.Clone(p.sources), func(s string) bool { return len(p.usable[s]) < pooledRows+k })
			draws := make([][]prediction, len(from)*randomDraws)
			all, err := b.predictParts(len(draws), func(i int) ([]prediction, error) {
				d := curveDraw{source: from[i/randomDraws], draw: i % randomDraws}
				rows := p.usable[d.source]
				perm := d.random(b.Seed).Perm(len(rows))
				one, err := b.conditioned(c, d.source, rows, slices.Sorted(slices.Values(perm[:k])), slices.Sorted(slices.Values(perm[k:])))
				draws[i] = one
				return one, err
			})
			if err != nil {
				return Result{}, err
			}
			var medians []float64
			for d := range randomDraws {
				var one []prediction
				for i := d; i < len(draws); i += randomDraws {
					one = append(one, draws[i]...)
				}
				medians = append(medians, summarize(one).Median)
			}
			r := scored(all)
			r.Standing = standing(c)
			median := spreadOf(medians)
			means := over(r.Parts, func(s Summary) float64 { return s.Mean })
			r.Figures = append(r.Figures, fraction("pooled median", median.Value, must, aim), Figure{Name: "pooled median, standard error", Value: median.SE, Unit: "1"})
			if len(means) > 0 {
				r.Figures = append(r.Figures, fraction("worst source's mean", slices.Max(means), worst, 0))
			}
			r.intervalFigures(Limit{0.85, 0.95}, 0.25, 0.15)
			return r, nil
		},
	}
}

// randomDraws is the number of draws of revealed rows.
const randomDraws = 32

// standing returns the standing of a family on rows that the shipped priors were trained on. Constants of a
// family that cannot be trained without a source depend on all of them.
func standing(c Contender) Standing {
	if c.Train == nil && c.Fit == nil {
		return InView
	}
	return LeftOut
}

func meanOfMedians(parts []Part) float64 {
	return mean(over(parts, func(s Summary) float64 { return s.Median }))
}

// intervalFigures adds coverage and width of the intervals; cover is what the coverage must keep.
func (r *Result) intervalFigures(cover Limit, must, aim float64) {
	if r.Intervals == 0 {
		return
	}
	r.Figures = append(r.Figures, Figure{Name: "coverage", Value: r.Coverage, Unit: "1", Must: cover, Aim: Limit{0.88, 0.92}})
	many := slices.DeleteFunc(slices.Clone(r.Parts), func(p Part) bool { return p.Intervals < manyRows })
	if share := over(many, func(s Summary) float64 { return s.Coverage }); len(share) > 0 {
		r.Figures = append(r.Figures,
			Figure{Name: "least coverage of a source", Value: slices.Min(share), Unit: "1"},
			Figure{Name: "greatest coverage of a source", Value: slices.Max(share), Unit: "1"})
	}
	r.Figures = append(r.Figures, Figure{Name: "half-width", Value: r.HalfWidth, Unit: "ln", Must: Limit{AtMost: must}, Aim: Limit{AtMost: aim}})
}

// testSet is the rows that are predicted.
type testSet struct {
	dir      string
	unnamed  bool // read without the columns that name the training stack
	misnamed bool // with the release before; others are left out
}

var (
	publishedRows = testSet{dir: publishedDir}
	unnamedRows   = testSet{dir: publishedDir, unnamed: true}
	misnamedRows  = testSet{dir: publishedDir, misnamed: true}
	fieldRows     = testSet{dir: fieldDir}
)

type oneOutKey struct {
	family string
	testSet
}

// oneOutPredictions predicts every source by c, trained without it.
func (b *Bench) oneOutPredictions(ctx context.Context, c Contender, of testSet) ([]prediction, error) {
	return b.oneOut.get(oneOutKey{c.Name, of}, func() ([]prediction, error) {
		p, err := b.read(of.dir)
		if err != nil {
			return nil, err
		}
		if c.Train == nil && c.Unfitted == nil {
			return nil, unablef("is fitted to rows of the job itself, and none is revealed")
		}
		return b.predictParts(len(p.sources), func(i int) ([]prediction, error) {
			source := p.sources[i]
			rows := p.usable[source]
			if of.unnamed {
				var err error
				if rows, err = b.withoutNames(ctx, of.dir, source, rows); err != nil {
					return nil, err
				}
			}
			if of.misnamed {
				rows = misnamed(rows)
			}
			return b.conditioned(c, source, rows, nil, indices(len(rows)))
		})
	})
}

// withoutNames returns rows of a source as they are read without the columns that name the training stack. Rows
// without tokens per sample are left out: the source says what their samples are.
func (b *Bench) withoutNames(ctx context.Context, dir, source string, rows []spec.Measurement) ([]spec.Measurement, error) {
	root, err := dataDir(b.Shared, dir)
	if err != nil {
		return nil, err
	}
	configs, err := readConfigs(ctx, root, source, unnamed)
	out := slices.DeleteFunc(slices.Clone(rows), func(m spec.Measurement) bool { return m.Config.Seq() == 0 })
	for i := range out {
		out[i].Config = configs[out[i].Origin]
	}
	return out, err
}

// misnamed returns rows with the release before that of their training stack. Those without one are left out.
func misnamed(rows []spec.Measurement) (out []spec.Measurement) {
	for _, m := range rows {
		if text, ok := stack.Before(m.Config.Framework); ok {
			m.Config.Framework = text
			out = append(out, m)
		}
	}
	return out
}

// informed returns the predictor for a source with the revealed rows shown.
func (b *Bench) informed(ctx context.Context, c Contender, source string, shown []spec.Measurement) (perfmodel.Predictor, error) {
	if c.Train == nil && c.Fit != nil {
		return fitKeys(ctx, c.Family, shown)
	}
	if c.Train == nil {
		return c.Unfitted, nil
	}
	prior, err := b.prior(c, source)
	if err != nil || len(shown) == 0 {
		return prior, err
	}
	p, err := prior.Condition(ctx, shown)
	if errors.Is(err, perfmodel.ErrTooFewPoints) {
		return prior, nil
	}
	return p, err
}

// keyed has one predictor for each (model, accelerator).
type keyed map[spec.Key]perfmodel.Predictor

var errNotRevealed = fmt.Errorf("too little revealed of its model and accelerator to fit: %w", perfmodel.ErrNotCovered)

// Predict implements perfmodel.Predictor.
func (k keyed) Predict(ctx context.Context, c spec.Config) (spec.Prediction, error) {
	p, ok := k[c.Key()]
	if !ok {
		return spec.Prediction{}, errNotRevealed
	}
	return p.Predict(ctx, c)
}

// fitKeys fits f to the rows of every key, and omits keys that cannot be fitted.
func fitKeys(ctx context.Context, f perfmodel.Family, rows []spec.Measurement) (keyed, error) {
	out := keyed{}
	for key, of := range perfmodel.GroupByKey(rows) {
		fitted, _, err := f.Fit(ctx, perfmodel.Rows(perfmodel.MergeRepeats(of)))
		switch {
		case err == nil:
			out[key] = fitted
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
	return out, nil
}
