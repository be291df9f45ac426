package device

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Assumed rates of a CPU as an accelerator, since nothing reports them. They are round numbers for first
// predictions, not measurements; fits replace them.
const (
	// coreMemBps is the memory bandwidth of one core, bytes/s. A single active core reaches 8 to 15 GB/s on
	// servers of the last ten years; with all cores busy each gets 3 to 6 GB/s.
	coreMemBps = 10 * giga
	// loopbackBps is the TCP rate between two processes over the loopback device in one direction, bytes/s, as
	// gloo uses it. Single streams reach 1 to 5 GB/s; because the processes also copy and sum, about the lower
	// end remains.
	loopbackBps = 1 * giga
)

// Accelerator returns threads cores of c as one accelerator; threads < 1 counts as 1. The name does
// not change between boots. Rates are those of simd at the nominal clock: turbo clocks exceed them,
// and wide vectors may lower the clock. All devices share MemBytes, the memory of the machine.
func (c CPU) Accelerator(threads int) spec.Accelerator {
	threads = max(threads, 1)
	peak := c.ClockHz * float64(threads)
	return spec.Accelerator{
		Name: c.acceleratorName(threads), Vendor: c.Vendor, Arch: c.SIMD,
		FP32: c.rates.fp32 * peak, BF16: c.rates.bf16 * peak,
		MemBytes: c.MemBytes, MemBps: coreMemBps * float64(threads), HostBps: coreMemBps * float64(threads),
	}
}

// acceleratorName returns a name such as "CPU Intel Xeon 2.6GHz AVX-512, 1 thread".
func (c CPU) acceleratorName(threads int) string {
	words := []string{"CPU"}
	if c.Brand != "" {
		words = append(words, c.Brand)
	} else {
		words = append(words, c.Arch)
	}
	if c.ClockHz > 0 {
		words = append(words, fmt.Sprintf("%.1fGHz", c.ClockHz/1e9))
	}
	if c.SIMD != "" {
		words = append(words, c.SIMD)
	}
	plural := "s"
	if threads == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s, %d thread%s", strings.Join(words, " "), threads, plural)
}
