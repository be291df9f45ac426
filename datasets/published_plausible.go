package datasets

import (
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// tolerance is the factor by which two figures of a row for the same step may differ.
const tolerance = 1.5

// checkPlausible doubts a row that is impossible, or has a step time that its throughput, tflops_per_gpu or mfu contradicts.
func (r *publishedRow) checkPlausible() {
	printed := r.printedRates()
	best := 0.0
	for _, f := range r.m.Config.Accelerator.Formats() {
		best = max(best, r.m.Config.Accelerator.Peak(f))
	}
	for _, p := range printed {
		if p.share > 1 {
			r.wrong("an mfu of %g is more than 1, the peak rate of the devices", p.share)
		} else if best > 0 && p.most > best {
			r.wrong("%s of %.4g TFLOP/s per device is more than their peak rate, %.4g in any format", p.column, p.most/1e12, best/1e12)
		}
	}
	if len(r.m.StepSec) == 0 {
		return
	}
	if why := r.m.Impossible(); why != "" {
		r.wrong("%s", why)
	}
	r.checkThroughput()
	least, most := r.rates()
	for _, p := range printed {
		if least > 0 && p.share <= 1 && (p.most*tolerance < least || p.least > most*tolerance) {
			r.wrong("a step time of %.4g s makes %.4g to %.4g TFLOP/s per device, but %s says %.4g",
				r.m.StepSec[0], least/1e12, most/1e12, p.column, p.most/1e12)
		}
	}
}

// checkThroughput doubts a row with a step time and a throughput in samples or tokens that differ.
func (r *publishedRow) checkThroughput() {
	if r.Str("step_time_s") == "" {
		return
	}
	doubts, sec := r.doubts, r.m.StepSec[0]
	other, _ := r.throughputSec()
	r.doubts = doubts // about a throughput that is not used
	if other > 0 && (sec > tolerance*other || other > tolerance*sec) {
		r.wrong("a step time of %.4g s, but the throughput makes it %.4g s", sec, other)
	}
}

// printedRate is a rate of a device in FLOP/s that a column prints, within bounds.
type printedRate struct {
	column      string
	least, most float64
	share       float64 // of the peak rate, 0 = printed as a rate
}

// printedRates returns the rates per device that the row prints. A share may be one of the peak rate of 16-bit formats, or
// of the format that was used.
func (r *publishedRow) printedRates() (out []printedRate) {
	add := func(column string) {
		if v := r.Float(column) * 1e12; v > 0 {
			out = append(out, printedRate{column: column, least: v, most: v})
		}
	}
	add("tflops_per_gpu")
	switch strings.ToLower(r.Str("throughput_unit")) {
	case "tflop/s/gpu", "tflops/s/gpu", "tflops/gpu", "tflop/s", "tflops":
		add("throughput_value")
	}
	c := &r.m.Config
	peaks := []float64{c.Accelerator.Peak(c.Plan.Precision), c.Accelerator.Peak(spec.BF16)}
	if share := r.Float("mfu"); share > 0 && slices.Min(peaks) > 0 {
		out = append(out, printedRate{"mfu", share * slices.Min(peaks), share * slices.Max(peaks), share})
	}
	return out
}

// rates returns the FLOP/s of a device that the step time makes, by the ways in which sources count: without attention and
// with the scores of all pairs of tokens, with the published number of parameters and with that of the layers, adapters with
// and without gradients of frozen weights, and with recomputation unless the row had none. 0 if the work is not known.
func (r *publishedRow) rates() (least, most float64) {
	c := &r.m.Config
	if c.Alone() || c.Seq() == 0 || c.Model.Kind != spec.Opaque && !c.Model.HasShape() {
		return 0, 0
	}
	m := c.Model
	if m.FFN+m.ExpertFFN == 0 {
		m.FFN = 4 * m.Hidden // as models without a recorded MLP are predicted
	}
	layers := m
	if m.HasShape() {
		layers.ParamCount, layers.ActiveParamCount = 0, 0
	}
	for _, m := range []spec.Model{m, layers} {
		whole := m.TrainFLOPs(c.Seq())
		m.Adapter = spec.Adapter{}
		all := m.TrainFLOPs(c.Seq())
		if m.Kind == spec.Decoder {
			m.Kind, m.Window, m.Packed = spec.Encoder, 0, 0
		}
		scores := m.TrainFLOPs(c.Seq()) - all
		if least == 0 {
			least = whole
		}
		least, most = min(least, max(whole-scores, 0)), max(most, all+scores)
	}
	if c.Plan.Recompute != spec.RecomputeNone || r.Str("recompute") == "" {
		most *= 4.0 / 3 // the forward pass once more
	}
	perDevice := r.m.Throughput() / float64(c.Shape.Total())
	return least * perDevice, most * perDevice
}
