// Package device says what is in this machine and watches its devices while a
// point is measured.
//
// Inspect returns an Inventory: the CPU, and the NVIDIA GPUs as NVML knows
// them. Inventory.Machine makes of it what a campaign measures on. A Watcher
// samples during a point and tells what the step times owe to something other
// than the configuration.
//
// Start with inventory.go, machine.go and watch.go. The rules by which a
// measurement is doubted are in gpu_verdict.go and cpu_verdict.go. Whatever
// calls NVML is in nvml_*.go and needs cgo on Linux; without either the
// inventory says so and the CPU is the device.
//
// # What is asked of a GPU, and how often
//
// Every tenth of a second: utilisation, SM clock, clock event reasons and the
// energy counter (power where there is no counter). Once a second: memory,
// memory clock, power, temperature, uncorrected ECC errors, compute processes
// and Xid events. NVML's own figures are coarser than that: utilisation covers
// 1/6 s to 1 s, and power on Ampere and later (GA100 excepted) is a mean over
// 1 s (nvml.h, nvmlDeviceGetUtilizationRates and nvmlDeviceGetPowerUsage),
// which is why the energy counter is preferred. A figure the device does not
// support is not asked for again.
//
// For eight GPUs that is about 400 calls a second. Where sampling takes more than
// a hundredth of a core, samples are taken less often.
//
// What is kept of a run has a fixed size: when it is full, neighbouring samples
// are merged.
package device
