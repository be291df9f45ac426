// Package device reads the hardware of this machine, and observes its devices
// while a point is measured.
//
// Inspect returns an Inventory: the CPU, and the NVIDIA GPUs that NVML lists.
// Inventory.Machine selects the devices that a campaign measures on. A Watcher
// samples them during a point and reports interference: throttled clocks, other
// processes, stolen CPU time. A doubted measurement is stored but not fitted.
//
// Start with inventory.go, machine.go and watch.go. The rules for doubt are in
// gpu_verdict.go and cpu_verdict.go. The files nvml_*.go call NVML and need cgo
// on Linux; without either, the CPU is the device and the inventory says why.
//
// # The release of go-nvml
//
// go-nvml stays at v0.13.0-1, the last release that compiles without C warnings.
// Later ones print 117 to 147 lines of them under go install, and only the
// user's own CGO_CFLAGS can silence these. The cost: functions new in NVML 13.1
// cannot be called. This package needs none of them.
//
// # How often a GPU is read
//
// Ten times a second: utilisation, SM clock, clock event reasons and the energy
// counter, or power without one. Once a second: memory, memory clock, power,
// temperature, uncorrected ECC errors, compute processes and Xid events. NVML's
// own resolution is lower: utilisation covers 1/6 s to 1 s, and power is a mean
// over 1 s on Ampere and later, GA100 excepted (nvml.h,
// nvmlDeviceGetUtilizationRates and nvmlDeviceGetPowerUsage). That is why the
// energy counter is preferred. A figure that the device does not support is read
// once.
//
// Eight GPUs take about 400 calls a second. If sampling takes more than a
// hundredth of a core, samples are taken less often. The memory of a recording
// is bounded: when it is full, neighbouring samples are merged.
package device
