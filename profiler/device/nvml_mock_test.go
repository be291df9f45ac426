//go:build cgo && linux

package device

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// A mockModel is a GPU model.
type mockModel struct {
	name         string
	memBytes     uint64
	major, minor int // CUDA compute capability
}

var (
	a100SXM  = mockModel{"NVIDIA A100-SXM4-40GB", 40 << 30, 8, 0}
	a100PCIe = mockModel{"NVIDIA A100-PCIE-40GB", 40 << 30, 8, 0}
	h100     = mockModel{"NVIDIA H100 80GB HBM3", 80 << 30, 9, 0}
	h200     = mockModel{"NVIDIA H200 141GB HBM3e", 141 << 30, 9, 0}
	b200     = mockModel{"NVIDIA B200 180GB HBM3e", 180 << 30, 10, 0}
)

// dgx returns eight GPUs of one model.
func dgx(m mockModel) []mockModel { return []mockModel{m, m, m, m, m, m, m, m} }

// A mockMachine is built from go-nvml's mocks. Every function that this package calls is set; the results come
// from gpus.
type mockMachine struct {
	mock.Interface
	mock.ExtendedInterface
	devices []*mock.Device
	gpus    []*fakeGPU
	calls   atomic.Int64 // on devices
	inits   atomic.Int64 // Init less Shutdown

	mu     sync.Mutex
	events []nvml.EventData // pending
}

// fakeGPU is the state of one device.
type fakeGPU struct {
	mu          sync.Mutex
	ret         nvml.Return // of every call
	unsupported map[string]bool
	util        nvml.Utilization
	clock       uint32 // MHz
	reasons     uint64
	mW          uint32
	mJ          uint64
	celsius     uint32
	corrected   uint64
	uncorrected uint64
	used        uint64
	pids        []uint32
	mig         []*mock.Device // nil = MIG is off
	calls       map[string]int
}

// set changes the state under the lock.
func (f *fakeGPU) set(change func(*fakeGPU)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// newMockMachine returns a machine with one GPU per model. NVLinks connect to switches.
func newMockMachine(t testing.TB, models []mockModel) *mockMachine {
	t.Helper()
	r := &mockMachine{}
	r.ExtensionsFunc = func() nvml.ExtendedInterface { return r }
	r.LookupSymbolFunc = func(string) error { return nil }
	r.InitFunc = func() nvml.Return { r.inits.Add(1); return nvml.SUCCESS }
	r.ShutdownFunc = func() nvml.Return { r.inits.Add(-1); return nvml.SUCCESS }
	r.SystemGetDriverVersionFunc = func() (string, nvml.Return) { return "550.54.15", nvml.SUCCESS }
	r.SystemGetNVMLVersionFunc = func() (string, nvml.Return) { return "12.550.54.15", nvml.SUCCESS }
	r.SystemGetCudaDriverVersionFunc = func() (int, nvml.Return) { return 12040, nvml.SUCCESS }
	r.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{WaitFunc: r.nextEvent, FreeFunc: func() nvml.Return { return nvml.SUCCESS }}, nvml.SUCCESS
	}
	r.DeviceGetCountFunc = func() (int, nvml.Return) { return len(r.devices), nvml.SUCCESS }
	r.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i < 0 || i >= len(r.devices) {
			return nil, nvml.ERROR_INVALID_ARGUMENT
		}
		return r.devices[i], nvml.SUCCESS
	}
	for i, m := range models {
		d := &mock.Device{}
		f := &fakeGPU{unsupported: map[string]bool{}, calls: map[string]int{}, clock: 1980, mW: 300_000, celsius: 50}
		r.devices, r.gpus = append(r.devices, d), append(r.gpus, f)
		r.fill(d, f, m, i)
	}
	return r
}

func (r *mockMachine) nextEvent(wait uint32) (nvml.EventData, nvml.Return) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait != 0 || len(r.events) == 0 {
		return nvml.EventData{}, nvml.ERROR_TIMEOUT
	}
	e := r.events[0]
	r.events = r.events[1:]
	return e, nvml.SUCCESS
}

// answer counts a call and returns its return code.
func (r *mockMachine) answer(f *fakeGPU, what string) nvml.Return {
	r.calls.Add(1)
	f.calls[what]++
	if f.unsupported[what] {
		return nvml.ERROR_NOT_SUPPORTED
	}
	return f.ret
}

// fixed returns a function that returns v.
func fixed[T any](r *mockMachine, f *fakeGPU, what string, v func() T) func() (T, nvml.Return) {
	return func() (T, nvml.Return) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return v(), r.answer(f, what)
	}
}

