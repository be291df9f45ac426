package datasets

import (
	"errors"
	"strings"
)

// stepSec returns the step time in seconds, or 0 and the reason that there is
// none. A printed step time comes first. Otherwise it is derived from the
// throughput, if the global batch is known and the unit is one of:
//
//	samples/s, seq/s, sequences/sec, img/s   batch / value
//	mol/ms                                   batch / (1000 value), a sample is a molecule
//	tokens/s, tok/s                          batch · sequence length / value
//	tokens/s/gpu                             the same per device
//
// DeepLearningExamples prints many values without a unit. For its language
// models with a recorded sequence length the tables count sequences; those rows
// are read as sequences/s and doubted. Other values without a unit are not used.
func (r *publishedRow) stepSec() (sec float64, why string) {
	if s := r.Float("step_time_s"); r.Str("step_time_s") != "" {
		if s == 0 && r.Err() == nil {
			r.Fail("step_time_s", errors.New("is not positive"))
		}
		return s, ""
	}
	return r.throughputSec()
}

// throughputSec is stepSec without a printed step time.
func (r *publishedRow) throughputSec() (sec float64, why string) {
	v, unit := r.Float("throughput_value"), r.Str("throughput_unit")
	if v == 0 || unit == "" {
		return 0, "no throughput is recorded"
	}
	if !r.batchKnown {
		return 0, "the batch is not recorded"
	}
	perStep, why := r.workPerStep(unit)
	return perStep / v, why
}

// workPerStep returns the samples or tokens per step, in the unit of the throughput.
func (r *publishedRow) workPerStep(unit string) (work float64, why string) {
	batch, seq := float64(r.batch), float64(r.Count("seq_len")) // not an assumed length
	switch {
	case unit == "samples/s" && strings.HasSuffix(r.Str("model"), "/NCF") && r.Float("throughput_value") < 1e4:
		// a few hundred samples/s at batches of a million: printed in millions
		r.doubt("throughput read as millions of samples/s")
		return batch / 1e6, ""
	case unit == "samples/s" || unit == "seq/s" || unit == "sequences/sec" || unit == "img/s":
		return batch, ""
	case unit == "mol/ms":
		return batch / 1e3, ""
	case strings.HasPrefix(unit, "as printed") && seq > 0:
		r.doubt("unit not printed, read as sequences/s")
		return batch, ""
	case strings.HasPrefix(unit, "as printed"):
		return 0, "the unit is not recorded"
	case unit == "tokens/s" || unit == "tok/s" || unit == "tokens/s/gpu":
		if seq == 0 {
			return 0, "the sequence length is not recorded"
		}
		if unit == "tokens/s/gpu" {
			return batch * seq / float64(r.m.Config.Shape.Total()), ""
		}
		return batch * seq, ""
	}
	return 0, "work per sample in that unit is not known"
}
