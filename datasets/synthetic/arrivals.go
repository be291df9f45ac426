package synthetic

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Burst describes bursty arrivals: two Poisson processes alternate, one much faster than the other,
// each for exponentially distributed times (the two-state Markov-modulated Poisson process; Fischer
// and Meier-Hellstern, The MMPP cookbook, Performance Evaluation 18, 1993). The zero value is no
// bursts.
type Burst struct {
	Factor float64 // rate during bursts / mean rate, > 1
	Share  float64 // share of time in bursts, 0..1; Factor x Share <= 1
	Sec    float64 // mean length of bursts
}

// DefaultBurst has bursts of half an hour in a tenth of the time, with half of the jobs. (Round
// numbers.)
var DefaultBurst = Burst{Factor: 5, Share: 0.1, Sec: 1800}

// DefaultHours are relative rates of the hours of a day from its beginning: three times as many
// jobs at 15 h as at 3 h, a cosine between. (Round numbers; Hu et al., SC 2021, figure 2 has the
// shape.)
func DefaultHours() []float64 {
	h := make([]float64, 24)
	for i := range h {
		h[i] = 1 + 0.5*math.Cos(2*math.Pi*(float64(i)+0.5-15)/24)
	}
	return h
}

func (b Burst) validate() error {
	if b == (Burst{}) {
		return nil
	}
	if !(b.Factor >= 1 && b.Share > 0 && b.Share < 1 && b.Sec > 0 && b.Factor*b.Share <= 1+1e-9) || math.IsInf(b.Sec, 0) {
		return fmt.Errorf("synthetic: bursts of %g times the rate for %g s in %g of the time: want a factor >= 1, a share in 0..1, a product of at most 1, and a positive time",
			b.Factor, b.Sec, b.Share)
	}
	return nil
}

func validateHours(h []float64) error {
	sum := 0.0
	for i, v := range h {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("synthetic: rate %g in part %d of the day is not finite and >= 0", v, i)
		}
		sum += v
	}
	if h != nil && !(sum > 0) || math.IsInf(sum, 0) {
		return fmt.Errorf("synthetic: the rates of the parts of the day add up to %g", sum)
	}
	return nil
}

// rate is a relative arrival rate of mean 1, piecewise constant.
type rate interface {
	// at returns the rate from t, in seconds, until it may change. Successive calls have ascending
	// t.
	at(t float64) (rate, until float64)
}

const secondsPerDay = 86400

// day is the rate over equal parts of a day.
type day struct {
	parts []float64 // 1 on average
}

func newDay(hours []float64) day {
	sum := 0.0
	for _, v := range hours {
		sum += v
	}
	d := day{parts: make([]float64, len(hours))}
	for i, v := range hours {
		d.parts[i] = v * float64(len(hours)) / sum
	}
	return d
}

func (d day) at(t float64) (float64, float64) {
	width := secondsPerDay / float64(len(d.parts))
	k := math.Floor(t / width)
	until := (k + 1) * width
	if until <= t { // rounding put t, on an edge, into the part before
		k, until = k+1, until+width
	}
	return d.parts[int(math.Mod(k, float64(len(d.parts))))], until
}

// burstRate alternates between the rate of bursts and the rate between them.
type burstRate struct {
	rng   *rand.Rand
	burst bool
	until float64
	rates [2]float64 // outside, inside
	secs  [2]float64
}

func newBurstRate(b Burst, rng *rand.Rand) *burstRate {
	off := math.Max(0, (1-b.Share*b.Factor)/(1-b.Share))
	t := &burstRate{rng: rng, rates: [2]float64{off, b.Factor}, secs: [2]float64{b.Sec * (1 - b.Share) / b.Share, b.Sec}}
	t.burst = rng.Float64() < b.Share
	t.until = rng.ExpFloat64() * t.secs[t.index()]
	return t
}

func (t *burstRate) index() int {
	if t.burst {
		return 1
	}
	return 0
}

func (t *burstRate) at(at float64) (float64, float64) {
	for t.until <= at {
		t.burst = !t.burst
		// never shorter than the resolution of a time of 1e9 s
		t.until += math.Max(t.rng.ExpFloat64()*t.secs[t.index()], 1e-6)
	}
	return t.rates[t.index()], t.until
}

// next returns the time at which the integral from t of the product of the
// rates reaches area, in seconds: with an exponential area of mean 1/λ, the
// next arrival of a process of λ times that rate. Past maxSeconds it gives up.
func next(t, area float64, rates []rate) float64 {
	for t < maxSeconds {
		product, until := 1.0, math.Inf(1)
		for _, r := range rates {
			v, u := r.at(t)
			product *= v
			until = math.Min(until, u)
		}
		if product*(until-t) >= area {
			return t + area/product
		}
		area -= product * (until - t)
		t = until
	}
	return maxSeconds
}
