package drift

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/gp"
)

// Parts are the parts of a step that may change, each as a whole.
const (
	Compute = iota // kernels, the optimizer and pipeline bubbles
	Network
	Launch // what the host does: launches of kernels, offload and fixed time
	Parts
)

// Names of the parts.
var Names = [Parts]string{"compute", "network", "launch"}

// Row is a measured step of a site.
type Row struct {
	At    time.Time
	Error float64        // ln of the measured time less that of the prediction
	Share [Parts]float64 // of the predicted time
}

// Shift returns the change of ln T if the time of a part changes by log.
func (r *Row) Shift(part int, log float64) float64 {
	return math.Log1p(r.Share[part] * math.Expm1(log))
}

// Change is a change of one part's time since a date.
type Change struct {
	Since        time.Time // of the first row after it
	Part         int
	Log          float64 // change of ln of the part's time
	Older, Newer int     // rows before and since
}

// least is the smallest factor of a change that Find looks for, most the largest. A smaller change is within the
// differences of days.
const least, most = 1.1, 4

// step is the distance of candidates; usualSize is the mean of the exponential distribution of their size.
const step, usualSize = 0.05, 0.3

// minRows is the number of rows that a change needs on either side. Fewer may be outliers. Fewer than LeastRows have no
// change.
const minRows, LeastRows = 3, 2 * minRows

// settled is the time that a change lasts at least. A device that shares its host or heats up is slower and faster from
// minute to minute: that is noise of its runs, and the next run may be as fast as any of them.
const settled = 10 * time.Minute

// Threshold is the Bayes factor from which a change is found, for each site that is searched. Under a correct model
// without a change the expected Bayes factor is 1, so by Markov's inequality at most one in a hundred such searches finds
// one. It is "decisive" on the scale of Kass and Raftery, "Bayes Factors", JASA 1995, section 3.2.
const Threshold = 100

// Find returns the change that explains rows best, or false if there is no evidence of one: if the Bayes factor of a
// change against none is below Threshold times the number of sites that are searched together.
//
// Before all rows, their errors are normally distributed with mean 0, and one of the covariances, which are equally likely:
// how much rows scatter is not known well, and a change looks like scatter if it is not looked for. A change at the time of
// row k in a part of share s by δ has the means
//
//	ln(1 + s·(e^δ-1))  for rows since k,    0 before
//
// The time, the part and the sign are uniformly distributed, |δ| exponentially between ln 1.1 and ln 4. Sources: Basseville
// and Nikiforov, "Detection of Abrupt Changes", 1993, section 2.6 (likelihood ratio of a change at an unknown time), with
// the Bayes factor for the maximum; Kass and Raftery 1995. The result does not depend on the order of rows. The error is
// that of ctx, or wraps perfmodel.ErrNotFinite.
func Find(ctx context.Context, rows []Row, covariances []func(i, j int) float64, sites int) (Change, bool, error) {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &rows[i], &rows[j]
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Error, b.Error), slices.Compare(a.Share[:], b.Share[:]))
	})
	s := search{rows: make([]Row, len(rows))}
	for i, k := range order {
		s.rows[i] = rows[k]
	}
	dates := s.dates()
	if len(dates) == 0 {
		return Change{}, false, ctx.Err()
	}
	for _, of := range covariances {
		if err := s.whiten(ctx, func(i, j int) float64 { return of(order[i], order[j]) }); err != nil {
			return Change{}, false, err
		}
	}
	s.weigh()
	return s.best(ctx, dates, Threshold*float64(max(sites, 1)))
}

// search is a search among rows in order of time.
type search struct {
	rows []Row
	of   []whitened // by covariance
}

// whitened is one of the covariances, L·Lᵀ.
type whitened struct {
	root     [][]float64 // L⁻¹ by column
	errors   []float64   // L⁻¹ times the errors
	evidence float64     // logarithm, without a change
	weight   float64     // probability of the covariance without a change
}

