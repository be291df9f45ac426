package accuracy

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spacefill"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func chosenProtocols() []Protocol {
	return []Protocol{{Name: "chosen", run: choiceOfRows,
		Doc: fmt.Sprintf("data/published, data/field and data/rubick, each source with %d rows or more left out in turn: error after rows in order of the family's gain, against %d random orders", chosenRows, randomDraws)}}
}

// chosenRows is the least number of rows of a source, mostChosen the largest number revealed.
const chosenRows, mostChosen = 40, 64

// tracesDir is the directory of Rubick's rows.
const tracesDir = "rubick"

// chosen orders groups of rows by gain, or by distance while the intervals mislead, until most rows are revealed; the
// others follow in their order.
func chosen(ctx context.Context, f perfmodel.Family, rows *sourceRows, most int) (perm []int, err error) {
	if f.Gain == nil {
		return nil, unablef("does not choose rows")
	}
	var have []spec.Measurement
	var watch spacefill.Watch // of the first row of each group taken
	taken, space := make([]bool, len(rows.groups)), spacefill.NewSpace(rows.first)
	for len(have) < most {
		gains, err := f.Gain(ctx, have, rows.first, nil)
		if err != nil {
			return nil, err
		}
		value := func(i int) float64 { return gains[i].Fall }
		if watch.Misled {
			value = func(i int) float64 { return space.Nearest[i] }
		}
		best := -1
		for i := range gains {
			if !taken[i] && (best < 0 || value(i) > value(best)) {
				best = i
			}
		}
		of := pick(rows.all, rows.groups[best])
		e, ok, err := errorBefore(ctx, f, have, &of[0])
		if err != nil {
			return nil, err
		}
		if ok {
			watch.Add(e)
		}
		space.Measure(&rows.first[best])
		perm, taken[best], have = append(perm, best), true, append(have, of...)
	}
	for i := range taken {
		if !taken[i] {
			perm = append(perm, i)
		}
	}
	return perm, nil
}

// errorBefore returns the error of the prediction of a row from those before it. ok is false if there is none.
func errorBefore(ctx context.Context, f perfmodel.Family, before []spec.Measurement, row *spec.Measurement) (e spacefill.Error, ok bool, err error) {
	if len(before) == 0 || f.Condition == nil {
		return e, false, nil
	}
	fitted, err := f.Condition(ctx, before)
	if err != nil {
		return e, false, err
	}
	p, err := fitted.Predict(ctx, row.Config)
	if err != nil {
		return e, false, nil
	}
	sec, _, _ := p.StepSec(row.Config.Plan.GlobalBatch())
	e = spacefill.Error{Off: math.Log(row.MedianStepSec() / sec), HalfWidth: p.HalfWidth()}
	return e, e.HalfWidth > 0, nil
}

// choiceOfRows compares the errors after rows in both orders.
func choiceOfRows(ctx context.Context, b *Bench, c Contender) (Result, error) {
	if c.Train == nil {
		return Result{}, unablef("has no prior to choose rows with")
	}
	type source struct {
		name string
		rows *sourceRows
		errs [randomDraws + 1][]float64 // mean errors after 2, 3, ... rows, in random orders and in that of gain
	}
	var sources []*source
	for _, dir := range []string{publishedDir, fieldDir} {
		t, err := b.read(dir)
		if err != nil {
			return Result{}, err
		}
		for _, s := range t.sources {
			sources = append(sources, &source{name: s, rows: newSourceRows(t.usable[s])})
		}
	}
	traces, err := b.dataset(tracesDir)
	if err != nil {
		return Result{}, err
	}
	traces = slices.DeleteFunc(slices.Clone(traces), func(m spec.Measurement) bool { return !perfmodel.Usable(m) })
	sources = append(sources, &source{name: tracesDir, rows: newSourceRows(traces)})
	sources = slices.DeleteFunc(sources, func(s *source) bool { return len(s.rows.all) < chosenRows })
	err = b.each(len(sources)*(randomDraws+1), func(i int) (err error) {
		s, d := sources[i/(randomDraws+1)], i%(randomDraws+1)
		s.errs[d], err = b.errorsAfter(c, s.name, s.rows, d)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	var all []float64
	r := Result{Standing: LeftOut}
	for _, s := range sources {
		ratios := logRatios(s.errs[:randomDraws], s.errs[randomDraws])
		mean := spreadOf(ratios)
		all = append(all, mean.Value)
		r.Rows += len(s.rows.all)
		r.Figures = append(r.Figures, Figure{Name: "error chosen/random, " + s.name, Value: math.Exp(mean.Value), Unit: "1", Must: Limit{AtMost: math.Exp(mean.SE)}})
	}
	total := Figure{Name: "error chosen/random, mean over sources", Value: math.Exp(mean(all)), Unit: "1", Must: Limit{AtMost: 0.85}, Aim: Limit{AtMost: 0.7}}
	r.Figures = slices.Insert(r.Figures, 0, total)
	return r, nil
}

// logRatios returns, for each random order, the mean over the numbers of rows of ln(error chosen / error random).
func logRatios(random [][]float64, chosen []float64) []float64 {
	out := make([]float64, len(random))
	for d, errs := range random {
		for k := range chosen {
			out[d] += math.Log(chosen[k]/errs[k]) / float64(len(chosen))
		}
	}
	return out
}

// errorsAfter returns the mean error on the rest of a source after 2 to mostChosen rows, or half of them, in the random order
// of a draw, or of the family's gain for draw randomDraws.
func (b *Bench) errorsAfter(c Contender, source string, rows *sourceRows, draw int) (out []float64, err error) {
	prior, err := b.prior(c, source)
	if err != nil {
		return nil, err
	}
	most := min(mostChosen, len(rows.all)/2)
	d := curveDraw{source: source, draw: draw}
	perm := d.random(b.Seed).Perm(len(rows.groups))
	if draw == randomDraws {
		if perm, err = chosen(b.ctx, prior.Family(), rows, most); err != nil {
			return nil, err
		}
	}
	for k := 2; k <= most; k++ {
		shown, hidden := take(rows.groups, perm, k)
		predictions, err := b.conditioned(c, source, rows.all, shown, hidden)
		if err != nil {
			return nil, fmt.Errorf("accuracy: %s, %d rows, draw %d: %w", source, k, draw, err)
		}
		out = append(out, summarize(predictions).Mean)
	}
	return out, nil
}
