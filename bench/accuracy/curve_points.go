package accuracy

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// curvePoints summarizes the draws of the sources of a directory, each apart and all together.
func curvePoints(dir string, sources []string, all []drawn) []CurvePoint {
	draws := map[curveLine]map[int]*drawn{}
	for _, d := range all {
		for _, source := range []string{d.source, pooled} {
			if source == pooled && !d.many {
				continue
			}
			l := d.curveLine
			l.source = source
			if draws[l] == nil {
				draws[l] = map[int]*drawn{}
			}
			if draws[l][d.draw] == nil {
				draws[l][d.draw] = &drawn{}
			}
			of := draws[l][d.draw]
			of.predictions, of.heldBack = append(of.predictions, d.predictions...), of.heldBack+d.heldBack
		}
	}
	place := func(s string) int {
		if s == pooled {
			return len(sources)
		}
		return slices.Index(sources, s)
	}
	lines := slices.SortedFunc(maps.Keys(draws), func(a, b curveLine) int {
		return cmp.Or(cmp.Compare(place(a.source), place(b.source)), cmp.Compare(a.order, b.order), cmp.Compare(a.model, b.model), cmp.Compare(a.rows, b.rows))
	})
	var out []CurvePoint
	for _, l := range lines {
		p := curvePoint(draws[l])
		p.Data, p.Source, p.Order, p.Model, p.Rows = dir, l.source, l.order, l.model, l.rows
		out = append(out, p)
	}
	return out
}

// pooled is the name of all sources of a directory together.
const pooled = "all"

// curvePoint summarizes draws.
func curvePoint(draws map[int]*drawn) CurvePoint {
	p := CurvePoint{Draws: len(draws)}
	var means, medians, half, regrets []float64
	inside, intervals := 0.0, 0.0
	for d := range len(draws) {
		s := summarize(draws[d].predictions)
		means, medians = append(means, s.Mean), append(medians, s.Median)
		p.Scored += float64(s.Rows) / float64(len(draws))
		p.Refused += float64(s.Refused) / float64(len(draws))
		p.HeldBack += float64(draws[d].heldBack) / float64(len(draws))
		inside, intervals = inside+s.Coverage*float64(s.Intervals), intervals+float64(s.Intervals)
		half = append(half, s.HalfWidth)
		if g := regret(draws[d].predictions); g.Groups > 0 {
			regrets = append(regrets, g.Mean)
			p.Choices += float64(g.Groups) / float64(len(draws))
		}
	}
	p.Mean, p.Median, p.Regret = spreadOf(means), spreadOf(medians), mean(regrets)
	if intervals > 0 {
		p.Coverage, p.HalfWidth = inside/intervals, stats.Median(half)
	}
	return p
}
