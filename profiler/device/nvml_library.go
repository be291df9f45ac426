//go:build cgo && linux

package device

import (
	"errors"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlLibrary is NVML of this machine. It is loaded when first used.
var nvmlLibrary = sync.OnceValue(func() nvml.Interface { return nvml.New() })

// opening guards loading and unloading, which go-nvml does not for its lookups.
var opening sync.Mutex

// A driver is NVML, initialised.
type driver struct {
	nvml.Interface
	mu      sync.Mutex
	symbols map[string]bool // whether the library has a function
}

// openDriver initialises NVML. If that fails no other function of it may be
// called. Every driver is closed once.
func openDriver(api nvml.Interface) (*driver, error) {
	opening.Lock()
	defer opening.Unlock()
	if ret := api.Init(); ret != nvml.SUCCESS {
		return nil, errors.New(initFailure(ret))
	}
	return &driver{Interface: api, symbols: map[string]bool{}}, nil
}

func (d *driver) close() {
	opening.Lock()
	defer opening.Unlock()
	_ = d.Shutdown()
}

// has says whether the installed library has a function. Calling one that it
// lacks would end the process: functions are bound when first called.
func (d *driver) has(symbol string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	have, known := d.symbols[symbol]
	if !known {
		have = d.Extensions().LookupSymbol(symbol) == nil
		d.symbols[symbol] = have
	}
	return have
}

// initFailure says in words why NVML cannot be used. It asks the library for no
// text, which may not be there.
func initFailure(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "no NVIDIA driver: libnvidia-ml.so.1 not found"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the NVIDIA driver is installed but not loaded: see dmesg, or load it with modprobe nvidia"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the NVIDIA driver and libnvidia-ml.so.1 are of different versions: restart after the update"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission to talk to the NVIDIA driver: see the rights of /dev/nvidiactl"
	case nvml.ERROR_GPU_IS_LOST:
		return "a GPU is lost and the NVIDIA driver does not start: restart the machine"
	case nvml.ERROR_IRQ_ISSUE:
		return "the NVIDIA driver has an interrupt problem with a GPU: see dmesg"
	}
	return fmt.Sprintf("the NVIDIA driver does not start: NVML error %d", int(ret))
}

// failure says in words what a call answered.
func failure(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return "GPU is lost: it has fallen off the bus; restart the machine"
	case nvml.ERROR_RESET_REQUIRED:
		return "GPU needs a reset"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission"
	case nvml.ERROR_UNKNOWN:
		return "unknown error"
	case nvml.ERROR_TIMEOUT:
		return "timeout"
	case nvml.ERROR_IN_USE:
		return "in use"
	}
	return fmt.Sprintf("NVML error %d", int(ret))
}

// gone says whether an answer means that the device does not answer any more.
func gone(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED
}
