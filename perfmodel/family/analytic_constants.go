package family

import (
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// generation holds what depends on a device's architecture, as shares of its
// datasheet figures.
//
// Ceilings are what large aligned multiplications reach inside a training
// step, clocks under load included. They lie below the best isolated rates
// (A100 0.87, H100 0.80, B200 0.78 of dense bf16: stas00/ml-engineering,
// compute/accelerator, commit 744d01e1) and are set once per generation, in
// the middle of the code bases that published step times on it (BigScience,
// InternEvo, Megatron-LM SC 2021, fms-fsdp; torchtitan, NeMo, Megatron-Bridge),
// which lie 10 % to either side. Generations without such rows, marked *, take
// a neighbour's value.
type generation struct {
	arch     string
	units    float64 // streaming multiprocessors or compute units of the large part
	gemm     float64 // ceiling of 16-bit, tf32 and fp32 multiplications
	gemm8    float64 // of fp8, 0 = as gemm
	gemm4    float64 // of fp4, 0 = as gemm8
	flash    float64 // fused attention, share of the 16-bit peak; 0 = no such kernel
	interBps float64 // network per device when a Config gives none, bytes/s

	// Dense 16-bit peak and power limit of the large part, for variants
	// without published rates.
	peak16, watts float64
	peak8         float64
}

var generations = []generation{
	{arch: "Kepler", units: 13, gemm: 0.70, interBps: 1.25e9},                                                                      // *
	{arch: "Pascal", units: 56, gemm: 0.65, interBps: 6.25e9},                                                                      // *
	{arch: "Volta", units: 80, gemm: 0.55, interBps: 6.25e9, peak16: 125e12, watts: 300},                                           // DGX-1: 4 x 100 Gb/s
	{arch: "Turing", units: 68, gemm: 0.55, interBps: 3.1e9},                                                                       // *
	{arch: "Ampere", units: 108, gemm: 0.73, flash: 0.54, interBps: 25e9, peak16: 312e12, watts: 400},                              // DGX A100: 8 x 200 Gb/s
	{arch: "Ada", units: 142, gemm: 0.65, gemm8: 0.60, flash: 0.45, interBps: 12.5e9},                                              // *
	{arch: "Hopper", units: 132, gemm: 0.63, gemm8: 0.59, flash: 0.38, interBps: 50e9, peak16: 989e12, watts: 700, peak8: 1979e12}, // DGX H100: 8 x 400 Gb/s
	{arch: "Blackwell", units: 148, gemm: 0.55, gemm8: 0.53, gemm4: 0.37, flash: 0.35, interBps: 50e9, peak16: 2250e12, watts: 1000, peak8: 4500e12},
	{arch: "Blackwell Ultra", units: 148, gemm: 0.62, gemm8: 0.61, gemm4: 0.43, flash: 0.35, interBps: 100e9},
	{arch: "CDNA2", units: 208, gemm: 0.50, flash: 0.25, interBps: 25e9},              // *
	{arch: "CDNA3", units: 304, gemm: 0.45, gemm8: 0.40, flash: 0.25, interBps: 50e9}, // best isolated rate 0.51, same source
}

// anyGeneration stands in for architectures not listed.
var anyGeneration = generation{units: 108, gemm: 0.55, flash: 0.35, interBps: 12.5e9}

func generationOf(arch string) *generation {
	for i := range generations {
		if generations[i].arch == arch {
			return &generations[i]
		}
	}
	return &anyGeneration
}

// scaleUpDomain returns how many devices a scale-up link joins across nodes,
// 0 when it ends at the node. Source: NVIDIA GB200 and GB300 NVL72 datasheets.
func scaleUpDomain(a *spec.Accelerator) int {
	if a.Name == "GB200" || a.Name == "GB300" {
		return 72
	}
	return 0
}

// Constants that hold for every device and stack.
const (
	// Saturation of a multiplication M x N x K: efficiency is
	// ceiling / (1 + waveHalf/waves) / (1 + depthHalf/K), waves = M·N/tile²
	// over the units of the device. Form: wave quantization of NVIDIA's
	// "Matrix Multiplication Background" guide, smoothed.
	tile      = 128.0
	waveHalf  = 0.8
	depthHalf = 137.0
	// A sharded width that is no multiple of 64 elements leaves the tensor
	// core fast path: x1.5 (BigScience rows with hidden 14400 and tp=8).
	alignment   = 64
	misaligned  = 1.5
	groupedGEMM = 0.51 // of dense efficiency, multiplications of many experts at once

	unfusedShare  = 0.41 // batched multiplications over the score matrix, share of peak
	unfusedPasses = 11.0 // 2-byte passes over the score matrix, forward and backward: softmax, mask, dropout
	flashBackward = 2.5  // backward over forward of fused attention: five multiplications for two (Dao et al. 2022)

	memShare       = 0.71 // of the memory bandwidth streaming kernels reach
	passesOutside  = 10.0 // passes over tokens x hidden, forward and backward: norms, residuals, dropout
	passesInside   = 14.0 // over the tensors TP splits, in units of tokens x hidden at f = 4h
	passesQuantize = 6.0  // more of them when quantizing to 8 or 4 bits
	passesLogits   = 8.0  // over tokens x vocabulary: loss and its gradient
	optimizerBytes = 30.0 // touched per parameter by Adam in mixed precision

	ringShare   = 0.53   // of the scale-up rate a ring collective reaches
	ringHalf    = 4e6    // bytes at which it reaches half of that
	netShare    = 0.70   // of the line rate between nodes
	hopSec      = 15e-6  // one hop of a collective
	allToAll    = 0.26   // exposed share of expert dispatch and combine
	bubbleShare = 0.80   // of the ideal 1F1B bubble: the ramp's stages are the lighter ones
	p2pShare    = 0.5    // exposed share of stage-to-stage transfers
	hiddenCost  = 0.06   // of hidden traffic that slows the kernels it hides behind
	moePasses   = 8.0    // over the routed copies: sort, gather, weigh, scatter, forward and backward
	moeSyncSec  = 1.0e-3 // per routing layer and micro-batch: the host waits for token counts
	fixedSec    = 15e-3  // per step: data, clipping, logging

	hostBps     = 10e9   // host link per device, all devices of a node busy
	cpuAdamPerS = 0.44e9 // parameters/s per device updated on the CPU
	pcieBps     = 12e9   // between devices without any link figure

	// Convolutional and other opaque models: one byte moved per 100 FLOPs of
	// forward per pass, see memory's rule; passes as observed on ResNet-50.
	opaquePasses  = 6.0
	opaqueCeiling = 0.6 // of the generation's ceiling: many shapes, small channels
)

// stackTraits is what a training stack decides about time that no plan says.
type stackTraits struct {
	match      string  // found in the lower-case framework name
	launchSec  float64 // host time to launch one layer's forward pass
	tpExposed  float64 // share of tensor parallel traffic on the critical path
	dpHidden   float64 // share of the last backward pass gradients hide behind
	fsdpHidden float64 // share of the compute ZeRO-3 traffic hides behind
	passes     float64 // memory passes, fused kernels have fewer
	traffic    float64 // ZeRO-3 traffic over the ideal
	gradBytes  float64 // per reduced gradient
	unfused    bool    // attention materializes its scores
	flash      float64 // fused attention over the generation's, 0 = 1
	halfAgain  bool    // "selective" recomputes every other multiplication
	sequence   bool    // TP comes with sequence parallelism, whatever the plan says
}

// stacks is searched in order; the last entry is for names not listed, and for
// none: today's Megatron Core, whose defaults the figures are.
var stacks = []stackTraits{
	{match: "hugging", launchSec: 1e-3, tpExposed: 1, fsdpHidden: 0.09, passes: 1, traffic: 3.3 * 1.8, gradBytes: 2, unfused: true},
	{match: "deepspeed", launchSec: 0.6e-3, tpExposed: 1, fsdpHidden: 0.09, passes: 1.2, traffic: 3.3, gradBytes: 2, unfused: true},
	{match: "bridge", launchSec: 0.09e-3, tpExposed: 0.31, dpHidden: 0.6, fsdpHidden: 0.8, passes: 0.75, traffic: 1, gradBytes: 2, sequence: true},
	{match: "nemo", launchSec: 0.09e-3, tpExposed: 0.31, dpHidden: 0.6, fsdpHidden: 0.8, passes: 0.75, traffic: 1, gradBytes: 2, sequence: true},
	{match: "megatron", launchSec: 0.3e-3, tpExposed: 1, passes: 1, traffic: 1, gradBytes: 2, unfused: true},
	{match: "eager", launchSec: 1e-3, tpExposed: 1, dpHidden: 0.6, fsdpHidden: 0.8, passes: 1, traffic: 1, gradBytes: 4, flash: 0.7, halfAgain: true},
	{match: "torchtitan", launchSec: 0.2e-3, tpExposed: 0.8, dpHidden: 0.6, fsdpHidden: 0.8, passes: 0.75, traffic: 1, gradBytes: 4, flash: 0.7, halfAgain: true, sequence: true},
	{match: "fsdp", launchSec: 0.2e-3, tpExposed: 1, dpHidden: 0.6, fsdpHidden: 0.8, passes: 0.75, traffic: 1, gradBytes: 2, flash: 0.7, halfAgain: true},
	{match: "litgpt", launchSec: 1e-3, tpExposed: 1, dpHidden: 0.6, fsdpHidden: 0.8, passes: 1, traffic: 1, gradBytes: 2, flash: 0.7},
	{match: "internevo", launchSec: 0.3e-3, tpExposed: 1, dpHidden: 0.3, fsdpHidden: 0.8, passes: 1, traffic: 1, gradBytes: 2},
	{match: "", launchSec: 0.2e-3, tpExposed: 0.6, dpHidden: 0.6, fsdpHidden: 0.8, passes: 0.8, traffic: 1, gradBytes: 2},
}

func stackOf(framework string) *stackTraits {
	f := strings.ToLower(framework)
	for i := range stacks {
		if strings.Contains(f, stacks[i].match) {
			return &stacks[i]
		}
	}
	return &stacks[len(stacks)-1]
}
