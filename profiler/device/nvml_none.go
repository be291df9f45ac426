//go:build !cgo || !linux

package device

import (
	"errors"
	"runtime"
)

// noNVML returns why this program cannot see GPUs.
func noNVML() string {
	if runtime.GOOS != "linux" {
		return "NVIDIA GPUs are supported on Linux only, this is " + runtime.GOOS
	}
	return "this program was built without cgo, which NVML needs: build it with CGO_ENABLED=1 to see GPUs"
}

func inspectGPUs() gpuInventory { return gpuInventory{reason: noNVML()} }

// noMonitor is the monitor of a build without NVML.
type noMonitor struct{}

func newGPUMonitor() monitor { return noMonitor{} }

func (noMonitor) open([]int, func() int) (probe, error) { return nil, errors.New(noNVML()) }
func (noMonitor) close()                                {}
