package device

import "fmt"

// armVendors maps the implementer field of MIDR_EL1 to vendor names (Arm Architecture Reference Manual, DDI
// 0487).
var armVendors = map[int]string{
	0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4e: "NVIDIA",
	0x50: "APM", 0x51: "Qualcomm", 0x61: "Apple", 0xc0: "Ampere",
}

// An armPart is a core design.
type armPart struct {
	name string
	fp32 float64 // operations per cycle, see simdRates
}

// armParts holds server cores by implementer and part number. The rate is the number of vector pipes times
// their width. bfloat16 is omitted: its instructions run at two to four times this rate, but PyTorch builds
// rarely use them.
//
// Source: Arm's Software Optimization Guides for Neoverse N1, V1, N2 and V2.
var armParts = map[[2]int]armPart{
	{0x41, 0xd0c}: {"Neoverse-N1", 16},
	{0x41, 0xd40}: {"Neoverse-V1", 32},
	{0x41, 0xd49}: {"Neoverse-N2", 16},
	{0x41, 0xd4f}: {"Neoverse-V2", 32},
}

// armName returns the name of an ARM core, since cpuinfo has only numbers. It returns "" if there is no number
// either.
func armName(p cpuinfo) string {
	implementer, part := p.int("CPU implementer"), p.int("CPU part")
	if known, ok := armParts[[2]int{implementer, part}]; ok {
		return known.name
	}
	if part < 0 {
		return ""
	}
	return fmt.Sprintf("part %#x", part)
}

// armSIMD is simd for ARM. A core missing from armParts counts as two pipes of 128 bits.
func armSIMD(p cpuinfo) (name, bf16 string, r simdRates) {
	name, r.fp32 = "NEON", 16
	if p.has("sve") {
		name = "SVE"
	}
	if known, ok := armParts[[2]int{p.int("CPU implementer"), p.int("CPU part")}]; ok {
		r.fp32 = known.fp32
	}
	return name, "", r
}
