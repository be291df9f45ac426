package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// fewRows is a number of fitted rows below which more of them is the first thing to try.
const fewRows = 5

// alreadyGood is a mean error that leaves little to gain.
const alreadyGood = 0.05

// halved reports whether the mean error fell to half or less.
func (r *Report) halved() bool { return r.After.Plans > 0 && r.After.Mean <= r.Before.Mean/2 }

// reasons explain an error that was not halved, as far as the rows show why.
func (r *Report) reasons(rows []spec.Measurement, fitted int, outliers []perfmodel.Outlier) (out []string) {
	if r.After.Plans == 0 || r.halved() {
		return nil
	}
	if r.Before.Mean < alreadyGood {
		out = append(out, "the predictions were good before")
	}
	if noise := medianNoise(r.Plans); noise > 0 && r.After.Mean <= 2*noise {
		out = append(out, fmt.Sprintf("the measurements themselves are uncertain: their 95 %% intervals are ±%s (median)", console.Percent(noise)))
	}
	if text := leftOut(rows); text != "" {
		out = append(out, text)
	}
	if fitted < fewRows {
		out = append(out, fmt.Sprintf("only %s fitted: measure more", spec.Count(fitted, "row")))
	}
	if why := r.worst(); why != "" {
		out = append(out, why)
	}
	for _, o := range outliers {
		out = append(out, fmt.Sprintf("a fitted row contradicts the others: %s has %s", o.Row.Config.Plan, o))
	}
	if len(out) == 0 {
		out = append(out, "no single cause shows in the rows")
	}
	return out
}

// leftOut counts the rows that are not used, "" if all are.
func leftOut(rows []spec.Measurement) string {
	n := len(rows) - len(usable(rows))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s failed or were disturbed, and are neither fitted nor scored", n, spec.Count(len(rows), "measurement"))
}

// medianNoise is the median half width of the measurements' intervals, 0 if unknown.
func medianNoise(rows []Scored) float64 {
	var noise []float64
	for _, r := range rows {
		if r.Noise > 0 {
			noise = append(noise, r.Noise)
		}
	}
	if len(noise) == 0 {
		return 0
	}
	return stats.Median(noise)
}

// worst names a plan without which the error would have been halved.
func (r *Report) worst() string {
	scored := slices.DeleteFunc(slices.Clone(r.Plans), func(s Scored) bool { return s.Before == nil || s.After == nil })
	if len(scored) < 3 {
		return ""
	}
	of := func(s Scored) float64 { return math.Abs(s.After.Error) }
	worst := slices.MaxFunc(scored, func(a, b Scored) int { return int(math.Copysign(1, of(a)-of(b))) })
	rest := slices.DeleteFunc(scored, func(s Scored) bool { return s == worst })
	before, after := accuracies(rest)
	if after.Mean > before.Mean/2 {
		return ""
	}
	return fmt.Sprintf("one plan stands out: without %s the mean error is %s, before %s", worst.brief, console.Percent(after.Mean), console.Percent(before.Mean))
}
