package planner

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Objective is the criterion by which plans are ranked.
type Objective string

const (
	// Throughput: the most samples/s.
	Throughput Objective = "throughput"
	// Cost: the least device time per sample, or money where a price is given.
	Cost Objective = "cost"
	// MinDevices: the fewest devices that reach Request.TargetThroughput, and the
	// fastest plan on them.
	MinDevices Objective = "min-devices"
	// Goodput: the most throughput x statistical efficiency (Qiao et al., "Pollux",
	// OSDI 2021, definition 3.1), for a free global batch.
	Goodput Objective = "goodput"
)

// Objectives lists them, the default first.
func Objectives() []Objective { return []Objective{Throughput, Cost, MinDevices, Goodput} }

// StatisticalEfficiency returns the training progress per sample at a global batch
// relative to the initial batch, in (0, 1]:
//
//	E = (φ + initial) / (φ + batch)
//
//	φ  gradient noise scale, samples
//
// Batches below the initial one have efficiency 1. Source: Qiao et al.,
// "Pollux", OSDI 2021, section 3.1, equation 7.
func StatisticalEfficiency(batch, initial int, noiseScale float64) float64 {
	return min((noiseScale+float64(initial))/(noiseScale+float64(batch)), 1)
}

// checkObjective reports a field the objective needs, and fills in defaults.
func (r *Request) checkObjective() error {
	if r.Objective == "" {
		r.Objective = Throughput
	}
	if r.MinDevices == 0 && (r.Objective == Cost || r.Objective == MinDevices) && r.Plan == nil && r.Shape.Devices == "" {
		r.MinDevices = 1
	}
	switch {
	case !slices.Contains(Objectives(), r.Objective):
		return fmt.Errorf("planner: objective %q is not one of %v", r.Objective, Objectives())
	case r.Objective == MinDevices && !(r.TargetThroughput > 0):
		return fmt.Errorf("planner: objective %s needs a target throughput, not %g samples/s", r.Objective, r.TargetThroughput)
	case r.Objective == Goodput && !(r.NoiseScale > 0):
		return fmt.Errorf("planner: objective %s needs the gradient noise scale, not %g samples", r.Objective, r.NoiseScale)
	case r.MinDevices < 0 || r.MinDevices > r.Devices:
		return fmt.Errorf("planner: at least %d of at most %d devices", r.MinDevices, r.Devices)
	case !(r.Risk >= 0 && r.Risk <= 0.5):
		return fmt.Errorf("planner: risk %g is not in [0, 0.5]", r.Risk)
	case r.InitialBatch < 0 || r.InitialBatch > maxBatch:
		return fmt.Errorf("planner: initial batch %d, want 0..%d", r.InitialBatch, maxBatch)
	}
	for _, v := range []float64{r.TargetThroughput, r.PricePerHour, r.NoiseScale} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("planner: a target of %g samples/s, a price of %g per hour, a noise scale of %g samples: want finite ones, 0 or more",
				r.TargetThroughput, r.PricePerHour, r.NoiseScale)
		}
	}
	return nil
}

// checkBatch reports a global batch that is neither given nor bounded, and sets
// the bounds.
func (r *Request) checkBatch() error {
	if r.GlobalBatch != 0 {
		if r.GlobalBatch < 1 || r.GlobalBatch > maxBatch {
			return fmt.Errorf("planner: global batch %d, want 1..%d", r.GlobalBatch, maxBatch)
		}
		r.MinBatch, r.MaxBatch = r.GlobalBatch, r.GlobalBatch
		return nil
	}
	if r.MinBatch < 1 || r.MaxBatch < r.MinBatch || r.MaxBatch > maxBatch {
		return fmt.Errorf("planner: global batch 0 and bounds %d..%d, want a batch or bounds in 1..%d", r.MinBatch, r.MaxBatch, maxBatch)
	}
	return nil
}

// counts returns the smallest and largest number of devices of a normal request.
func (r *Request) counts() (from, to int) {
	if r.MinDevices == 0 {
		return r.Devices, r.Devices
	}
	return r.MinDevices, r.Devices
}

// batches returns the global batches of a normal request, ascending.
func (r *Request) batches() []int {
	out := []int{r.MinBatch}
	for b := r.MinBatch; b < r.MaxBatch; {
		b = min(nextRound(b), r.MaxBatch)
		out = append(out, b)
	}
	return out
}

// nextRound returns the smallest number above n of the form 2^k or 3·2^k.
func nextRound(n int) int {
	power := 1 << (bits.Len(uint(n)) - 1) // largest not above n
	if half := power + power/2; power > 1 && half > n {
		return half
	}
	return 2 * power
}

// at returns the request for one number of devices and one batch. Every objective
// then ranks by throughput.
func (r Request) at(devices, batch int) Request {
	r.Shape = share(r.Shape, devices, r.Devices)
	r.Devices, r.GlobalBatch, r.MinBatch, r.MaxBatch = devices, batch, batch, batch
	r.Objective, r.MinDevices, r.TargetThroughput, r.PricePerHour, r.NoiseScale, r.InitialBatch = Throughput, 0, 0, 0, 0, 0
	return r
}

// price returns the price of one device for one second.
func (r *Request) price() float64 { return or(r.PricePerHour, 1) / 3600 }

// efficiency returns the statistical efficiency of a global batch, 1 without a
// noise scale.
func (r *Request) efficiency(batch int) float64 {
	if r.NoiseScale == 0 {
		return 1
	}
	initial := r.InitialBatch
	if initial == 0 {
		initial = r.MinBatch
	}
	return StatisticalEfficiency(batch, initial, r.NoiseScale)
}

// score returns the objective's value of a throughput on devices at a batch, higher
// is better. ok is false where the throughput misses the target.
func (r *Request) score(throughput float64, devices, batch int) (score float64, ok bool) {
	switch r.Objective {
	case Cost:
		return throughput / (float64(devices) * r.price()), true
	case MinDevices:
		return -float64(devices), throughput >= r.TargetThroughput
	case Goodput:
		return throughput * r.efficiency(batch), true
	}
	return throughput, true
}

// quantile returns the throughput at the request's risk, the median without one.
func (r *Request) quantile(p *spec.Prediction) float64 {
	if r.Risk == 0 {
		return p.Throughput
	}
	return p.Throughput * math.Exp(distuv.UnitNormal.Quantile(r.Risk)*logSD(p))
}

// setCosts sets the efficiency and cost of a choice.
func (r *Request) setCosts(c *Choice) {
	p := &c.Config.Plan
	c.Efficiency = r.efficiency(p.GlobalBatch())
	if c.Prediction.Throughput > 0 {
		c.CostPerSample = float64(p.Devices()) * r.price() / c.Prediction.Throughput
	}
}

// value returns what a curve maximizes: goodput under that objective, else
// throughput, both at the request's risk.
func (r *Request) value(c *Choice) float64 {
	v := r.quantile(&c.Prediction)
	if r.Objective == Goodput {
		v *= c.Efficiency
	}
	return v
}
