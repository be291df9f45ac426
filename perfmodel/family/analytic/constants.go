package analytic

import (
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// constants are the free parameters of the analytic model: the shares of datasheet rates that kernels, links
// and hosts reach, and the shares of traffic that stacks overlap. base holds the values before training, each
// with its source; params lists their uncertainty; Train fits them.
type constants struct {
	shares [len(generations)]shares

	// Saturation of a multiplication M x N x K: its efficiency is ceiling / (1 + waveHalf/waves) / (1 +
	// depthHalf/K), where waves is M·N/tile² per unit of the device. This is a smooth form of the wave
	// quantization in NVIDIA's "Matrix Multiplication Background" guide.
	waveHalf, depthHalf float64
	misaligned          float64 // factor on the time of multiplications with a width that is not a multiple of alignment
	groupedGEMM         float64 // efficiency of multiplications for several experts at once, relative to dense ones
	groupedHalf         float64 // rows per expert at which half of groupedGEMM is reached
	mxGEMM, rowwiseGEMM float64 // ceilings of the fp8 variants relative to fp8 with one scale per tensor
	fp32GEMM            float64 // ceiling of fp32 and tf32 relative to 16 bits

	unfusedShare  float64 // ceiling of batched multiplications over the score matrix relative to others
	unfusedPasses float64 // 2-byte passes over the score matrix, forward and backward: softmax, mask, dropout
	flashHalf     float64 // tokens at which fused attention reaches half of its ceiling (Dao 2023, figures 4 and 5: 500 to 700 on A100)
	torchFlash    float64 // PyTorch's fused attention relative to FlashAttention 2
	hopperFlash   float64 // FlashAttention 3 and cuDNN on Hopper relative to FlashAttention 2 (Shah et al. 2024, figure 5: 1.5 to 2)

	memShare       float64 // share of the memory bandwidth that streaming kernels reach
	passesOutside  float64 // passes over tokens x hidden, forward and backward: norms, residuals, dropout
	passesInside   float64 // passes over tokens x f of an MLP's activation, relative to a read and a write of each tensor
	passesQuantize float64 // passes over tokens x f when quantizing to 8 or 4 bits
	passesLogits   float64 // passes over tokens x vocabulary: loss and its gradient
	fusedPasses    float64 // passes of stacks with fused kernels relative to eager ones
	accumBytes     float64 // bytes accessed per parameter when a micro-batch's gradients are accumulated: read and written in 4 bytes, or two reads and a write in 2
	optimizerBytes float64 // bytes accessed per parameter by Adam in mixed precision

	netShare     float64 // share of the line rate between nodes that is reached
	netHopSec    float64 // one hop of a collective between nodes; NCCL's own tables assume 2.7 to 4 us for its small protocols (tuning.cc)
	tpOverlap    float64 // exposed share of tensor parallel traffic if the stack overlaps it inside its kernels
	tpAsync      float64 // the same if it runs on another stream
	dpHidden     float64 // share of the last backward pass that gradient traffic can overlap
	fsdpHidden   float64 // share of the compute that ZeRO-3 traffic can overlap
	zero3Hidden  float64 // the same for DeepSpeed
	zero3Traffic float64 // DeepSpeed's ZeRO-3 traffic relative to the ideal; sharding in groups is up to 2.89 times as fast (Zhang et al., "MiCS", VLDB 2022)
	hiddenCost   float64 // share of overlapped traffic by which it slows the overlapping kernels
	allToAll     float64 // exposed share of expert dispatch and combine that nothing hides
	bubbleShare  float64 // share of the ideal 1F1B bubble that is paid: the stages of the ramp have less work
	p2pShare     float64 // exposed share of stage-to-stage transfers
	p2pOverlap   float64 // the same if the stack sends while it computes the next chunk

	// moePasses is the number of passes over the tokens' copies for experts. Forward: one to sort, two to quantize or
	// cast, one in and out of the buffers of the dispatch and of the combine each; backward as many.
	moePasses float64
	ssmShare  float64               // passes of state-space mixers relative to ssmPasses
	routing   [routingKinds]float64 // host time to launch the forward pass of a layer with routed experts, seconds

	launch    [launchKinds]float64 // host time to launch one layer's forward pass, seconds
	fixedSec  float64              // per step: data, clipping, logging
	hostShare float64              // share of a host link's rate that copies reach while all devices of a node are busy
	cpuAdam   float64              // parameters/s per device that usualThreads CPU threads update

	// Convolutional and other opaque models: each pass moves one byte per 100 forward FLOPs, as in package
	// memory.
	convPasses  float64
	convCeiling float64 // share of the generation's ceiling: many shapes, few channels
}

// shares are the shares of datasheet rates that one generation of devices reaches.
type shares struct {
	gemm  float64 // ceiling of 16-bit multiplications inside a training step
	gemm8 float64 // the same for fp8
	gemm4 float64 // the same for fp4
	flash float64 // fused attention, share of the 16-bit peak; 0 = no such kernel
	ring  float64 // share of the scale-up rate that a ring collective reaches
	start float64 // until the links of a ring inside a node are busy, seconds: this time, not the bytes at half of the rate, is alike on slow and fast links; not fitted, since it acts as hop does
	hop   float64 // one hop of a collective inside a node, seconds
}

// generation holds datasheet facts of a device's architecture.
type generation struct {
	arch     string
	units    float64 // streaming multiprocessors or compute units of the largest model
	interBps float64 // network bandwidth per device if a Config has none, bytes/s
	tensor   bool    // it has Tensor Cores
	exps     float64 // time of the exponentials of attention over that of its multiplications, for heads 128 wide; 0 = not known

	// Dense 16-bit and fp8 peak and power limit of the largest model, for variants without published rates.
	peak16, peak8, watts float64
}

// generations are the architectures with their own shares; the last entry is for all others. Network bandwidths
// are those of the vendor's own machine: DGX-1 4 x 100 Gb/s, DGX A100 8 x 200, DGX H100 8 x 400, GB300 NVL72
// 800 per device. Exponentials: 16 per clock and multiprocessor, 32 on Blackwell Ultra (CUDA C++ Programming Guide,
// arithmetic instructions), for 2048, 4096, 8192 and 8192 FLOPs of 16-bit multiplications from Ampere on; a score of
// heads 128 wide is 512 FLOPs and one exponential (Shah et al. 2024, section 3.1).
var generations = [...]generation{
	{arch: "Kepler", units: 13, interBps: 1.25e9},
	{arch: "Pascal", units: 56, interBps: 6.25e9},
	{arch: "Volta", tensor: true, units: 80, interBps: 6.25e9, peak16: 125e12, watts: 300},
	{arch: "Turing", tensor: true, units: 68, interBps: 3.1e9},
	{arch: "Ampere", tensor: true, units: 108, interBps: 25e9, exps: 0.25, peak16: 312e12, watts: 400},
	{arch: "Ada", tensor: true, units: 142, interBps: 12.5e9, exps: 0.25},
	{arch: "Hopper", tensor: true, units: 132, interBps: 50e9, exps: 0.5, peak16: 989e12, watts: 700, peak8: 1979e12},
	{arch: "Blackwell", tensor: true, units: 148, interBps: 50e9, exps: 1, peak16: 2250e12, watts: 1000, peak8: 4500e12},
	{arch: "Blackwell Ultra", tensor: true, units: 148, interBps: 100e9, exps: 0.5},
	{arch: "CDNA2", units: 208, interBps: 25e9},
	{arch: "CDNA3", units: 304, interBps: 50e9},
	{arch: "CPU", units: 1, interBps: 1.25e9},
	{units: 108, interBps: 12.5e9},
}

// launchKind is the way in which a stack's host code launches kernels.
type launchKind int

const (
	launchEager    launchKind = iota // a framework call per operator
	launchCompiled                   // fused by a compiler
	launchLean                       // hand-fused operators
	launchGraph                      // captured graphs, or one call per block
	launchKinds
)

// routingKind is the way in which a stack's host code launches layers with routed experts.
type routingKind int

const (
	routingPlain routingKind = iota
	routingFused
	routingGraph
	routingKinds
)

const (
	tile          = 128.0
	bucket        = 40e6 // smallest number of parameters in a gradient bucket, Megatron Core's default;
	bucketPerRank = 1e6  // it also grows with the data parallel size
	alignment     = 64   // elements; a sharded width that is not a multiple of it cannot use the fast path of the tensor cores
	// Tensor Cores multiply matrices with widths of a multiple of 16 bytes; cuBLAS 11 and later use them for others too, but less
	// efficiently (NVIDIA's "Matrix Multiplication Background" guide), which is taken to be as slow. Without them a V100 does 31 of
	// 125, an A100 78 of 312 TFLOP/s in 16 bits (NVIDIA's white papers of both).
	tensorWidth        = 8 // elements of 16 bits
	withoutTensorCores = 4
	flashBackward      = 2.5  // backward over forward time of fused attention: five multiplications against two (Dao et al. 2022)
	hostBps            = 16e9 // assumed host link of a device without a known one: PCIe 3.0 x16
	pcieBps            = 12e9 // assumed rate between devices without a known link, bytes/s
)

// base holds the constants before training.
//
// Ceilings: the best isolated multiplications reach 0.87 of dense bf16 on A100 SXM, 0.80 on H100 SXM, 0.78 on
// B200, 0.73 on GB200, 0.51 on MI300X (stas00/ml-engineering, compute/accelerator, commit 744d01e1); training
// runs under load reach about 0.85 of that. Fused attention: FlashAttention-2 reports 0.5 to 0.6 of A100's peak
// forward and backward, 0.35 to 0.4 of H100's (Dao 2023). Unknown values are those of a similar generation. On
// a CPU the ceiling is that of the installed BLAS.
var base = constants{
	shares: [...]shares{
		{gemm: 0.70, gemm8: 0.65, gemm4: 0.5, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.65, gemm8: 0.65, gemm4: 0.5, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.60, gemm8: 0.65, gemm4: 0.5, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.60, gemm8: 0.65, gemm4: 0.5, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.74, gemm8: 0.65, gemm4: 0.5, flash: 0.60, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.70, gemm8: 0.60, gemm4: 0.5, flash: 0.52, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.68, gemm8: 0.62, gemm4: 0.5, flash: 0.42, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.62, gemm8: 0.58, gemm4: 0.45, flash: 0.42, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.64, gemm8: 0.60, gemm4: 0.45, flash: 0.42, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.45, gemm8: 0.45, gemm4: 0.45, flash: 0.28, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.43, gemm8: 0.40, gemm4: 0.40, flash: 0.28, ring: 0.6, start: 30e-6, hop: 15e-6},
		{gemm: 0.15, gemm8: 0.15, gemm4: 0.15, ring: 0.6, start: 1e-3, hop: 200e-6},
		{gemm: 0.60, gemm8: 0.55, gemm4: 0.45, flash: 0.40, ring: 0.6, start: 30e-6, hop: 15e-6},
	},
	waveHalf: 0.7, depthHalf: 128, misaligned: 1.4, groupedGEMM: 0.7, groupedHalf: 500, mxGEMM: 0.95, rowwiseGEMM: 0.7, fp32GEMM: 1,
	unfusedShare: 0.55, unfusedPasses: 11, flashHalf: 600, torchFlash: 0.8, hopperFlash: 1.5,
	memShare: 0.75, passesOutside: 10, passesInside: 1, passesQuantize: 1.5, passesLogits: 8,
	fusedPasses: 0.75, optimizerBytes: 30, accumBytes: 8,
	netShare: 0.75, netHopSec: 3e-6,
	tpOverlap: 0.4, tpAsync: 0.8, dpHidden: 0.6, fsdpHidden: 0.8, zero3Hidden: 0.3, zero3Traffic: 2.5,
	hiddenCost: 0.06, allToAll: 0.8, bubbleShare: 0.9, p2pShare: 0.5, p2pOverlap: 0.1,
	moePasses: 14, ssmShare: 1, routing: [...]float64{10e-3, 3e-3, 0.5e-3},
	launch:   [...]float64{1e-3, 0.25e-3, 0.35e-3, 0.1e-3},
	fixedSec: 15e-3, hostShare: 0.5, cpuAdam: 0.5e9,
	convPasses: 6, convCeiling: 0.6,
}

// parameter is one number that fits may change: a common factor on one or more constants.
type parameter struct {
	name string
	sd   float64 // standard deviation of its logarithm before training
	at   func(*constants) []*float64
}

func one(at func(*constants) *float64) func(*constants) []*float64 {
	return func(k *constants) []*float64 { return []*float64{at(k)} }
}

// share returns a parameter for one share of one generation.
func share(name, arch string, sd float64, at func(*shares) *float64) parameter {
	i := generationOf(arch)
	return parameter{name: name + " " + arch, sd: sd, at: func(k *constants) []*float64 { return []*float64{at(&k.shares[i])} }}
}

// everyShare returns a parameter that scales a share of all generations together.
func everyShare(name string, sd float64, at func(*shares) *float64) parameter {
	return parameter{name: name, sd: sd, at: func(k *constants) (out []*float64) {
		for i := range k.shares {
			out = append(out, at(&k.shares[i]))
		}
		return out
	}}
}

func gemmShare(s *shares) *float64  { return &s.gemm }
func gemm8Share(s *shares) *float64 { return &s.gemm8 }
func gemm4Share(s *shares) *float64 { return &s.gemm4 }
func flashShare(s *shares) *float64 { return &s.flash }
func ringShare(s *shares) *float64  { return &s.ring }
func hopShare(s *shares) *float64   { return &s.hop }

// params are the parameters that fits may change. Standard deviations: 5 % for values that follow from counting
// or a datasheet, 10 to 20 % for shares known from benchmarks, 30 to 70 % if only the order of magnitude is
// known.
var params = []parameter{
	everyShare("gemm", 0.10, gemmShare),
	everyShare("fp8 gemm", 0.12, gemm8Share),
	everyShare("fp4 gemm", 0.2, gemm4Share),
	everyShare("fused attention", 0.2, flashShare),
	share("gemm", "Volta", 0.12, gemmShare), share("gemm", "Ampere", 0.08, gemmShare), share("gemm", "Hopper", 0.08, gemmShare),
	share("gemm", "Blackwell", 0.10, gemmShare), share("gemm", "Blackwell Ultra", 0.10, gemmShare),
	share("fp8 gemm", "Hopper", 0.10, gemm8Share), share("fp8 gemm", "Blackwell", 0.10, gemm8Share), share("fp8 gemm", "Blackwell Ultra", 0.10, gemm8Share),
	share("fp4 gemm", "Blackwell", 0.15, gemm4Share), share("fp4 gemm", "Blackwell Ultra", 0.15, gemm4Share),
	share("fused attention", "Ampere", 0.2, flashShare), share("fused attention", "Hopper", 0.2, flashShare), share("fused attention", "Blackwell", 0.2, flashShare),
	{"wave saturation", 0.5, one(func(k *constants) *float64 { return &k.waveHalf })},
	{"depth saturation", 0.5, one(func(k *constants) *float64 { return &k.depthHalf })},
	{"misaligned widths", 0.2, one(func(k *constants) *float64 { return &k.misaligned })},
	{"mxfp8 gemm", 0.1, one(func(k *constants) *float64 { return &k.mxGEMM })},
	{"row-wise fp8 gemm", 0.3, one(func(k *constants) *float64 { return &k.rowwiseGEMM })},
	{"rows of an expert", 0.8, one(func(k *constants) *float64 { return &k.groupedHalf })},
	{"grouped gemm", 0.3, one(func(k *constants) *float64 { return &k.groupedGEMM })},
	{"unfused attention", 0.3, one(func(k *constants) *float64 { return &k.unfusedShare })},
	{"score passes", 0.3, one(func(k *constants) *float64 { return &k.unfusedPasses })},
	{"attention saturation", 0.3, one(func(k *constants) *float64 { return &k.flashHalf })},
	{"asynchronous attention", 0.15, one(func(k *constants) *float64 { return &k.hopperFlash })},
	{fp32Param, 0.2, one(func(k *constants) *float64 { return &k.fp32GEMM })},
	{"PyTorch attention", 0.2, one(func(k *constants) *float64 { return &k.torchFlash })},
	{"memory bandwidth", 0.1, one(func(k *constants) *float64 { return &k.memShare })},
	{"passes outside TP", 0.25, one(func(k *constants) *float64 { return &k.passesOutside })},
	{"passes inside TP", 0.25, one(func(k *constants) *float64 { return &k.passesInside })},
	{"quantization passes", 0.4, one(func(k *constants) *float64 { return &k.passesQuantize })},
	{"logit passes", 0.3, one(func(k *constants) *float64 { return &k.passesLogits })},
	{"fused passes", 0.2, one(func(k *constants) *float64 { return &k.fusedPasses })},
	{"accumulation bytes", 0.3, one(func(k *constants) *float64 { return &k.accumBytes })},
	{"optimizer bytes", 0.2, one(func(k *constants) *float64 { return &k.optimizerBytes })},
	everyShare("ring share", 0.15, ringShare),
	share("ring share", "Volta", 0.15, ringShare), share("ring share", "Ampere", 0.15, ringShare), share("ring share", "Hopper", 0.15, ringShare), share("ring share", "Blackwell", 0.15, ringShare),
	{"network share", 0.2, one(func(k *constants) *float64 { return &k.netShare })},
	everyShare("hop", 0.4, hopShare), share("hop", "CPU", 0.7, hopShare), share("gemm", "CPU", 1, gemmShare), share("ring share", "CPU", 0.7, ringShare),
	{"network hop", 0.7, one(func(k *constants) *float64 { return &k.netHopSec })},
	{"exposed TP, overlapped", 0.4, one(func(k *constants) *float64 { return &k.tpOverlap })},
	{"exposed TP, asynchronous", 0.15, one(func(k *constants) *float64 { return &k.tpAsync })},
	{"gradients hidden", 0.3, one(func(k *constants) *float64 { return &k.dpHidden })},
	{"FSDP hidden", 0.15, one(func(k *constants) *float64 { return &k.fsdpHidden })},
	{"DeepSpeed ZeRO-3 hidden", 0.7, one(func(k *constants) *float64 { return &k.zero3Hidden })},
	{"DeepSpeed ZeRO-3 traffic", 0.5, one(func(k *constants) *float64 { return &k.zero3Traffic })},
	{"cost of overlap", 0.4, one(func(k *constants) *float64 { return &k.hiddenCost })},
	{"exposed all-to-all", 0.25, one(func(k *constants) *float64 { return &k.allToAll })},
	{"bubble", 0.1, one(func(k *constants) *float64 { return &k.bubbleShare })},
	{"exposed stage transfers", 0.4, one(func(k *constants) *float64 { return &k.p2pShare })},
	{"exposed stage transfers, overlapped", 0.6, one(func(k *constants) *float64 { return &k.p2pOverlap })},
	{"routing passes", 0.4, one(func(k *constants) *float64 { return &k.moePasses })},
	{"state-space passes", 0.4, one(func(k *constants) *float64 { return &k.ssmShare })},
	{"routing, plain", 0.5, one(func(k *constants) *float64 { return &k.routing[routingPlain] })},
	{"routing, fused", 0.5, one(func(k *constants) *float64 { return &k.routing[routingFused] })},
	{"routing, graphs", 0.5, one(func(k *constants) *float64 { return &k.routing[routingGraph] })},
	{"launch, eager", 0.4, one(func(k *constants) *float64 { return &k.launch[launchEager] })},
	{"launch, compiled", 0.4, one(func(k *constants) *float64 { return &k.launch[launchCompiled] })},
	{"launch, fused operators", 0.4, one(func(k *constants) *float64 { return &k.launch[launchLean] })},
	{"launch, graphs", 0.4, one(func(k *constants) *float64 { return &k.launch[launchGraph] })},
	{"fixed", 0.3, one(func(k *constants) *float64 { return &k.fixedSec })},
	{"host link", 0.4, one(func(k *constants) *float64 { return &k.hostShare })},
	{"CPU Adam", 0.5, one(func(k *constants) *float64 { return &k.cpuAdam })},
	{"convolution passes", 0.3, one(func(k *constants) *float64 { return &k.convPasses })},
	{"convolution ceiling", 0.2, one(func(k *constants) *float64 { return &k.convCeiling })},
}

// effects are the ways in which one site, a training stack on one type of device, differs from the average
// site. Standard deviations come from the spread of the published sources: good code bases on one device differ
// by 10 % in compute, networks by a third.
var effects = []parameter{
	{"compute", 0.08, func(k *constants) []*float64 {
		var out []*float64
		for i := range k.shares {
			s := &k.shares[i]
			out = append(out, &s.gemm, &s.gemm8, &s.gemm4, &s.flash)
		}
		return out
	}},
	{"memory", 0.13, one(func(k *constants) *float64 { return &k.memShare })},
	{"scale-up link", 0.15, everyShare("", 0, ringShare).at},
	{"network", 0.30, one(func(k *constants) *float64 { return &k.netShare })},
	{"launch", 0.30, func(k *constants) []*float64 {
		var out []*float64
		for i := range k.launch {
			out = append(out, &k.launch[i])
		}
		for i := range k.routing {
			out = append(out, &k.routing[i])
		}
		return out
	}},
	{"fixed", 0.40, one(func(k *constants) *float64 { return &k.fixedSec })},
}

// recipe returns the ceiling of an fp8 variant relative to fp8.
func (k *constants) recipe(p spec.Precision) float64 {
	switch p {
	case spec.MXFP8:
		return k.mxGEMM
	case spec.FP8Rowwise:
		return k.rowwiseGEMM
	}
	return 1
}

// move multiplies the constants of parameters ps by e to the power of x.
func (k *constants) move(ps []parameter, x []float64) {
	for i, p := range ps {
		if x[i] == 0 {
			continue
		}
		f := math.Exp(x[i])
		for _, v := range p.at(k) {
			*v *= f
		}
	}
}

// cpuArchs are the vector instruction sets used as the architecture of a CPU.
var cpuArchs = []string{"AVX-512", "AVX2", "AVX", "SSE", "NEON", "SVE"}

// generationOf returns the index of an architecture in generations.
func generationOf(arch string) int {
	if slices.Contains(cpuArchs, arch) {
		arch = "CPU"
	}
	for i := range generations[:len(generations)-1] {
		if generations[i].arch == arch {
			return i
		}
	}
	return len(generations) - 1
}

// isMesh reports whether the devices of a node have direct links and no switch, as in AMD's MI200 and MI300 platforms
// and on P100 and V100 SXM2. A group of g of n devices can then use (g-1)/(n-1) of a device's links. Eight of the
// latter form a cube: of six links, neighbours share one or two, and the four of a side four (NVIDIA DGX-1 white paper,
// figure 4).
func isMesh(a *spec.Accelerator) (mesh, cube bool) {
	switch a.Arch {
	case "Pascal", "Volta":
		return strings.Contains(a.Name, "SXM2"), true
	case "CDNA2", "CDNA3", "CDNA4":
		return true, false
	}
	return false, false
}
