package accuracy

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func outlierProtocols() []Protocol {
	run := func(ctx context.Context, b *Bench, c Contender) (Result, error) {
		return outliers(ctx, b, c, alterations, alteredRows)
	}
	return []Protocol{{Name: "outliers", run: run,
		Doc: fmt.Sprintf("rows of data/published, data/field and data/rubick, each source left out in turn: how many of %d rows with an altered step time, beside good rows of their source, are held back, and how many unaltered rows", alteredRows)}}
}

// alteredRows is the least number of altered rows of an alteration.
const alteredRows = 1000

// alteration multiplies the step time of a row beside good ones by a factor between two bounds, drawn log-uniformly.
type alteration struct {
	name   string
	good   int
	lo, hi float64
	must   float64 // share of the rows to be doubted
}

// alterations: rows up to a thousand times too fast, most of them faster than their devices' peak, and ten times too slow.
var alterations = []alteration{{"times 0.001 to 0.1", 10, 0.001, 0.1, 1}, {"times 10", 30, 10, 10, 0.95}}

// A watch counts the rows of one source that are held back: impossible ones, without other rows, and contradicted ones.
type watch struct {
	source     string
	rows       []spec.Measurement // not doubted by their source
	refused    int                // of rows: impossible
	against    int                // of rows: contradicted by all others
	beside     int                // good rows beside an altered one
	misled     int                // of beside: contradicted
	caught     [][]bool           // of each alteration, by draw
	impossible []int              // of each alteration: without other rows
}

// outliers counts the altered rows of every source that are held back, at least atLeast of each alteration, and the
// unaltered ones. A source with no more rows than an alteration has good ones has none altered.
func outliers(ctx context.Context, b *Bench, c Contender, alterations []alteration, atLeast int) (Result, error) {
	if c.Train == nil {
		return Result{}, unablef("does not say which rows the others contradict")
	}
	all, err := b.watches()
	if err != nil {
		return Result{}, err
	}
	draws := make([]int, len(alterations)) // of a source
	for a := range alterations {
		if n := countAbove(all, alterations[a].good); n > 0 {
			draws[a] = (atLeast + n - 1) / n
		}
	}
	err = b.each(len(all), func(i int) error {
		prior, err := b.prior(c, all[i].source)
		if err != nil {
			return err
		}
		return all[i].run(ctx, prior, b.Seed, alterations, draws)
	})
	return outlierFigures(all, alterations), err
}

// countAbove counts the sources with more than n rows.
func countAbove(all []*watch, n int) (sources int) {
	for _, w := range all {
		if len(w.rows) > n {
			sources++
		}
	}
	return sources
}

// watches returns all sources with their rows that are not doubted by the source itself.
func (b *Bench) watches() (out []*watch, err error) {
	for _, dir := range []string{publishedDir, fieldDir} {
		t, err := b.read(dir)
		if err != nil {
			return nil, err
		}
		for _, s := range t.sources {
			out = append(out, &watch{source: s, rows: t.usable[s]})
		}
	}
	traces, err := b.dataset(tracesDir)
	out = append(out, &watch{source: tracesDir, rows: traces})
	for _, w := range out {
		w.rows = perfmodel.MergeRepeats(slices.DeleteFunc(slices.Clone(w.rows), func(m spec.Measurement) bool {
			return !perfmodel.Usable(m) && m.Impossible() == ""
		}))
	}
	return out, err
}

// run tests the rows of a source beside a prior that does not know them.
func (w *watch) run(ctx context.Context, prior Prior, seed uint64, alterations []alteration, draws []int) error {
	for _, m := range w.rows {
		if m.Impossible() != "" {
			w.refused++
		}
	}
	held, err := contradicted(ctx, prior, w.rows)
	if err != nil {
		return err
	}
	w.against = len(held)
	w.caught, w.impossible = make([][]bool, len(alterations)), make([]int, len(alterations))
	random := (&curveDraw{source: w.source}).random(seed)
	for a := range alterations {
		for range draws[a] {
			if len(w.rows) <= alterations[a].good {
				break
			}
			if err := w.alter(ctx, prior, random, a, &alterations[a]); err != nil {
				return err
			}
		}
	}
	return nil
}

