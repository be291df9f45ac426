package accuracy

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func outlierProtocols() []Protocol {
	run := func(ctx context.Context, b *Bench, c Contender) (Result, error) {
		return outliers(ctx, b, c, alterations)
	}
	return []Protocol{{Name: "outliers", run: run,
		Doc: "rows of data/published and data/field with an altered step time beside good rows of their source: are they doubted, and no others"}}
}

// alteration is a step time multiplied by a factor, beside good rows.
type alteration struct {
	good   int
	factor float64
}

var alterations = []alteration{{10, 0.001}, {10, 0.01}, {10, 0.1}, {30, 10}}

// outliers counts the altered rows that are doubted as impossible, or contradicted by the others, and the unaltered rows of
// all sources that are contradicted.
func outliers(ctx context.Context, b *Bench, c Contender, alterations []alteration) (Result, error) {
	if c.Train == nil {
		return Result{}, unablef("does not say which rows the others contradict")
	}
	type source struct {
		name string
		rows []spec.Measurement
	}
	var sources []source
	for _, dir := range []string{publishedDir, fieldDir} {
		t, err := b.read(dir)
		if err != nil {
			return Result{}, err
		}
		for _, s := range t.sources {
			rows := slices.DeleteFunc(slices.Clone(t.usable[s]), func(m spec.Measurement) bool { return !perfmodel.Usable(m) })
			sources = append(sources, source{s, rows})
		}
	}
	var mu sync.Mutex
	found, tried, wrong, sound := map[alteration]int{}, map[alteration]int{}, 0, 0
	err := b.each(len(sources), func(i int) error {
		s := sources[i]
		prior, err := b.prior(c, s.name)
		if err != nil {
			return err
		}
		doubted := func(rows []spec.Measurement) ([]perfmodel.Outlier, error) {
			f, err := prior.Condition(ctx, rows)
			if d, ok := f.(perfmodel.Doubter); ok && err == nil {
				return d.Outliers(), nil
			}
			return nil, err
		}
		held, err := doubted(s.rows)
		if err != nil {
			return err
		}
		mu.Lock()
		wrong, sound = wrong+len(held), sound+len(s.rows)
		mu.Unlock()
		for draw := range randomDraws {
			perm := (&curveDraw{source: s.name, draw: draw}).random(b.Seed).Perm(len(s.rows))
			for _, a := range alterations {
				if len(s.rows) <= a.good {
					continue
				}
				some := pick(s.rows, perm[:a.good+1])
				bad := &some[a.good]
				bad.StepSec = []float64{bad.MedianStepSec() * a.factor}
				caught := bad.Impossible() != ""
				if !caught {
					held, err := doubted(some)
					if err != nil {
						return err
					}
					caught = slices.ContainsFunc(held, func(o perfmodel.Outlier) bool { return o.Row.Origin == bad.Origin })
				}
				mu.Lock()
				tried[a]++
				if caught {
					found[a]++
				}
				mu.Unlock()
			}
		}
		return nil
	})
	r := Result{Standing: LeftOut}
	r.Rows = sound
	for _, a := range alterations {
		must := Limit{AtLeast: 1}
		if a.factor > 1 {
			must.AtLeast = 0.95
		}
		r.Figures = append(r.Figures, Figure{Name: fmt.Sprintf("doubted of those times %g beside %d rows", a.factor, a.good), Value: share(found[a], tried[a]), Unit: "1", Must: must})
	}
	r.Figures = append(r.Figures, fraction("doubted of unaltered rows", share(wrong, sound), 0.01, 0.002))
	return r, err
}
