package spec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Outcome is the way a measurement ended. Out of memory is an outcome and not an error, since it shows which
// plans do not fit.
type Outcome string

const (
	OK      Outcome = "ok"
	OOM     Outcome = "oom"
	Timeout Outcome = "timeout"
	Failed  Outcome = "failed"
)

// Measurement is one run of a Config. It keeps the time of every step; summaries are computed from them. With
// Config.AloneStage it is not of a whole step: it has the time and the memory of one rank, without communication.
type Measurement struct {
	Config  Config  `json:"config"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // why the outcome is not OK
	// Doubt is the reason why an OK row probably does not measure its Config, by a documented rule of its data
	// source. Rows in doubt are stored but neither fitted nor scored. A row of any outcome that the user of a store
	// quarantined has a Doubt that says so, see Quarantine.
	Doubt string `json:"doubt,omitempty"`

	StepSec   []float64          `json:"step_sec,omitempty"`   // wall time of each step; a single value if only a mean was recorded
	PhaseSec  map[string]float64 `json:"phase_sec,omitempty"`  // mean time in "forward", "backward", "backward_sync", "optimizer", ...
	PeakBytes float64            `json:"peak_bytes,omitempty"` // device memory, largest over devices; 0 = not recorded. See EnvMemKind

	Source string            `json:"source"`           // data set, such as "rubick" or "published/bigscience"
	Origin string            `json:"origin,omitempty"` // place in Source: file:line or row id
	At     time.Time         `json:"at,omitzero"`      // time of the measurement, if known
	Env    map[string]string `json:"env,omitempty"`    // other recorded facts: the source's own plan key, driver, release
}

// MedianStepSec returns the median step time in seconds, 0 if there are none.
func (m Measurement) MedianStepSec() float64 {
	if len(m.StepSec) == 1 { // the most frequent case: no copy
		return m.StepSec[0]
	}
	return stats.Median(m.StepSec)
}

// Throughput returns samples/s at the median step time, 0 if there is none.
func (m Measurement) Throughput() float64 {
	t := m.MedianStepSec()
	if t <= 0 {
		return 0
	}
	return float64(m.Config.Plan.GlobalBatch()) / t
}

// EnvWrongConfig is the Env key of rows that probably ran another configuration than they record. The value is
// the reason.
const EnvWrongConfig = "wrong_config"

// EnvGlobalBatch is the Env key of the samples per step of a job with unequal shares per replica.
// Plan.GlobalBatch is larger then, since it rounds the shares up.
const EnvGlobalBatch = "global_batch"

// EnvMemKind is the Env key of what PeakBytes counts: "allocated" (tensors), "reserved" (what the framework's
// allocator holds) or "device" (all memory in use). Without it, PeakBytes is what the training stack reports.
const EnvMemKind = "mem_kind"

// EnvStepNoise is the Env key of the standard deviation of ln(step time) between runs that the source states, such as of a
// machine with a network shared with others.
const EnvStepNoise = "step_noise"

// StepNoise returns the value of EnvStepNoise, 0 if the source states none or no number from 0 to 10.
func (m *Measurement) StepNoise() float64 {
	if sd, err := strconv.ParseFloat(m.Env[EnvStepNoise], 64); err == nil && sd > 0 && sd <= 10 {
		return sd
	}
	return 0
}

// WrongConfig reports whether m probably ran another configuration than it records. Such a row is doubted, and
// look-ups skip it too.
func (m Measurement) WrongConfig() bool { return m.Env[EnvWrongConfig] != "" }

// DoubtReason returns why m is neither fitted nor scored: Doubt, else the reason of WrongConfig, else that of Impossible.
// It is "" if m is not doubted.
func (m Measurement) DoubtReason() string {
	switch {
	case m.Doubt != "":
		return m.Doubt
	case m.WrongConfig():
		return m.Env[EnvWrongConfig]
	case m.Outcome == OK:
		return m.Impossible()
	}
	return ""
}

// Impossible returns why no device of its type can have measured m: its work, without recomputation, exceeds their peak
// rate, or its memory theirs. It is "" if neither does, or is unknown. The work of one rank alone is not checked, since
// stages differ.
func (m Measurement) Impossible() string {
	c := &m.Config
	devices := c.Shape.Total()
	if devices == 0 {
		devices = c.Plan.Devices()
	}
	if peak := c.Accelerator.Peak(c.Plan.Precision) * float64(devices); peak > 0 && c.Seq() > 0 && !c.Alone() {
		if rate := c.Model.TrainFLOPs(c.Seq()) * m.Throughput(); rate > peak {
			return fmt.Sprintf("%.3g times the devices' peak rate", rate/peak)
		}
	}
	if most := c.Accelerator.MemBytes; most > 0 && m.PeakBytes > most*unitSlack {
		return fmt.Sprintf("a peak of %.4g GiB on devices of %.4g GiB", m.PeakBytes/(1<<30), most/(1<<30))
	}
	return ""
}

// unitSlack is 2^30/10^9: a size in GB may be recorded in GiB.
const unitSlack = (1 << 30) / 1e9

// Validate reports why the store refuses m. It accepts plans that break a legality rule (see Plan.Check).
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
	if err := m.Config.CheckAlone(); err != nil {
		return err
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

// Prediction is the result of a performance model for one Config.
type Prediction struct {
	Throughput  float64 // samples/s
	Lo, Hi      float64 // 90 % predictive interval of Throughput, samples/s; both 0 = no interval
	MemoryBytes float64 // peak on one device; 0 = not predicted

	// Of MemoryBytes, what tensors use and what the framework's allocator holds. 0 = not known.
	AllocatedBytes, ReservedBytes float64

	By       string  // family and key of the fitted model, or ByTable
	Warnings []error // for readers, such as extrapolation or missing values
}

// ByTable is Prediction.By of speeds from a table of measurements. Their errors are independent, those of a fitted
// model common to similar configurations.
const ByTable = "measured"

// StepSec returns the predicted step time and its lower and upper 90 % bound, in seconds, for a global batch of
// samples. Without an interval, both bounds equal the step time.
func (p Prediction) StepSec(globalBatch int) (sec, lo, hi float64) {
	b := float64(globalBatch)
	sec = b / p.Throughput
	if p.Lo <= 0 || p.Hi <= 0 {
		return sec, sec, sec
	}
	return sec, b / p.Hi, b / p.Lo
}

// HalfWidth returns half the width of the 90 % interval of ln(Throughput), 0 without a finite interval.
func (p *Prediction) HalfWidth() float64 {
	if !(p.Lo > 0 && p.Hi > p.Lo) || math.IsInf(p.Hi, 0) {
		return 0
	}
	return math.Log(p.Hi/p.Lo) / 2
}
