package bench

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// replayNoise is the standard deviation of the logarithm of a replayed step time.
const replayNoise = 0.02

// A replay returns times of one job type from a measured table, with noise that depends on the seed
// only: a row has the same time in any order.
type replay struct {
	family perfmodel.Family
	rows   []spec.Measurement // the table, one row per configuration
	space  []spec.Config      // its configurations
	noisy  []spec.Measurement
	order  *rand.Rand // shuffles, and breaks ties
}

func newReplay(f perfmodel.Family, rows []spec.Measurement, seed uint64) *replay {
	const noiseStream, orderStream = 1, 2
	r := &replay{family: f, rows: rows, order: rand.New(rand.NewPCG(seed, orderStream))}
	noise := rand.New(rand.NewPCG(seed, noiseStream))
	for _, m := range rows {
		r.space = append(r.space, m.Config)
		m.StepSec = []float64{m.MedianStepSec() * math.Exp(replayNoise*noise.NormFloat64())}
		r.noisy = append(r.noisy, m)
	}
	return r
}

// trail is the mean absolute relative error of the step time after one row, two rows and so on; NaN
// without a fit.
type trail struct {
	left  []float64 // over the rows not measured yet
	whole []float64 // over all rows
}

// follow measures up to most rows in the order of next, and scores a fit after each.
func (r *replay) follow(t testing.TB, most int, next func(have []spec.Measurement, open []int) int) trail {
	t.Helper()
	open := make([]int, len(r.rows)) // not measured, ascending
	for i := range open {
		open[i] = i
	}
	var have []spec.Measurement
	var tr trail
	for len(have) < most {
		k := next(have, open)
		have = append(have, r.noisy[open[k]])
		open = append(open[:k:k], open[k+1:]...)
		left, whole := r.score(t, have, open)
		tr.left, tr.whole = append(tr.left, left), append(tr.whole, whole)
	}
	return tr
}

// score fits have and returns the mean errors over the open rows and over all.
func (r *replay) score(t testing.TB, have []spec.Measurement, open []int) (left, whole float64) {
	t.Helper()
	f, _, err := r.family.Fit(t.Context(), perfmodel.Rows(have))
	if errors.Is(err, perfmodel.ErrTooFewPoints) {
		return math.NaN(), math.NaN()
	}
	if err != nil {
		t.Fatal(err)
	}
	k := 0
	for i, m := range r.rows {
		p, err := f.Predict(t.Context(), m.Config)
		if err != nil {
			t.Fatal(err)
		}
		sec, _, _ := p.StepSec(m.Config.Plan.GlobalBatch())
		ape := math.Abs(sec/m.MedianStepSec() - 1)
		whole += ape
		if k < len(open) && open[k] == i {
			left += ape
			k++
		}
	}
	return left / float64(len(open)), whole / float64(len(r.rows))
}

// random takes any open row.
func (r *replay) random(_ []spec.Measurement, open []int) int { return r.order.IntN(len(open)) }

// adaptive takes the open row with the largest expected gain, any of equals.
func (r *replay) adaptive(t testing.TB) func(have []spec.Measurement, open []int) int {
	return func(have []spec.Measurement, open []int) int {
		gains, err := r.family.Gain(t.Context(), have, r.space, nil)
		if err != nil {
			t.Fatal(err)
		}
		var best []int
		for k, i := range open {
			if len(best) > 0 && gains[i].Fall < gains[open[best[0]]].Fall {
				continue
			}
			if len(best) > 0 && gains[i].Fall > gains[open[best[0]]].Fall {
				best = best[:0]
			}
			best = append(best, k)
		}
		return best[r.order.IntN(len(best))]
	}
}
