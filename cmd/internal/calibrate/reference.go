package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// repeatLabel is the label of the run that measures the reference again.
func repeatLabel(label string) string { return label + ".repeats" }

// repeatShare is the largest share of the budget that the repeats may take, all together.
const repeatShare = 0.1

// reference returns the chosen point that is measured again at the end of turns: the quickest one, or that of earlier
// repeats. ok is false if none has run.
func (r *measured) reference() (m spec.Measurement, ok bool) {
	rows := usable(r.Chosen)
	if len(r.Repeats) > 0 {
		is := identity(r.Repeats[0].Config)
		rows = slices.DeleteFunc(rows, func(m spec.Measurement) bool { return identity(m.Config) != is })
	}
	if len(rows) == 0 {
		return spec.Measurement{}, false
	}
	return slices.MinFunc(rows, func(a, b spec.Measurement) int {
		return cmp.Or(cmp.Compare(profiler.HeldSec(a), profiler.HeldSec(b)), cmp.Compare(a.MedianStepSec(), b.MedianStepSec()),
			perfmodel.CompareConfigs(a.Config, b.Config))
	}), true
}

// due reports whether the reference is measured again at the end of a turn. With a budget for fewer repeats than turns,
// these are the later turns.
func (w *work) due(turn int) bool {
	m, ok := w.reference()
	each := profiler.HeldSec(m)
	if !ok || !(each > 0) {
		return false
	}
	n := min(int(repeatShare*w.o.Budget.Seconds()/each), turns)
	return n*(turn+1)/turns > n*turn/turns && !w.repeatedSince(w.budget(turn)-w.budget(0))
}

// repeatedSince reports whether a repeat began after all points before it had taken a time.
func (w *work) repeatedSince(spent time.Duration) bool {
	rows := w.all()
	slices.SortStableFunc(rows, func(a, b spec.Measurement) int { return a.At.Compare(b.At) })
	sum := 0.0
	for _, m := range rows {
		if m.Env[profiler.EnvRun] == repeatLabel(w.o.Label) && seconds(sum) > spent {
			return true
		}
		sum += profiler.HeldSec(m)
	}
	return false
}

// repeatTime is the time of the repeat at the end of a turn.
func (w *work) repeatTime(turn int) time.Duration {
	if m, ok := w.reference(); ok && w.due(turn) {
		return seconds(profiler.HeldSec(m))
	}
	return 0
}

// repeat measures the reference again if it is due.
func (w *work) repeat(ctx context.Context, turn int) error {
	m, _ := w.reference()
	if !w.due(turn) {
		return nil
	}
	camp, o := w.Campaign, w.Profiler
	camp.Choose, camp.Budget = profiler.Grid, profiler.Budget{}
	o.Label, o.Family, o.Again = repeatLabel(w.o.Label), perfmodel.Family{}, true
	o.Only = func(c spec.Config) bool { return identity(c) == identity(m.Config) }
	_, err := w.run(ctx, camp, o, "again", &w.Repeats)
	return err
}

// Reference is a plan that was measured several times. Part of the JSON of pacer calibrate.
type Reference struct {
	Model   string    `json:"model"`
	Plan    string    `json:"plan"`
	Shape   string    `json:"shape"`
	SeqLen  int       `json:"seq_len"`
	Ratio   float64   `json:"slowest_over_quickest"` // of its step times
	Changed bool      `json:"changed"`               // they differ by more than the noise of runs
	Runs    []RefTime `json:"runs"`                  // in order of time

	brief string
}

// RefTime is one run of a Reference.
type RefTime struct {
	AtSec float64 `json:"at_s"` // since the first measurement of the calibration
	Sec   float64 `json:"step_s"`
	Noise float64 `json:"noise"` // half width of the 95 % interval of the measurement, as a fraction; 0 = unknown
	// Doubt is why the run is not fitted, such as other processes on the device. It shows the speed of the machine all
	// the same.
	Doubt string `json:"doubt,omitempty"`
}

// runNoise is the usual standard deviation of ln T between runs of a plan on an undisturbed machine.
const runNoise = 0.04

// speed describes the runs of the reference, nil if it was not measured again.
func (r *measured) speed() *Reference {
	m, ok := r.reference()
	if !ok {
		return nil
	}
	is, began := identity(m.Config), m.At
	var runs []spec.Measurement
	for _, row := range r.all() {
		if !row.At.IsZero() && row.At.Before(began) {
			began = row.At
		}
		if identity(row.Config) == is && row.MedianStepSec() > 0 && !row.Quarantined() {
			runs = append(runs, row)
		}
	}
	if len(runs) < 2 {
		return nil
	}
	slices.SortStableFunc(runs, func(a, b spec.Measurement) int { return a.At.Compare(b.At) })
	c := m.Config
	out := &Reference{Model: c.Model.Name, Plan: c.Plan.String(), Shape: c.Shape.String(), SeqLen: c.Seq(), brief: briefPoint(&c)}
	for _, row := range runs {
		noise, _ := campaign.HalfWidth(row)
		out.Runs = append(out.Runs, RefTime{AtSec: row.At.Sub(began).Seconds(), Sec: row.MedianStepSec(), Noise: noise, Doubt: row.DoubtReason()})
	}
	slow, quick := out.extremes()
	out.Ratio, out.Changed = slow.Sec/quick.Sec, out.changed()
	return out
}

// extremes returns the slowest and the quickest run.
func (r *Reference) extremes() (slow, quick RefTime) {
	by := func(a, b RefTime) int { return cmp.Compare(a.Sec, b.Sec) }
	return slices.MaxFunc(r.Runs, by), slices.MinFunc(r.Runs, by)
}

// changeLevel is the probability that the runs of an undisturbed machine differ as much as in a change of its speed.
const changeLevel = 0.01

// changed reports whether the runs differ by more than the noise within and between runs of an undisturbed machine: a
// χ² test that the logarithms of their step times have one mean (Cochran, "The Combination of Estimates from Different
// Experiments", Biometrics 1954, section 4).
func (r *Reference) changed() bool {
	weights, mean, chi := 0.0, 0.0, 0.0
	weight := func(t RefTime) float64 {
		const normal95 = 1.96
		within := t.Noise / normal95
		return 1 / (within*within + runNoise*runNoise)
	}
	for _, t := range r.Runs {
		weights += weight(t)
		mean += weight(t) * math.Log(t.Sec)
	}
	mean /= weights
	for _, t := range r.Runs {
		d := math.Log(t.Sec) - mean
		chi += weight(t) * d * d
	}
	return chi > distuv.ChiSquared{K: float64(len(r.Runs) - 1)}.Quantile(1-changeLevel)
}

// text says how much the speed of the machine changed, "" if not by more than noise.
func (r *Reference) text() string {
	if r == nil || !r.Changed {
		return ""
	}
	first, second := r.extremes()
	if second.AtSec < first.AtSec {
		first, second = second, first
	}
	at := func(t RefTime) string { return seconds3(t.Sec) + " at " + campaign.Duration(t.AtSec) }
	return fmt.Sprintf("the machine was up to %s times slower meanwhile: %s took %s and %s; calibrate again when it is idle, under another --label",
		number.Significant(r.Ratio, 2), r.brief, at(first), at(second))
}
