package spec

import (
	"cmp"
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

	// Variants of fp8 with other kernels: one scale per block of 32 elements (OCP Microscaling Formats, 2023),
	// and one per row.
	MXFP8      Precision = "mxfp8"
	FP8Rowwise Precision = "fp8-rowwise"
)

// Format returns the number format of p, which is fp8 for each of its variants.
func (p Precision) Format() Precision {
	switch p {
	case MXFP8, FP8Rowwise:
		return FP8
	}
	return p
}

// Precisions lists the known precisions, widest first.
func Precisions() []Precision {
	return []Precision{FP32, TF32, FP16, BF16, FP8, MXFP8, FP8Rowwise, FP4}
}

// Bytes returns the size of one element in p, 4 for an unknown precision.
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

// Accelerator is a device type as its datasheet describes it. A value of 0 means unknown.
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

	// Measured is the Digest of micro-benchmarks on the devices at hand, "" = none. The store adds it to the rows that it
	// returns; no file has it.
	Measured string `json:"-"`
}

// cpuPrefix begins the name of a device that is cores of a CPU. No GPU has a name with this prefix.
const cpuPrefix = "CPU "

// IsCPU reports whether a is cores of a CPU. Its memory is then the host's, and no driver keeps a context in
// it.
func (a Accelerator) IsCPU() bool { return strings.HasPrefix(a.Name, cpuPrefix) }

// ScaleUpDomain returns the number of devices that the scale-up link of a joins across nodes, 0 if it ends at the node.
// Sources: NVIDIA's datasheets of GB200 and GB300 NVL72, and its announcement of Vera Rubin NVL72; Google Cloud TPU
// documentation, for the pod of the smaller generations.
func (a Accelerator) ScaleUpDomain() int {
	switch {
	case a.Name == "GB200" || a.Name == "GB300" || a.Name == "VR200":
		return 72
	case strings.HasPrefix(a.Name, "TPU-"):
		return 256
	}
	return 0
}

// Domain returns the number of devices that the scale-up link of a joins on nodes of a number of devices.
func (a Accelerator) Domain(node int) int { return cmp.Or(a.ScaleUpDomain(), node) }

// Peak returns the dense matrix rate in FLOP/s for p. If the device lacks the format, it runs in the next wider
// one it has: fp4 and fp8 as bf16, bf16 as fp16, fp16 and tf32 as fp32. 0 if no rate is known.
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

// Formats returns the number formats with a known rate, widest first.
func (a Accelerator) Formats() []Precision {
	var out []Precision
	for _, of := range [...]struct {
		format Precision
		rate   float64
	}{{FP32, a.FP32}, {TF32, a.TF32}, {FP16, a.FP16}, {BF16, a.BF16}, {FP8, a.FP8}, {FP4, a.FP4}} {
		if of.rate > 0 {
			out = append(out, of.format)
		}
	}
	return out
}

// DefaultPrecision returns the precision that models are usually trained in on a: bf16 if the device has it or
// no rate is known, else fp16, else fp32.
func (a Accelerator) DefaultPrecision() Precision {
	switch {
	case a.BF16 > 0 || a.FP16 <= 0 && a.FP32 <= 0:
		return BF16
	case a.FP16 > 0:
		return FP16
	}
	return FP32
}

// Validate reports why a cannot be used to predict without measurements.
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

// Link holds the network rates of a job, one direction, bytes/s. A value of 0 means unknown: predictors then
// use the accelerator's own rates and add a warning.
type Link struct {
	IntraBps float64 `json:"intra_bps,omitempty"` // device to device inside a node, per device
	InterBps float64 `json:"inter_bps,omitempty"` // out of one node, all its NICs together
	HostBps  float64 `json:"host_bps,omitempty"`  // device to host memory, per device
}

// Node is a type of machine: a number of equal devices, CPUs, host memory and links.
type Node struct {
	Name        string  `json:"name"`
	Accelerator string  `json:"accelerator"` // Accelerator.Name
	Devices     int     `json:"devices"`
	CPUs        int     `json:"cpus,omitempty"`       // hardware threads
	HostBytes   float64 `json:"host_bytes,omitempty"` // host memory
	Link        Link    `json:"link"`
}
