//go:build cgo && linux

package device

import (
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlMonitor keeps NVML initialised from the first Watch to Close. Initialising takes up to a
// second without a persistence daemon.
type nvmlMonitor struct {
	api func() nvml.Interface
	mu  sync.Mutex
	d   *driver // nil until open
}

func newGPUMonitor() monitor { return &nvmlMonitor{api: nvmlLibrary} }

func (e *nvmlMonitor) open(devices []int, pgid func() int) (probe, error) {
	d, err := e.driver()
	if err != nil {
		return nil, err
	}
	s, err := newNVMLSource(d, devices)
	if err != nil {
		return nil, err
	}
	return newGPUProbe(s, devices, newMeasuredProcesses("/", pgid)), nil
}

func (e *nvmlMonitor) driver() (*driver, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.d == nil {
		d, err := openDriver(e.api())
		if err != nil {
			return nil, err
		}
		e.d = d
	}
	return e.d, nil
}

func (e *nvmlMonitor) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.d != nil {
		e.d.close()
		e.d = nil
	}
}

// A pollItem is a value that is read repeatedly, with the NVML function it needs.
type pollItem int

const (
	pollUtil pollItem = iota
	pollSMClock
	pollMemClock
	pollMemory
	pollPower
	pollEnergy
	pollTemperature
	pollReasons
	pollECC
	pollProcesses
	pollItems
)

var pollSymbols = [pollItems]string{
	"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetClockInfo", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTemperature",
	"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetComputeRunningProcesses",
}

// maxFailed is the number of failures in a row after which an item is no longer read. An unsupported item is
// dropped at once.
const maxFailed = 3

// An nvmlDevice is a device that is being sampled.
type nvmlDevice struct {
	*gpuHandle
	failed       [pollItems]int
	eventReasons bool // the library has event reasons, the newer name of throttle reasons
}

// nvmlSource samples devices by NVML.
type nvmlSource struct {
	d       *driver
	devices []*nvmlDevice
	byUUID  map[string]int
	events  nvml.EventSet // nil = none
}

// newNVMLSource opens devices by index. The first read detects a device that does not respond.
func newNVMLSource(d *driver, devices []int) (*nvmlSource, error) {
	n, ret := d.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("the driver does not report its number of GPUs: %s", errorText(ret))
	}
	s := &nvmlSource{d: d, byUUID: map[string]int{}}
	for i, index := range devices {
		if index < 0 || index >= n {
			return nil, fmt.Errorf("there is no GPU %d, want 0..%d", index, n-1)
		}
		dev := &nvmlDevice{gpuHandle: d.handle(index), eventReasons: d.has("nvmlDeviceGetCurrentClocksEventReasons")}
		for q, symbol := range pollSymbols {
			if pollItem(q) == pollReasons && dev.eventReasons {
				continue
			}
			if !d.has(symbol) {
				dev.failed[q] = maxFailed
			}
		}
		if dev.fault == "" {
			s.byUUID[valueOf(call(dev.gpuHandle, "nvmlDeviceGetUUID", dev.GetUUID))] = i
		}
		s.devices = append(s.devices, dev)
	}
	s.watchEvents()
	return s, nil
}

// poll reads an item unless it was dropped.
func poll[T any](v *nvmlDevice, q pollItem, f func() (T, nvml.Return)) (answer T, ok bool) {
	if v.fault != "" || v.failed[q] >= maxFailed {
		return answer, false
	}
	answer, ret := f()
	switch {
	case ret == nvml.SUCCESS:
		v.failed[q] = 0
		return answer, true
	case isLost(ret):
		v.fault = errorText(ret)
	case ret == nvml.ERROR_NOT_SUPPORTED, ret == nvml.ERROR_FUNCTION_NOT_FOUND, ret == nvml.ERROR_NO_PERMISSION:
		v.failed[q] = maxFailed
	default:
		v.failed[q]++
	}
	return answer, false
}

// read makes four calls, and six more if slow is set: see the package comment.
func (s *nvmlSource) read(i int, now time.Time, slow bool) gpuReading {
	v := s.devices[i]
	r := gpuReading{reading: newReading(now)}
	if u, ok := poll(v, pollUtil, v.GetUtilizationRates); ok {
		r.values[smUtil], r.values[memUtil] = float64(u.Gpu)/100, float64(u.Memory)/100
	}
	if mhz, ok := poll(v, pollSMClock, func() (uint32, nvml.Return) { return v.GetClockInfo(nvml.CLOCK_SM) }); ok {
		r.values[smClock] = float64(mhz) * 1e6
	}
	r.reasons, r.hasReasons = poll(v, pollReasons, v.clockReasons)
	if mJ, ok := poll(v, pollEnergy, v.GetTotalEnergyConsumption); ok {
		r.energyJ = float64(mJ) * 1e-3
	}
	if slow || v.failed[pollEnergy] >= maxFailed {
		if mW, ok := poll(v, pollPower, v.GetPowerUsage); ok {
			r.values[power] = float64(mW) * 1e-3
		}
	}
	if slow {
		v.readSlow(&r)
	}
	r.lost = v.fault
	return r
}

func (v *nvmlDevice) clockReasons() (uint64, nvml.Return) {
	if v.eventReasons {
		return v.GetCurrentClocksEventReasons()
	}
	return v.GetCurrentClocksThrottleReasons()
}

// readSlow reads the values that change slowly.
func (v *nvmlDevice) readSlow(r *gpuReading) {
	if m, ok := poll(v, pollMemory, v.GetMemoryInfo); ok {
		r.values[memUsed] = float64(m.Used)
	}
	if mhz, ok := poll(v, pollMemClock, func() (uint32, nvml.Return) { return v.GetClockInfo(nvml.CLOCK_MEM) }); ok {
		r.values[memClock] = float64(mhz) * 1e6
	}
	if c, ok := poll(v, pollTemperature, func() (uint32, nvml.Return) { return v.GetTemperature(nvml.TEMPERATURE_GPU) }); ok {
		r.values[temperature] = float64(c)
	}
	r.uncorrected, r.hasUncorrected = poll(v, pollECC, func() (uint64, nvml.Return) {
		return v.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	})
	list, ok := poll(v, pollProcesses, v.GetComputeRunningProcesses)
	r.hasPIDs = ok
	for _, p := range list {
		r.pids = append(r.pids, int(p.Pid))
	}
}

func (s *nvmlSource) close() {
	if s.events != nil {
		_ = s.events.Free()
		s.events = nil
	}
}
