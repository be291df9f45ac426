//go:build cgo && linux

package device

import (
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlEye keeps NVML initialised from the first Watch to Close, which takes up to
// a second where no daemon does.
type nvmlEye struct {
	api func() nvml.Interface
	mu  sync.Mutex
	d   *driver // nil until open
}

func newGPUEye() eye { return &nvmlEye{api: nvmlLibrary} }

func (e *nvmlEye) open(devices []int, pgid func() int) (probe, error) {
	d, err := e.driver()
	if err != nil {
		return nil, err
	}
	s, err := newNVMLSource(d, devices)
	if err != nil {
		return nil, err
	}
	return newGPUProbe(s, devices, newKin("/", pgid)), nil
}

func (e *nvmlEye) driver() (*driver, error) {
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

func (e *nvmlEye) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.d != nil {
		e.d.close()
		e.d = nil
	}
}

// A question is something a device is asked again and again, with the function
// it needs.
type question int

const (
	askUtil question = iota
	askSMClock
	askMemClock
	askMemory
	askPower
	askEnergy
	askHeat
	askReasons
	askECC
	askProcesses
	questions
)

var questionSymbols = [questions]string{
	"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetClockInfo", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTemperature",
	"nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetComputeRunningProcesses",
}

// strikes is how many times in a row a question may go unanswered before it is
// not asked again. One that is not supported is asked once.
const strikes = 3

// An nvmlDevice is a device that is sampled.
type nvmlDevice struct {
	*gpuHandle
	struck  [questions]int
	renamed bool // the library calls throttle reasons event reasons
}

// nvmlSource samples devices by NVML.
type nvmlSource struct {
	d       *driver
	devices []*nvmlDevice
	byUUID  map[string]int
	events  nvml.EventSet // nil = none
}

// newNVMLSource opens devices by index. One that does not answer is found out
// by reading it.
func newNVMLSource(d *driver, devices []int) (*nvmlSource, error) {
	n, ret := d.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("the driver does not count its GPUs: %s", failure(ret))
	}
	s := &nvmlSource{d: d, byUUID: map[string]int{}}
	for i, index := range devices {
		if index < 0 || index >= n {
			return nil, fmt.Errorf("there is no GPU %d, but %d of them from 0", index, n)
		}
		dev := &nvmlDevice{gpuHandle: d.handle(index), renamed: d.has("nvmlDeviceGetCurrentClocksEventReasons")}
		for q, symbol := range questionSymbols {
			if question(q) == askReasons && dev.renamed {
				continue
			}
			if !d.has(symbol) {
				dev.struck[q] = strikes
			}
		}
		if dev.fault == "" {
			s.byUUID[or(ask(dev.gpuHandle, "nvmlDeviceGetUUID", dev.GetUUID))] = i
		}
		s.devices = append(s.devices, dev)
	}
	s.watchEvents()
	return s, nil
}

// put asks a question unless it was dropped.
func put[T any](v *nvmlDevice, q question, f func() (T, nvml.Return)) (answer T, ok bool) {
	if v.fault != "" || v.struck[q] >= strikes {
		return answer, false
	}
	answer, ret := f()
	switch {
	case ret == nvml.SUCCESS:
		v.struck[q] = 0
		return answer, true
	case gone(ret):
		v.fault = failure(ret)
	case ret == nvml.ERROR_NOT_SUPPORTED, ret == nvml.ERROR_FUNCTION_NOT_FOUND, ret == nvml.ERROR_NO_PERMISSION:
		v.struck[q] = strikes
	default:
		v.struck[q]++
	}
	return answer, false
}

// read makes four calls, and six more if slow: see the package comment.
func (s *nvmlSource) read(i int, now time.Time, slow bool) gpuReading {
	v := s.devices[i]
	r := gpuReading{reading: newReading(now)}
	if u, ok := put(v, askUtil, v.GetUtilizationRates); ok {
		r.values[smUtil], r.values[memUtil] = float64(u.Gpu)/100, float64(u.Memory)/100
	}
	if mhz, ok := put(v, askSMClock, func() (uint32, nvml.Return) { return v.GetClockInfo(nvml.CLOCK_SM) }); ok {
		r.values[smClock] = float64(mhz) * 1e6
	}
	r.reasons, r.reasoned = put(v, askReasons, v.clockReasons)
	if mJ, ok := put(v, askEnergy, v.GetTotalEnergyConsumption); ok {
		r.energyJ = float64(mJ) * 1e-3
	}
	if slow || v.struck[askEnergy] >= strikes {
		if mW, ok := put(v, askPower, v.GetPowerUsage); ok {
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
	if v.renamed {
		return v.GetCurrentClocksEventReasons()
	}
	return v.GetCurrentClocksThrottleReasons()
}

// readSlow asks what changes slowly.
func (v *nvmlDevice) readSlow(r *gpuReading) {
	if m, ok := put(v, askMemory, v.GetMemoryInfo); ok {
		r.values[memUsed] = float64(m.Used)
	}
	if mhz, ok := put(v, askMemClock, func() (uint32, nvml.Return) { return v.GetClockInfo(nvml.CLOCK_MEM) }); ok {
		r.values[memClock] = float64(mhz) * 1e6
	}
	if c, ok := put(v, askHeat, func() (uint32, nvml.Return) { return v.GetTemperature(nvml.TEMPERATURE_GPU) }); ok {
		r.values[heat] = float64(c)
	}
	r.uncorrected, r.counted = put(v, askECC, func() (uint64, nvml.Return) {
		return v.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	})
	list, ok := put(v, askProcesses, v.GetComputeRunningProcesses)
	r.listed = ok
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
