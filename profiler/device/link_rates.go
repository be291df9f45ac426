package device

// giga is the 10^9 of datasheets.
const giga = 1e9

// PCIeBps returns the bytes/s of one direction of a PCIe link before packet overhead, 0 for unknown
// generations. A lane has 2.5 and 5 GT/s at 8b/10b in generations 1 and 2, then 8 GT/s (doubling per
// generation) at 128b/130b, then 64 GT/s with 242 of 256 bytes in a flit. Source: PCI Express Base
// Specification 6.0.
func PCIeBps(gen, lanes int) float64 {
	perLane := 0.0
	switch gen {
	case 1, 2:
		perLane = 2.5 * float64(gen) * giga * 8 / 10 / 8
	case 3, 4, 5:
		perLane = float64(int(8)<<(gen-3)) * giga * 128 / 130 / 8
	case 6:
		perLane = 64 * giga * 242 / 256 / 8
	}
	return perLane * float64(max(lanes, 0))
}

// nvlinkRate is the rate of one link of an NVLink version.
type nvlinkRate struct {
	name string  // of the version
	bps  float64 // of one direction, 0 = unknown
}

// nvlinkRates is indexed by NVML's version number (nvml.h, nvmlNvlinkVersion_t). Rates are those of whole
// devices divided by the number of links and by two directions:
//
//	1.0  P100      160 GB/s over 4 links    NVIDIA Tesla P100 whitepaper, WP-08019
//	2.0  V100      300 GB/s over 6 links    NVIDIA Tesla V100 whitepaper, WP-08608
//	2.2  TU102     100 GB/s over 2 links    NVIDIA Turing whitepaper, WP-09183
//	3.0  A100      600 GB/s over 12 links   NVIDIA A100 whitepaper
//	3.1  GA102   112.5 GB/s over 4 links    NVIDIA Ampere GA102 whitepaper
//	4.0  H100      900 GB/s over 18 links   NVIDIA H100 whitepaper
//	5.0  B200     1800 GB/s over 18 links   NVIDIA Blackwell architecture brief
var nvlinkRates = map[int]nvlinkRate{
	1: {"1.0", 20 * giga},
	2: {"2.0", 25 * giga},
	3: {"2.2", 25 * giga},
	4: {"3.0", 25 * giga},
	5: {"3.1", 14.0625 * giga},
	6: {"4.0", 25 * giga},
	7: {"5.0", 50 * giga},
	8: {"6.0", 0},
}
