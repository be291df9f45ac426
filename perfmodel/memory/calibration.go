package memory

import (
	"fmt"
	"math"
	"strconv"
)

// Constants are the values that only measurements can provide: bytes outside of tensors, and ratios of
// allocated to counted bytes. All are positive.
type Constants struct {
	ContextBytes      float64 `json:"context_bytes"`      // device context, kernels, library workspaces
	CommunicatorBytes float64 `json:"communicator_bytes"` // memory of one communicator; each kind of parallelism has one
	Fragmentation     float64 `json:"fragmentation"`      // share of memory other than optimizer states that the allocator holds but cannot use
	Unseen            float64 `json:"unseen"`             // share of the counted bytes that is allocated in addition
	Activation        float64 `json:"activation"`         // ratio of kept to counted activations
	Loss              float64 `json:"loss"`               // ratio of actual to counted bytes per logit
	Gathered          float64 `json:"gathered"`           // ratio of actual to counted bytes of the units that ZeRO-3 has gathered
}

// Distribution is a distribution of Constants: independent, approximately log-normal.
type Distribution struct {
	Constants
	SD    Constants `json:"sd"`     // standard deviation of the log of each
	LogSD float64   `json:"log_sd"` // standard deviation of log(measured / estimated)
	Rows  int       `json:"rows"`   // number of measurements it was fitted to
}

// Calibration holds a Distribution for each measured training stack, by its name in stacks, and Pooled for all
// other stacks. Once in use it must not be changed.
type Calibration struct {
	Pooled Distribution            `json:"pooled"`
	Stacks map[string]Distribution `json:"stacks,omitempty"`
}

// Validate reports a value that is not positive and finite.
func (cal *Calibration) Validate() error {
	if err := cal.Pooled.validate("pooled"); err != nil {
		return err
	}
	for name, b := range cal.Stacks {
		if err := b.validate(name); err != nil {
			return err
		}
	}
	return nil
}

func (b *Distribution) validate(name string) error {
	for _, v := range append(append(b.Constants.vector(), b.SD.vector()...), b.LogSD) {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("memory: calibration of %s: %g is not positive and finite", name, v)
		}
	}
	return nil
}

// of returns the constants of a stack, and the standard deviation of
// log(measured / estimated).
func (cal *Calibration) of(stack string) (k Constants, logSD float64) {
	b, ok := cal.Stacks[stack]
	if !ok {
		b = cal.Pooled
	}
	return b.Constants, b.LogSD
}

// Rounded returns cal with every number rounded to n significant digits.
func (cal *Calibration) Rounded(n int) *Calibration {
	out := &Calibration{Pooled: cal.Pooled.rounded(n), Stacks: map[string]Distribution{}}
	for name, b := range cal.Stacks {
		out.Stacks[name] = b.rounded(n)
	}
	return out
}

func (b Distribution) rounded(n int) Distribution {
	b.Constants, b.SD = b.Constants.rounded(n), b.SD.rounded(n)
	b.LogSD = roundTo(b.LogSD, n)
	return b
}

func (k Constants) rounded(n int) Constants {
	v := k.vector()
	for i := range v {
		v[i] = roundTo(v[i], n)
	}
	return fromVector(v)
}

// roundTo returns v rounded to n significant digits.
func roundTo(v float64, n int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64) // cannot fail: FormatFloat wrote the digits
	return r
}

// Prior returns the calibration before any measurement.
//
//   - ContextBytes: CUDA 11 and 12 with PyTorch take 0.4 to 1 GiB on V100 to
//     H100, the workspaces of cuBLAS 32 MiB on Hopper.
//   - CommunicatorBytes: NCCL 2 allocates a few MiB per channel and peer:
//     0.1 GiB in one node to over 1 GiB for hundreds of ranks.
//   - Fragmentation: 3 to 8 % is what users of PyTorch's caching allocator see
//     as reserved over allocated.
//   - Unseen: small tensors, padding, alignment, the data loader's batches. Counts of Megatron Core's tensors are
//     below torch.cuda.max_memory_allocated by 0.1 to 1 %.
//   - The factors are 1: counts are exact unless measurements differ.
func Prior() *Calibration {
	return &Calibration{Pooled: Distribution{
		Constants: Constants{ContextBytes: 0.8 * GiB, CommunicatorBytes: 0.3 * GiB, Fragmentation: 0.06, Unseen: 0.01, Activation: 1, Loss: 1, Gathered: 1},
		SD:        Constants{ContextBytes: 0.3, CommunicatorBytes: 0.7, Fragmentation: 0.6, Unseen: 1.5, Activation: 0.05, Loss: 0.1, Gathered: 0.1},
		LogSD:     0.12,
	}}
}

// between is the standard deviation between stacks, of the log of each constant. The prior of one stack is
// Pooled, widened by it.
var between = Constants{ContextBytes: 0.2, CommunicatorBytes: 0.4, Fragmentation: 0.4, Unseen: 1, Activation: 0.05, Loss: 0.1, Gathered: 0.1}

// vector returns the constants in the order of fromVector.
func (k *Constants) vector() []float64 {
	return []float64{k.ContextBytes, k.CommunicatorBytes, k.Fragmentation, k.Unseen, k.Activation, k.Loss, k.Gathered}
}

// logs returns the logs of the constants.
func (k *Constants) logs() []float64 {
	v := k.vector()
	for i := range v {
		v[i] = math.Log(v[i])
	}
	return v
}

func fromVector(v []float64) Constants {
	return Constants{v[0], v[1], v[2], v[3], v[4], v[5], v[6]}
}

func fromLogs(v []float64) Constants {
	var e [7]float64
	for i := range e {
		e[i] = math.Exp(v[i])
	}
	return fromVector(e[:])
}
