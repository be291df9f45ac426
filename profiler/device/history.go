package device

import (
	"math"
	"time"
)

// A metric is a value of a GPU that is averaged.
type metric int

const (
	smUtil      metric = iota // share of time with a kernel running, 0..1
	memUtil                   // share of time device memory was read or written, 0..1
	memUsed                   // bytes
	smClock                   // Hz
	memClock                  // Hz
	power                     // watts
	temperature               // temperature of the GPU, °C
	metrics                   // the number of metrics
)

// A reading is one sample of a GPU. A metric without a value is NaN.
type reading struct {
	at         time.Time
	values     [metrics]float64
	energyJ    float64 // since the driver was loaded
	reasons    uint64  // clock event reasons, bits as NVML's
	hasReasons bool    // reasons is valid
}

func newReading(at time.Time) reading {
	r := reading{at: at, energyJ: math.NaN()}
	for m := range r.values {
		r.values[m] = math.NaN()
	}
	return r
}

// historySlots is the number of buckets of a history: 205 s at 10 Hz, before several readings share a bucket.
const historySlots = 2048

// A history holds the readings of one GPU, oldest first. When all buckets are in use, neighbours are merged:
// the size is fixed, and the resolution halves each time the recording doubles.
type history struct {
	buckets []bucket
	stride  int // readings per bucket
	energy  counter
}

// A bucket summarises consecutive readings.
type bucket struct {
	begin, end time.Time
	n          int
	stats      [metrics]stat
	hasReasons int                 // readings with reasons
	reasons    [clockReasons]int32 // readings with each bit set
}

// A stat summarises the values of one metric.
type stat struct {
	n        int
	sum, max float64
}

func (s *stat) add(o stat) {
	if s.n == 0 || o.n > 0 && o.max > s.max {
		s.max = o.max
	}
	s.n += o.n
	s.sum += o.sum
}

func (s stat) mean() float64 { return s.sum / float64(s.n) }

func (h *history) add(r reading) {
	if !math.IsNaN(r.energyJ) {
		h.energy.add(r.at, r.energyJ)
	}
	one := bucket{begin: r.at, end: r.at, n: 1}
	for m, v := range r.values {
		if !math.IsNaN(v) {
			one.stats[m] = stat{1, v, v}
		}
	}
	if r.hasReasons {
		one.hasReasons = 1
		for bit := range one.reasons {
			one.reasons[bit] = int32(r.reasons >> bit & 1)
		}
	}
	h.put(one)
}

func (h *history) put(one bucket) {
	h.stride = max(h.stride, 1)
	if last := len(h.buckets) - 1; last >= 0 && h.buckets[last].n < h.stride {
		h.buckets[last].merge(one)
		return
	}
	if len(h.buckets) == historySlots {
		for i := range historySlots / 2 {
			h.buckets[2*i].merge(h.buckets[2*i+1])
			h.buckets[i] = h.buckets[2*i]
		}
		h.buckets = h.buckets[:historySlots/2]
		h.stride *= 2
	}
	h.buckets = append(h.buckets, one)
}

func (b *bucket) merge(o bucket) {
	b.end = o.end
	b.n += o.n
	for m := range b.stats {
		b.stats[m].add(o.stats[m])
	}
	b.hasReasons += o.hasReasons
	for bit := range b.reasons {
		b.reasons[bit] += o.reasons[bit]
	}
}

// within merges the buckets with their middle in [from, to]. For a metric without a value there it uses the
// nearest bucket, at most slowPeriod away.
func (h *history) within(from, to time.Time) bucket {
	sum := bucket{begin: from, end: to}
	for _, b := range h.buckets {
		if distance(b, from, to) == 0 {
			sum.merge(b)
		}
	}
	for m := range sum.stats {
		if sum.stats[m].n == 0 {
			sum.stats[m] = h.nearest(metric(m), from, to)
		}
	}
	sum.begin, sum.end = from, to
	return sum
}

func (h *history) nearest(m metric, from, to time.Time) stat {
	var s stat
	least := slowPeriod + 1
	for _, b := range h.buckets {
		if d := distance(b, from, to); b.stats[m].n > 0 && d < least {
			s, least = b.stats[m], d
		}
	}
	return s
}

// distance returns how far the middle of b is from [from, to].
func distance(b bucket, from, to time.Time) time.Duration {
	middle := b.begin.Add(b.end.Sub(b.begin) / 2)
	return max(from.Sub(middle), middle.Sub(to), 0)
}

// joules returns the energy used from one time to another, NaN if unknown. It prefers the energy
// counter; without one it multiplies mean power by duration.
func (h *history) joules(from, to time.Time) float64 {
	if e := h.energy.increase(from, to); !math.IsNaN(e) {
		return e
	}
	if s := h.within(from, to).stats[power]; s.n > 0 {
		return s.mean() * to.Sub(from).Seconds()
	}
	return math.NaN()
}
