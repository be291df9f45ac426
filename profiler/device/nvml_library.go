//go:build cgo && linux

package device

import (
	"errors"
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlLibrary returns NVML of this machine, loaded on first use.
var nvmlLibrary = sync.OnceValue(func() nvml.Interface { return nvml.New() })

// opening serializes loading and unloading, since go-nvml does not guard its symbol lookups.
var opening sync.Mutex

// A driver is an initialised NVML.
type driver struct {
	nvml.Interface
	mu      sync.Mutex
	symbols map[string]bool // whether the library has a function
}

// openDriver initialises NVML. If it fails, no other NVML function may be called. Every driver must be closed
// once.
func openDriver(api nvml.Interface) (*driver, error) {
	opening.Lock()
	defer opening.Unlock()
	if ret := api.Init(); ret != nvml.SUCCESS {
		return nil, errors.New(initErrorText(ret))
	}
	return &driver{Interface: api, symbols: map[string]bool{}}, nil
}

func (d *driver) close() {
	opening.Lock()
	defer opening.Unlock()
	_ = d.Shutdown()
}

// has reports whether the installed library has a function. Calling a missing function ends the process, since
// functions are bound on first call.
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

// initErrorText returns why NVML cannot be used. It does not call the library, which may be
// missing.
func initErrorText(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "no NVIDIA driver: libnvidia-ml.so.1 not found"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "the NVIDIA driver is installed but not loaded: see dmesg, or load it with modprobe nvidia"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the NVIDIA driver and libnvidia-ml.so.1 are of different versions: restart after the update"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission to use the NVIDIA driver: check the permissions of /dev/nvidiactl"
	case nvml.ERROR_GPU_IS_LOST:
		return "a GPU is lost and the NVIDIA driver does not start: restart the machine"
	case nvml.ERROR_IRQ_ISSUE:
		return "the NVIDIA driver has an interrupt problem with a GPU: see dmesg"
	}
	return fmt.Sprintf("the NVIDIA driver does not start: NVML error %d", int(ret))
}

// errorText returns the text of a return code.
func errorText(ret nvml.Return) string {
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

// isLost reports whether a return code means that the device no longer responds.
func isLost(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED
}
