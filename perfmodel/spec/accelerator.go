package spec

import (
	"errors"
	"fmt"
	"strings"
)

// Precision names the number format of the matrix multiplications.
type Precision string

const (
	FP32 Precision = "fp32"
	TF32 Precision = "tf32"
	FP16 Precision = "fp16"
	BF16 Precision = "bf16"
	FP8  Precision = "fp8" // one scale per tensor
	FP4  Precision = "fp4"

	// Recipes of fp8 with other kernels: a scale per block of 32 (OCP
	// Microscaling Formats, 2023), and per row.
	MXFP8      Precision = "mxfp8"
	FP8Rowwise Precision = "fp8-rowwise"
)

// Format returns the number format of p: fp8 for each of its recipes.
func (p Precision) Format() Precision {
	switch p {
	case MXFP8, FP8Rowwise:
		return FP8
	}
	return p
}

// Precisions lists the known ones, widest first.
func Precisions() []Precision {
	return []Precision{FP32, TF32, FP16, BF16, FP8, MXFP8, FP8Rowwise, FP4}
}

// Bytes returns the bytes of one element in p, 4 for unknown ones.
func (p Precision) Bytes() float64 {
	switch p.Format() {
	case FP16, BF16:
		return 2
	case FP8:
		return 1
	case FP4:
		return 0.5
	}
	return 4
}

// Accelerator is a device type, by its datasheet. A zero figure is unknown.
type Accelerator struct {
	Name   string `json:"name"`
	Vendor string `json:"vendor,omitempty"`
	Arch   string `json:"arch,omitempty"`

	// Dense peak rates, FLOP/s.
	FP32 float64 `json:"fp32_flops,omitempty"`
	TF32 float64 `json:"tf32_flops,omitempty"`
	FP16 float64 `json:"fp16_flops,omitempty"`
	BF16 float64 `json:"bf16_flops,omitempty"`
	FP8  float64 `json:"fp8_flops,omitempty"`
	FP4  float64 `json:"fp4_flops,omitempty"`

	MemBytes   float64 `json:"mem_bytes,omitempty"`
	MemBps     float64 `json:"mem_bps,omitempty"`      // device memory bandwidth, bytes/s
	ScaleUpBps float64 `json:"scale_up_bps,omitempty"` // NVLink or alike, one direction per device, bytes/s
	HostBps    float64 `json:"host_bps,omitempty"`     // PCIe, one direction per device, bytes/s
	Watts      float64 `json:"watts,omitempty"`        // board power limit
}

// cpuPrefix begins the name of CPU cores taken as a device; no GPU's name has it.
const cpuPrefix = "CPU "

// IsCPU reports whether a is cores of a CPU rather than a device of its own: its
// memory is the host's, and no driver keeps a context in it.
func (a Accelerator) IsCPU() bool { return strings.HasPrefix(a.Name, cpuPrefix) }

// Peak returns the dense matrix rate in FLOP/s for p. Where the part lacks the
// format it runs at the next wider one it has: tf32 as fp32, bf16 as fp16 if
// the part has that, fp8 and fp4 as bf16. 0 when nothing is known.
func (a Accelerator) Peak(p Precision) float64 {
	switch p.Format() {
	case FP4:
		if a.FP4 > 0 {
			return a.FP4
		}
		fallthrough
	case FP8:
		if a.FP8 > 0 {
			return a.FP8
		}
		fallthrough
	case BF16:
		if a.BF16 > 0 {
			return a.BF16
		}
		fallthrough
	case FP16:
		if a.FP16 > 0 {
			return a.FP16
		}
	case TF32:
		if a.TF32 > 0 {
			return a.TF32
		}
	case FP32:
	default:
		return 0
	}
	return max(a.FP32, 0)
}

// Formats returns the number formats a has a rate for, widest first; none when
// no rate is known.
func (a Accelerator) Formats() []Precision {
	rates := map[Precision]float64{FP32: a.FP32, TF32: a.TF32, FP16: a.FP16, BF16: a.BF16, FP8: a.FP8, FP4: a.FP4}
	var out []Precision
	for _, p := range Precisions() {
		if rates[p] > 0 {
			out = append(out, p)
		}
	}
	return out
}

// DefaultPrecision returns what models are trained in today on a: bf16 where it
// has it or its formats are unknown, else fp16, else fp32.
func (a Accelerator) DefaultPrecision() Precision {
	switch {
	case a.BF16 > 0 || a.FP16 <= 0 && a.FP32 <= 0:
		return BF16
	case a.FP16 > 0:
		return FP16
	}
	return FP32
}

// Validate reports what makes a unusable for first-principles prediction.
func (a Accelerator) Validate() error {
	if a.Name == "" {
		return errors.New("spec: accelerator has no name")
	}
	if a.MemBytes <= 0 || a.MemBps <= 0 || a.Peak(FP4) <= 0 {
		return fmt.Errorf("spec: accelerator %s: memory %g B, bandwidth %g B/s and peak %g FLOP/s must be positive",
			a.Name, a.MemBytes, a.MemBps, a.Peak(FP4))
	}
	return nil
}

// Link is the network a job sees, one direction, bytes/s. A zero figure is
// unknown: predictors then use the accelerator's own links and say so.
type Link struct {
	IntraBps float64 `json:"intra_bps,omitempty"` // device to device inside a node, per device
	InterBps float64 `json:"inter_bps,omitempty"` // out of one node, all its NICs together
	HostBps  float64 `json:"host_bps,omitempty"`  // device to host memory, per device
}

// Node is a node type: the machine accelerators come in.
type Node struct {
	Name        string  `json:"name"`
	Accelerator string  `json:"accelerator"` // Accelerator.Name
	Devices     int     `json:"devices"`
	CPUs        int     `json:"cpus,omitempty"`       // hardware threads
	HostBytes   float64 `json:"host_bytes,omitempty"` // host memory
	Link        Link    `json:"link"`
}
