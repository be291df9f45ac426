package spec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Outcome is how a measurement ended. Out of memory is an outcome, not an
// error: it shows which plans do not fit.
type Outcome string

const (
	OK      Outcome = "ok"
	OOM     Outcome = "oom"
	Timeout Outcome = "timeout"
	Failed  Outcome = "failed"
)

// Measurement is one run of a Config. It keeps raw step times; summaries are
// computed.
type Measurement struct {
	Config  Config  `json:"config"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // why it is not OK
	// Doubt is why an OK row probably does not measure its Config, by a stated rule
	// of its source. Such rows are kept but neither fitted nor scored.
	Doubt string `json:"doubt,omitempty"`

	StepSec   []float64          `json:"step_sec,omitempty"`   // wall time of each step; one value where only a mean was recorded
	PhaseSec  map[string]float64 `json:"phase_sec,omitempty"`  // mean time in "forward", "backward", "backward_sync", "optimizer", ...
	PeakBytes float64            `json:"peak_bytes,omitempty"` // device memory, largest over devices; 0 = not recorded

	Source string            `json:"source"`           // data set, such as "rubick" or "published/bigscience"
	Origin string            `json:"origin,omitempty"` // where in it: file:line or row id
	At     time.Time         `json:"at,omitzero"`      // when it was taken, if known
	Env    map[string]string `json:"env,omitempty"`    // other facts as recorded: the source's own plan key, driver, release
}

// MedianStepSec returns the median step time in seconds, 0 if none was taken.
func (m Measurement) MedianStepSec() float64 {
	if len(m.StepSec) == 1 { // most rows: no copy
		return m.StepSec[0]
	}
	return stats.Median(m.StepSec)
}

// Throughput returns samples/s at the median step time, 0 if none was taken.
func (m Measurement) Throughput() float64 {
	t := m.MedianStepSec()
	if t <= 0 {
		return 0
	}
	return float64(m.Config.Plan.GlobalBatch()) / t
}

// EnvWrongConfig is the Env key, with the reason as its value, of rows that
// probably ran another configuration than they record.
const EnvWrongConfig = "wrong_config"

// EnvGlobalBatch is the Env key of the samples of a step whose replicas have
// unequal shares, so that Plan.GlobalBatch is larger.
const EnvGlobalBatch = "global_batch"

// WrongConfig reports whether m probably ran another configuration than it
// records. Such a row is not looked up either.
func (m Measurement) WrongConfig() bool { return m.Env[EnvWrongConfig] != "" }

// Validate reports why the store refuses m. It accepts plans that break a
// legality rule (see Config.Check).
func (m Measurement) Validate() error {
	switch {
	case m.Config.Model.Name == "":
		return errors.New("spec: measurement without a model name")
	case m.Config.Accelerator.Name == "":
		return errors.New("spec: measurement without an accelerator name")
	case m.Source == "":
		return errors.New("spec: measurement without a source")
	case !slices.Contains([]Outcome{OK, OOM, Timeout, Failed}, m.Outcome):
		return fmt.Errorf("spec: outcome %q is not one of ok oom timeout failed", m.Outcome)
	case m.Outcome == OK && len(m.StepSec) == 0 && m.PeakBytes == 0:
		return errors.New("spec: an ok measurement needs a step time or peak memory")
	}
	for _, t := range m.StepSec {
		if !(t > 0) || math.IsInf(t, 0) {
			return fmt.Errorf("spec: step time %g s is not positive and finite", t)
		}
	}
	if !(m.PeakBytes >= 0) || math.IsInf(m.PeakBytes, 0) {
		return fmt.Errorf("spec: peak memory %g bytes is not finite and >= 0", m.PeakBytes)
	}
	return nil
}

// Prediction is a performance model's answer for a Config.
type Prediction struct {
	Throughput  float64 // samples/s
	Lo, Hi      float64 // 90 % predictive interval of Throughput, samples/s; both 0 = none given
	MemoryBytes float64 // peak on one device; 0 = not predicted
	By          string  // family and key of the fitted model
	Warnings    []error // for the reader: extrapolation, missing figures
}

// StepSec returns the predicted step time, its lower and upper 90 % bound in
// seconds for a global batch of samples; bounds equal the time when no
// interval was given.
func (p Prediction) StepSec(globalBatch int) (sec, lo, hi float64) {
	b := float64(globalBatch)
	sec = b / p.Throughput
	if p.Lo <= 0 || p.Hi <= 0 {
		return sec, sec, sec
	}
	return sec, b / p.Hi, b / p.Lo
}
