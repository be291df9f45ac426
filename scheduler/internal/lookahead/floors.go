package lookahead

import (
	"math"
	"slices"
)

// floors has lower bounds on what the delay and the prices of an option cost. For each device of an option that runs for
// d seconds it is at least
//
//	W(d) = min over starts s of ( slope s + ∫_s^{s+d} price )
//
// with slope the least cost of a second of delay, per device. Between two neighbouring differences of times of the grid
// W is the least of linear functions, so it is not below the line between its values there.
type floors struct {
	spans []float64 // the differences, ascending from 0
	all   []floor
	index [][slopes]int32 // by group and slope without slopeBits, 1 + the index in all; 0 = none yet
}

// floor is W of a group and slope.
type floor struct {
	group int32
	slope float64
	at    []float64 // by span, the last one twice
	need  []bool    // by span: an option needs it
}

const (
	slopeBits = 50                    // dropped bits: slopes are rounded down to quarters of a power of 2, so that there are few
	slopes    = 1 << (63 - slopeBits) // they are not negative
)

func newFloors(groups int, times []float64) floors {
	f := floors{index: make([][slopes]int32, groups)}
	for i, from := range times {
		for _, to := range times[i:] {
			f.spans = append(f.spans, to-from)
		}
	}
	slices.Sort(f.spans)
	f.spans = slices.Compact(f.spans)
	return f
}

// assign sets the floor of an option.
func (f *floors) assign(o *option) {
	class := math.Float64bits(o.slope/o.devices) >> slopeBits % slopes
	index := &f.index[o.group][class]
	if *index == 0 {
		f.all = append(f.all, floor{o.group, math.Float64frombits(class << slopeBits), make([]float64, len(f.spans)+1), make([]bool, len(f.spans))})
		*index = int32(len(f.all))
	}
	o.floor = *index - 1
	need := f.all[o.floor].need
	last := len(f.spans) - 1
	if o.seconds >= f.spans[last] { // prices are 0 after the grid, so W is constant
		o.span, need[last] = int32(last), true
		return
	}
	k, _ := slices.BinarySearch(f.spans, o.seconds)
	k = max(k, 1)
	o.span, o.part = int32(k-1), (o.seconds-f.spans[k-1])/(f.spans[k]-f.spans[k-1])
	need[k-1], need[k] = true, true
}

// update computes W at sums of prices, by group, where an option needs it.
func (f *floors) update(sums [][]priceSum) {
	for i := range f.all {
		w := &f.all[i]
		for k, span := range f.spans {
			if w.need[k] {
				w.at[k] = w.least(sums[w.group], span)
			}
		}
		w.at[len(f.spans)] = w.at[len(f.spans)-1]
	}
}

// least returns W(d) of a difference d. The least cost is that of a start at which the start or the end is at a time of
// the grid.
func (w *floor) least(sums []priceSum, d float64) float64 {
	least := inf
	end, start := 0, 0
	for i := range sums {
		at := sums[i].at
		for end+1 < len(sums) && sums[end+1].at <= at+d {
			end++
		}
		least = min(least, w.slope*at+sums[end].upTo(at+d)-sums[i].paid)
		if begin := at - d; begin >= 0 {
			for start+1 < len(sums) && sums[start+1].at <= begin {
				start++
			}
			least = min(least, w.slope*begin+sums[i].paid-sums[start].upTo(begin))
		}
	}
	return least
}

// lowerBound returns a lower bound on what o costs besides least and λ.
func (f *floors) lowerBound(o *option) float64 {
	at := f.all[o.floor].at[o.span:]
	return o.devices * (at[0] + o.part*(at[1]-at[0]))
}
