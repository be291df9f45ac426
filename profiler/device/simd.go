package device

import (
	"regexp"
	"strings"
)

// simdRates are the floating-point operations that one core starts per cycle; a fused multiply-add counts as two.
// 0 = unknown, or the format is not supported.
type simdRates struct{ fp32, bf16 float64 }

// simd returns the widest vector instructions of a processor, its instructions for bfloat16, and the rates of a
// core:
//
//	AVX-512, two 512-bit FMA ports            64  Xeon Scalable, Zen 5
//	AVX-512, one port or two of 256 bits      32  Intel client cores, Zen 4
//	AVX2 + FMA, two 256-bit ports             32  Haswell and later, Zen 2 and later
//	AVX2 + FMA, two 128-bit ports             16  Zen 1
//	AVX, one 256-bit multiply and one add     16  Sandy Bridge, Ivy Bridge
//	SSE, one 128-bit multiply and one add      8
//	NEON, SVE                                     see armParts
//
// bfloat16: AVX512_BF16 has twice the FP32 rate of the same ports. AMX has 1024 per cycle (one 16x16x32 tile
// product every 16 cycles). Libraries may not use either: PyTorch does with oneDNN 2.5 or later if the kernel
// permits it.
//
// Sources: Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), the chapters on each core
// and on AMX; Software Optimization Guides for AMD Family 17h (55723), 19h (57647, 56665) and 1Ah (58455)
// Processors. Xeons count as having two ports, except those of the first two generations (model 85) that
// Intel's product pages list with one: Bronze, Silver and Gold 5xxx other than 5122 and 5222. If a cloud hides
// the model number, two ports are assumed.
func simd(p cpuinfo, vendor, model string) (name, bf16 string, r simdRates) {
	switch {
	case p.has("avx512f"):
		name, r.fp32 = "AVX-512", avx512Rate(p, vendor, model)
	case p.has("avx2", "fma"):
		name, r.fp32 = "AVX2", 32
		if (vendor == "AMD" || vendor == "Hygon") && p.int("cpu family") <= 0x18 && p.int("model") < 0x30 {
			r.fp32 = 16
		}
	case p.has("avx"):
		name, r.fp32 = "AVX", 16
	case p.has("sse2"):
		name, r.fp32 = "SSE", 8
	case p.has("sve"), p.has("asimd"), p.has("neon"):
		return armSIMD(p)
	}
	switch {
	case p.has("amx_bf16", "amx_tile"):
		bf16, r.bf16 = "AMX", 1024
	case p.has("avx512_bf16"):
		bf16, r.bf16 = "AVX512_BF16", 2*r.fp32
	}
	return name, bf16, r
}

// onePort matches the Xeons of model 85 with one 512-bit FMA port.
var onePort = regexp.MustCompile(`Bronze|Silver|Gold 5([013-9]|1[013-9]|2[013-9]|12[^2]|22[^2])`)

// avx512Rate returns the FP32 rate of a core with AVX-512.
func avx512Rate(p cpuinfo, vendor, model string) float64 {
	switch {
	case vendor == "AMD" && p.int("cpu family") >= 0x1a:
		return 64
	case vendor != "Intel" || !strings.Contains(model, "Xeon"):
		return 32
	case p.int("model") == 85 && onePort.MatchString(model):
		return 32
	}
	return 64
}
