package family

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Priors of the two factors, standard deviations in log: good code bases on
// one device differ by about a tenth in compute, networks by a third. rowNoise
// is the error of a row the model should still explain; beyond twice that a
// row's pull grows no further.
const (
	computeSD = 0.12
	networkSD = 0.35
	rowNoise  = 0.08
)

// calibrationRow is a measured step split by what the factors multiply.
type calibrationRow struct {
	measured float64 // seconds
	compute  float64 // predicted, scales with Compute
	network  float64 // scales with Network
	rest     float64 // scales with neither
	doubt    bool
}

// fitAnalytic finds the two factors that best explain the rows, shrunk to 1
// where they say little: maximum a posteriori with log-normal priors and a
// Huber loss on log time. The card's errors are cross-validated in (up to)
// five folds, every fifth row left out in turn.
func fitAnalytic(ctx context.Context, data iter.Seq2[spec.Measurement, error]) (perfmodel.Fitted, perfmodel.Card, error) {
	card := perfmodel.Card{Family: "analytic"}
	rows, key, err := calibrationRows(ctx, data, &card)
	if err != nil {
		return nil, card, err
	}
	card.Key = key
	var use []calibrationRow
	for _, r := range rows {
		if !r.doubt {
			use = append(use, r)
		}
	}
	if len(use) == 0 {
		return nil, card, fmt.Errorf("analytic: %s: no row with a step time to calibrate on; the uncalibrated model needs none: %w", key, perfmodel.ErrTooFewPoints)
	}
	a := &Analytic{Key: key}
	a.Compute, a.Network = calibrate(use)
	card.NFit = len(use)
	crossValidate(rows, use, a, &card)
	card.Params = map[string]perfmodel.Param{
		"compute": {Value: a.Compute, Unit: "x predicted device time"},
		"network": {Value: a.Network, Unit: "x predicted exposed traffic"},
	}
	card.Created = time.Now().UTC()
	return a, card, nil
}

func calibrationRows(ctx context.Context, data iter.Seq2[spec.Measurement, error], card *perfmodel.Card) (rows []calibrationRow, key spec.Key, err error) {
	hash := sha256.New()
	none := &Analytic{}
	first := true
	for m, err := range data {
		if err != nil {
			return nil, key, err
		}
		if err := ctx.Err(); err != nil {
			return nil, key, err
		}
		if first {
			key, first = m.Config.Key(), false
		}
		if m.Config.Key() != key {
			return nil, key, fmt.Errorf("analytic: rows of %s and of %s in one fit, want one model on one accelerator", key, m.Config.Key())
		}
		t := m.MedianStepSec()
		if m.Outcome != spec.OK || !(t > 0) {
			card.NLeftOut++
			continue
		}
		parts, err := none.Explain(m.Config)
		if errors.Is(err, perfmodel.ErrNotCovered) {
			card.NLeftOut++
			warnOnce(card, err.Error())
			continue
		}
		if err != nil {
			return nil, key, err
		}
		r := calibrationRow{measured: t, doubt: m.Doubt != ""}
		r.network = parts.TP + parts.CP + parts.EP + parts.DP
		r.compute = parts.Compute + parts.Recompute + parts.Optimizer + parts.Pipeline
		r.rest = parts.Total() - r.network - r.compute
		rows = append(rows, r)
		if r.doubt {
			card.NLeftOut++
			continue
		}
		c, err := json.Marshal(m.Config)
		if err != nil {
			return nil, key, fmt.Errorf("analytic: %w", err)
		}
		hash.Write(c)
		hash.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(t)))
	}
	card.DataHash = hex.EncodeToString(hash.Sum(nil)[:16])
	return rows, key, nil
}

func warnOnce(card *perfmodel.Card, msg string) {
	if !slices.Contains(card.Warnings, msg) {
		card.Warnings = append(card.Warnings, msg)
	}
}

func (r *calibrationRow) predict(compute, network float64) float64 {
	return r.compute*compute + r.network*network + r.rest
}

// calibrate returns the factors by Gauss-Newton on their logarithms,
// iteratively reweighted for the Huber loss. Thirty steps are many: the
// problem has two parameters and is nearly linear.
func calibrate(rows []calibrationRow) (compute, network float64) {
	x, y := 0.0, 0.0 // logs of the factors
	for range 30 {
		a11, a22, a12 := 1/(computeSD*computeSD), 1/(networkSD*networkSD), 0.0
		b1, b2 := -x*a11, -y*a22
		for i := range rows {
			r := &rows[i]
			cx, ny := r.compute*math.Exp(x), r.network*math.Exp(y)
			t := cx + ny + r.rest
			e := math.Log(r.measured / t)
			w := 1 / (rowNoise * rowNoise)
			if a := math.Abs(e); a > 2*rowNoise {
				w *= 2 * rowNoise / a
			}
			g1, g2 := cx/t, ny/t
			a11, a22, a12 = a11+w*g1*g1, a22+w*g2*g2, a12+w*g1*g2
			b1, b2 = b1+w*g1*e, b2+w*g2*e
		}
		det := a11*a22 - a12*a12
		dx, dy := (a22*b1-a12*b2)/det, (a11*b2-a12*b1)/det
		x, y = x+dx, y+dy
		if math.Abs(dx)+math.Abs(dy) < 1e-10 {
			break
		}
	}
	return math.Exp(x), math.Exp(y)
}

// crossValidate fills the card's error figures and a.Spread.
func crossValidate(rows, use []calibrationRow, a *Analytic, card *perfmodel.Card) {
	folds := min(5, len(use))
	if folds < 2 {
		card.Warnings = append(card.Warnings, "one row: its error cannot be cross-validated, the interval stays that of the uncalibrated model")
		return
	}
	var ape, logs []float64
	for k := range folds {
		var train []calibrationRow
		for i, r := range use {
			if i%folds != k {
				train = append(train, r)
			}
		}
		c, n := calibrate(train)
		for i := k; i < len(use); i += folds {
			p := use[i].predict(c, n)
			ape = append(ape, math.Abs(p/use[i].measured-1))
			logs = append(logs, math.Abs(math.Log(p/use[i].measured)))
		}
	}
	slices.Sort(ape)
	slices.Sort(logs)
	card.NHeldOut, card.MAPE, card.P95APE = len(ape), mean(ape), nearestRank(ape, 0.95)
	all := slices.Clone(ape)
	for i := range rows {
		if rows[i].doubt {
			all = append(all, math.Abs(rows[i].predict(a.Compute, a.Network)/rows[i].measured-1))
		}
	}
	card.MAPEAll = mean(all)
	a.Spread = spreadOf(logs)
}

// spreadOf returns the half width of the 90 % interval from sorted held-out
// |log| errors: the conformal quantile, the ⌈0.9(n+1)⌉-th smallest. Fewer than
// nine rows cannot bound 90 %; the uncalibrated width stays.
func spreadOf(logs []float64) float64 {
	k := int(math.Ceil(0.9 * float64(len(logs)+1)))
	if k > len(logs) {
		return 0
	}
	return max(logs[k-1], 0.01)
}

func mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

// nearestRank returns the q quantile of sorted v by nearest rank.
func nearestRank(v []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(v)))) - 1
	return v[min(max(i, 0), len(v)-1)]
}
