// Package device reads the hardware of this machine, and observes its devices while a point is measured.
//
// Inspect returns an Inventory: the CPU, and the NVIDIA GPUs that NVML lists. Inventory.Machine selects the
// devices that a campaign measures on. A Watcher samples them during a point and reports interference:
// throttled clocks, other processes, stolen CPU time. A measurement in doubt is stored but not fitted.
//
// Start with inventory.go, machine.go and watch.go. The rules for doubt are in gpu_verdict.go and
// cpu_verdict.go. The files nvml_*.go call NVML and need cgo on Linux; on other builds the CPU is the device,
// and the inventory has the reason.
//
// # The release of go-nvml
//
// go-nvml stays at v0.13.0-1, the last release that compiles without C warnings. Later releases print 117 to
// 147 lines of them under go install, and only the user's own CGO_CFLAGS can silence these. The cost is that
// functions new in NVML 13.1 cannot be called; this package needs none of them.
//
// # Sampling rates of a GPU
//
// Ten times a second: utilisation, SM clock, clock event reasons and the energy counter, or power if there is
// none. Once a second: memory, memory clock, power, temperature, uncorrected ECC errors, compute processes and
// Xid events. NVML's own resolution is lower: utilisation covers 1/6 s to 1 s, and power is a mean over 1 s on
// Ampere and later, except GA100 (nvml.h, nvmlDeviceGetUtilizationRates and nvmlDeviceGetPowerUsage). That is
// why the energy counter is preferred. A value that the device does not support is read only once.
//
// Eight GPUs take about 400 calls a second. If sampling takes more than a hundredth of a core, the sampling
// rate is reduced. The memory of a recording is limited: when it is full, neighbouring samples are merged.
package device