func (r *mockMachine) fill(d *mock.Device, f *fakeGPU, m mockModel, index int) {
	constant := func(what string, v int) func() (int, nvml.Return) { return fixed(r, f, what, func() int { return v }) }
	uuid := fmt.Sprintf("GPU-%08x-0000", index)
	d.GetNameFunc = fixed(r, f, "name", func() string { return m.name })
	d.GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) { return m.major, m.minor, nvml.SUCCESS }
	d.GetUUIDFunc = fixed(r, f, "uuid", func() string { return uuid })
	d.GetMemoryInfoFunc = fixed(r, f, "memory", func() nvml.Memory {
		return nvml.Memory{Total: m.memBytes, Used: f.used}
	})
	d.GetPciInfoFunc = fixed(r, f, "pci", func() nvml.PciInfo { return nvml.PciInfo{Bus: uint32(index + 1)} })
	d.GetCurrPcieLinkGenerationFunc, d.GetCurrPcieLinkWidthFunc = constant("pcie", 1), constant("pcie", 16)
	d.GetMaxPcieLinkGenerationFunc, d.GetMaxPcieLinkWidthFunc = constant("pcie", 5), constant("pcie", 16)
	d.GetEnforcedPowerLimitFunc = fixed(r, f, "limit", func() uint32 { return 700_000 })
	d.GetPersistenceModeFunc = fixed(r, f, "persistence", func() nvml.EnableState { return nvml.FEATURE_ENABLED })
	ecc := fixed(r, f, "ecc", func() nvml.EnableState { return nvml.FEATURE_ENABLED })
	d.GetEccModeFunc = func() (nvml.EnableState, nvml.EnableState, nvml.Return) { v, ret := ecc(); return v, v, ret }
	corrected := fixed(r, f, "errors", func() uint64 { return f.corrected })
	uncorrected := fixed(r, f, "errors", func() uint64 { return f.uncorrected })
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		if kind == nvml.MEMORY_ERROR_TYPE_CORRECTED {
			return corrected()
		}
		return uncorrected()
	}
	d.GetComputeRunningProcessesFunc = fixed(r, f, "processes", func() []nvml.ProcessInfo {
		var out []nvml.ProcessInfo
		for _, pid := range f.pids {
			out = append(out, nvml.ProcessInfo{Pid: pid})
		}
		return out
	})
	r.fillSampled(d, f)
	r.fillLinks(d, f, m)
	r.fillMIG(d, f)
}

func (r *mockMachine) fillSampled(d *mock.Device, f *fakeGPU) {
	d.GetUtilizationRatesFunc = fixed(r, f, "util", func() nvml.Utilization { return f.util })
	sm, memory := fixed(r, f, "clock", func() uint32 { return f.clock }), fixed(r, f, "memclock", func() uint32 { return 2619 })
	d.GetClockInfoFunc = func(kind nvml.ClockType) (uint32, nvml.Return) {
		if kind == nvml.CLOCK_MEM {
			return memory()
		}
		return sm()
	}
	reasons := fixed(r, f, "reasons", func() uint64 { return f.reasons })
	d.GetCurrentClocksEventReasonsFunc, d.GetCurrentClocksThrottleReasonsFunc = reasons, reasons
	d.GetPowerUsageFunc = fixed(r, f, "power", func() uint32 { return f.mW })
	d.GetTotalEnergyConsumptionFunc = fixed(r, f, "energy", func() uint64 { return f.mJ })
	temperature := fixed(r, f, "heat", func() uint32 { return f.celsius })
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return temperature() }
	d.GetSupportedEventTypesFunc = fixed(r, f, "events", func() uint64 { return nvml.EventTypeXidCriticalError })
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
}

// fillLinks gives d the links of its generation, all to switches.
func (r *mockMachine) fillLinks(d *mock.Device, f *fakeGPU, m mockModel) {
	links, version := 18, uint32(6)
	switch m.major {
	case 8:
		links, version = 12, 4
	case 10:
		version = 7
	}
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		if link >= links {
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		return fixed(r, f, "nvlink", func() nvml.EnableState { return nvml.FEATURE_ENABLED })()
	}
	d.GetNvLinkVersionFunc = func(int) (uint32, nvml.Return) {
		return fixed(r, f, "nvlink", func() uint32 { return version })()
	}
	d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		return fixed(r, f, "nvlink", func() nvml.IntNvLinkDeviceType { return nvml.NVLINK_DEVICE_TYPE_SWITCH })()
	}
}

func (r *mockMachine) fillMIG(d *mock.Device, f *fakeGPU) {
	on := fixed(r, f, "mig", func() int { return min(len(f.mig), 1) })
	d.GetMigModeFunc = func() (int, int, nvml.Return) { v, ret := on(); return v, v, ret }
	d.GetMaxMigDeviceCountFunc = fixed(r, f, "mig", func() int { return 7 })
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if i >= len(f.mig) || f.mig[i] == nil {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return f.mig[i], nvml.SUCCESS
	}
}

// newInstance returns a MIG instance.
func newInstance(name, uuid string, bytes uint64) *mock.Device {
	return &mock.Device{
		GetNameFunc:       func() (string, nvml.Return) { return name, nvml.SUCCESS },
		GetUUIDFunc:       func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: bytes}, nvml.SUCCESS },
	}
}
