package planner

import (
	"context"
	"math/bits"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Front holds the numbers of devices worth choosing among: those that no other number beats in speed and cost at once.
type Front struct {
	Request Request
	// Points are the best choices of those numbers, by ascending devices and so by ascending throughput. Each is what Best
	// returns for its number of devices.
	Points []Choice
	// Fewest is the best choice on the fewest devices on which a plan fits. It is among Points unless more devices are
	// faster and no more expensive.
	Fewest Choice
}

// Front returns the Pareto front of throughput and device time per sample over 1..r.Devices devices of one type; r.MinDevices
// is ignored. A number of devices is left out if another one has at least its throughput for at most its device time per
// sample. So the cheapest and the fastest number, and the cheapest one that meets a deadline, are on the front, whatever
// the price. Speed is at the request's risk. The error wraps ErrInfeasible if nothing fits on any number.
//
// Numbers are tried in descending order of the power of two that divides them. Each search then skips plans that a point
// of fewer or more devices is known to beat.
func (pl *Planner) Front(ctx context.Context, r Request) (Front, error) {
	r.MinDevices = 0
	if r.Objective != Goodput {
		r.Objective = Throughput
	}
	r, err := r.normal()
	if err != nil {
		return Front{}, err
	}
	out := Front{Request: r}
	for _, n := range bySmoothness(r.Devices) {
		at := r
		at.Devices, at.Shape = n, share(r.Shape, n, r.Devices)
		if legal, _ := pl.hasPlan(&at); !legal {
			continue
		}
		a, err := pl.best(ctx, &at, out.least(n), pl.find)
		if err != nil {
			return Front{}, err
		}
		if a.ok && r.value(&a.choice) > out.least(n) {
			out.insert(a.choice)
		}
	}
	if len(out.Points) == 0 {
		return Front{}, pl.infeasible(ctx, r)
	}
	out.Fewest, err = pl.fewest(ctx, r, out.Points[0])
	return out, err
}

// hasPlan reports whether a plan of r may be legal, and if so whether its candidates have one shape, see onlyShape. Most
// numbers of devices have none, and preparing a prediction takes longer than to find that out.
func (pl *Planner) hasPlan(r *Request) (legal, oneShape bool) {
	from, to := r.counts()
	if _, ok := pl.o.Space.(Enumerate); ok && from == to && r.Model.HasShape() && len(r.batches()) == 1 && !r.splits(largestPrime(r.Devices)) {
		return false, false
	}
	each, oneShape := pl.onlyShape(r)
	if !oneShape {
		return true, false
	}
	each(nil, func(*spec.Plan) bool { legal = true; return false })
	return legal, true
}

// splits reports whether a degree of parallelism may be a multiple of the prime q: the tensor parallel one within a node,
// the pipeline's up to the layers, the context parallel one of the tokens, or the data parallel one of the batch.
func (r *Request) splits(q int) bool {
	seq := r.SeqLen
	if seq == 0 {
		seq = r.Model.SeqLen
	}
	return q <= max(r.PerNode, r.Model.Layers) || r.MinBatch%q == 0 || seq > 0 && seq%q == 0
}

// largestPrime returns the largest prime that divides n, 1 for 1.
func largestPrime(n int) int {
	largest := 1
	for q := 2; q*q <= n; q++ {
		for n%q == 0 {
			largest, n = q, n/q
		}
	}
	return max(largest, n)
}

// bySmoothness returns 1..most, those divided by the highest power of two first, larger ones first among equals.
func bySmoothness(most int) []int {
	out := make([]int, 0, most)
	for power := 1 << (bits.Len(uint(most)) - 1); power >= 1; power /= 2 {
		for n := most / power; n >= 1; n-- {
			if n%2 == 1 {
				out = append(out, n*power)
			}
		}
	}
	return out
}

// least returns the throughput that n devices must exceed for a place on the front: that of every point with fewer, and
// in proportion to devices that of every point with more.
func (f *Front) least(n int) float64 {
	least := 0.0
	for i := range f.Points {
		p := &f.Points[i]
		v := f.Request.value(p)
		if m := p.Config.Plan.Devices(); m > n {
			v *= float64(n) / float64(m)
		}
		least = max(least, v)
	}
	return least
}

// insert adds a choice and removes those that it beats.
func (f *Front) insert(c Choice) {
	v, n := f.Request.value(&c), float64(c.Config.Plan.Devices())
	f.Points = slices.DeleteFunc(f.Points, func(p Choice) bool {
		w, m := f.Request.value(&p), float64(p.Config.Plan.Devices())
		return w <= v && m*v >= n*w
	})
	i, _ := slices.BinarySearchFunc(f.Points, n, func(p Choice, n float64) int { return int(float64(p.Config.Plan.Devices()) - n) })
	f.Points = slices.Insert(f.Points, i, c)
}

// fewest returns the best choice on the fewest devices on which a plan fits; first is one that fits.
func (pl *Planner) fewest(ctx context.Context, r Request, first Choice) (Choice, error) {
	for n := 1; n < first.Config.Plan.Devices(); n++ {
		if err := ctx.Err(); err != nil {
			return Choice{}, err
		}
		for _, b := range r.batches() {
			at := r
			at.Shape = share(r.Shape, n, r.Devices)
			at.Devices = n
			if legal, _ := pl.hasPlan(&at); !legal {
				break
			}
			if !pl.anyFits(ctx, at.at(n, b)) {
				continue
			}
			a, err := pl.best(ctx, &at, 0, pl.find)
			if err != nil || a.ok {
				return a.choice, err
			}
		}
	}
	return first, nil
}