// dates returns the rows at which a change is possible: the first at their time, with enough rows on either side, and at
// least settled after the first row. The last row is at least settled after the last one before the change.
func (s *search) dates() (out []int) {
	for k := minRows; k <= len(s.rows)-minRows; k++ {
		before, since := s.rows[k].At.Sub(s.rows[0].At), s.rows[len(s.rows)-1].At.Sub(s.rows[k-1].At)
		if s.rows[k].At.After(s.rows[k-1].At) && min(before, since) >= settled {
			out = append(out, k)
		}
	}
	return out
}

// whiten adds a covariance.
func (s *search) whiten(ctx context.Context, covariance func(i, j int) float64) error {
	n := len(s.rows)
	c, ok := gp.NewCholesky(n, covariance)
	if !ok {
		return fmt.Errorf("drift: covariance of %d rows: %w", n, perfmodel.ErrNotFinite)
	}
	w := whitened{root: make([][]float64, n), errors: make([]float64, n)}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.root[i] = make([]float64, n)
		w.root[i][i] = 1
		c.Forward(w.root[i])
		w.errors[i] = s.rows[i].Error
		w.evidence += math.Log(w.root[i][i])
	}
	c.Forward(w.errors)
	w.evidence -= gp.Dot(w.errors, w.errors) / 2
	s.of = append(s.of, w)
	return nil
}

// weigh computes the probabilities of the covariances.
func (s *search) weigh() {
	most, sum := math.Inf(-1), 0.0
	for i := range s.of {
		most = max(most, s.of[i].evidence)
	}
	for i := range s.of {
		s.of[i].weight = math.Exp(s.of[i].evidence - most)
		sum += s.of[i].weight
	}
	for i := range s.of {
		s.of[i].weight /= sum
	}
}

// best returns the date with the largest Bayes factor, of the part with the largest sum of them.
func (s *search) best(ctx context.Context, dates []int, threshold float64) (out Change, found bool, err error) {
	sizes, weights := candidates()
	total, most := 0.0, 0.0
	for part := range Parts {
		factors, logs := make([]float64, len(dates)), make([]float64, len(dates)) // factors·logs after scaling
		for g, size := range sizes {
			if err := ctx.Err(); err != nil {
				return Change{}, false, err
			}
			for d, ratio := range s.ratios(dates, part, size) {
				factors[d] += weights[g] * ratio
				logs[d] += weights[g] * ratio * size
			}
		}
		sum, at := 0.0, 0
		for d, f := range factors {
			sum += f / float64(len(dates)*Parts)
			if f > factors[at] {
				at = d
			}
		}
		if total += sum; sum > most {
			most = sum
			k := dates[at]
			out = Change{Since: s.rows[k].At, Part: part, Log: logs[at] / factors[at], Older: k, Newer: len(s.rows) - k}
		}
	}
	return out, total >= threshold, nil
}

// maxRatio bounds the logarithm of a likelihood ratio, so that sums of ratios are finite.
const maxRatio = 600

// ratios returns the likelihood ratio of a change of a part by size at each date against no change.
func (s *search) ratios(dates []int, part int, size float64) []float64 {
	out := make([]float64, len(dates))
	for i := range s.of {
		w := &s.of[i]
		mean := make([]float64, len(s.rows)) // L⁻¹ times the means
		d := len(dates) - 1
		for k := len(s.rows) - 1; k >= 0 && d >= 0; k-- {
			shift := s.rows[k].Shift(part, size)
			for i := k; i < len(mean); i++ {
				mean[i] += shift * w.root[k][i]
			}
			if k == dates[d] {
				log := math.Log(w.weight) + gp.Dot(mean, w.errors) - gp.Dot(mean, mean)/2
				out[d] += math.Exp(min(log, maxRatio))
				d--
			}
		}
	}
	return out
}

// candidates returns changes of a logarithm and their probabilities.
func candidates() (sizes, weights []float64) {
	sum := 0.0
	for size := math.Log(least); size <= math.Log(most); size += step {
		w := math.Exp(-size / usualSize)
		sizes, weights = append(sizes, size, -size), append(weights, w, w)
		sum += 2 * w
	}
	for i := range weights {
		weights[i] /= sum
	}
	return sizes, weights
}