// alter alters a row drawn at random beside good ones.
func (w *watch) alter(ctx context.Context, prior Prior, random *rand.Rand, at int, a *alteration) error {
	rows := pick(w.rows, random.Perm(len(w.rows))[:a.good+1])
	bad := &rows[a.good]
	factor := a.lo * math.Pow(a.hi/a.lo, random.Float64())
	bad.StepSec = []float64{bad.MedianStepSec() * factor}
	caught := bad.Impossible() != ""
	if caught {
		w.impossible[at]++
	} else {
		held, err := contradicted(ctx, prior, rows)
		if err != nil {
			return err
		}
		for _, o := range held {
			if perfmodel.Canonical(o.Row.Config) == perfmodel.Canonical(bad.Config) {
				caught = true
			} else {
				w.misled++
			}
		}
		w.beside += a.good
	}
	w.caught[at] = append(w.caught[at], caught)
	return nil
}

// contradicted returns the rows that the others contradict.
func contradicted(ctx context.Context, prior Prior, rows []spec.Measurement) ([]perfmodel.Outlier, error) {
	f, err := prior.Condition(ctx, rows)
	if d, ok := f.(perfmodel.Doubter); ok && err == nil {
		return d.Outliers(), nil
	}
	return nil, err
}

// outlierFigures sums up all sources. Standard errors are those of the mean over sources.
func outlierFigures(all []*watch, alterations []alteration) Result {
	r := Result{Standing: LeftOut}
	for i, a := range alterations {
		var caught, impossible, tried int
		var shares []float64 // by source
		for _, w := range all {
			if i >= len(w.caught) || len(w.caught[i]) == 0 {
				continue
			}
			n := 0
			for _, ok := range w.caught[i] {
				if ok {
					n++
				}
			}
			caught, impossible, tried = caught+n, impossible+w.impossible[i], tried+len(w.caught[i])
			shares = append(shares, share(n, len(w.caught[i])))
		}
		what := fmt.Sprintf("of rows %s beside %d rows: ", a.name, a.good)
		r.Figures = append(r.Figures,
			Figure{Name: what + "held back", Value: share(caught, tried), Unit: "1", Must: Limit{AtLeast: a.must}},
			Figure{Name: what + "standard error over sources", Value: spreadOf(shares).SE, Unit: "1"},
			Figure{Name: what + "impossible without the others", Value: share(impossible, tried), Unit: "1"},
			Figure{Name: what + "number", Value: float64(tried), Unit: "rows", Must: Limit{AtLeast: alteredRows}})
	}
	return r.unaltered(all)
}

// unaltered adds the figures of rows that were not altered.
func (r Result) unaltered(all []*watch) Result {
	var held, misled, beside int
	var shares []float64
	worst := 0.0
	for _, w := range all {
		if len(w.rows) == 0 {
			continue
		}
		n := w.refused + w.against
		r.Rows += len(w.rows)
		held, misled, beside = held+n, misled+w.misled, beside+w.beside
		shares = append(shares, share(n, len(w.rows)))
		worst = max(worst, share(n, len(w.rows)))
	}
	r.Figures = append(r.Figures,
		fraction("of unaltered rows: held back", share(held, r.Rows), 0.01, 0.002),
		Figure{Name: "of unaltered rows: standard error over sources", Value: spreadOf(shares).SE, Unit: "1"},
		fraction("of unaltered rows: held back, worst source", worst, 0.01, 0),
		fraction("of unaltered rows beside an altered one: held back", share(misled, beside), 0.01, 0.002),
		Figure{Name: "of unaltered rows: sources", Value: float64(len(shares)), Unit: "sources"})
	return r
}
