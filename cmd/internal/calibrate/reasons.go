package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pacer-ml/pacer/cmd/internal/number"
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
	if text := cmp.Or(r.Reference.text(), r.drift()); text != "" {
		out = append(out, text)
	}
	if r.Before.Mean < alreadyGood {
		out = append(out, "the predictions were good before")
	}
	if noise := medianNoise(r.Plans); noise > 0 && r.After.Mean <= 2*noise {
		out = append(out, fmt.Sprintf("the measurements themselves are uncertain: their 95 %% intervals are ±%s (median)", number.Percent(noise)))
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

const (
	leastHalf  = 3    // plans on each side that show a change of speed
	driftLevel = 0.01 // probability of a change seen by chance
	leastDrift = 1.1  // ratio of speeds that explains anything
)

// drift compares plans held out that were measured late with those measured early, "" unless they differ: relative to
// the same fit, those took longer or shorter (Welch, The generalization of Student's problem when several different
// population variances are involved, Biometrika 34, 1947).
func (r *Report) drift() string {
	plans := slices.DeleteFunc(slices.Clone(r.Plans), func(s Scored) bool { return s.After == nil || s.at.IsZero() })
	if len(plans) < 2*leastHalf {
		return ""
	}
	slices.SortStableFunc(plans, func(a, b Scored) int { return a.at.Compare(b.at) })
	var logs []float64 // of measured over predicted
	for _, s := range plans {
		logs = append(logs, -math.Log1p(s.After.Error))
	}
	early, late := logs[:len(logs)/2], logs[len(logs)/2:]
	m1, v1 := stat.MeanVariance(early, nil)
	m2, v2 := stat.MeanVariance(late, nil)
	ratio, e1, e2 := math.Exp(math.Abs(m2-m1)), v1/float64(len(early)), v2/float64(len(late))
	if ratio < leastDrift {
		return ""
	}
	if e1+e2 > 0 {
		freedom := (e1 + e2) * (e1 + e2) / (e1*e1/float64(len(early)-1) + e2*e2/float64(len(late)-1))
		student := distuv.StudentsT{Sigma: 1, Nu: freedom}
		if math.Log(ratio) < student.Quantile(1-driftLevel/2)*math.Sqrt(e1+e2) {
			return ""
		}
	}
	became := "slower"
	if m2 < m1 {
		became = "faster"
	}
	return fmt.Sprintf("the machine became about %s times %s meanwhile, by the plans held out: measure again with nothing else running, under another --label", number.Significant(ratio, 2), became)
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
	return fmt.Sprintf("one plan stands out: without %s the mean error is %s, before %s", worst.brief, number.Percent(after.Mean), number.Percent(before.Mean))
}
