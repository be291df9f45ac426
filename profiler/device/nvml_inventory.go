//go:build cgo && linux

package device

import (
	"bytes"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func inspectGPUs() gpuInventory { return inspectNVML(nvmlLibrary()) }

// inspectNVML reads the inventory from NVML.
func inspectNVML(api nvml.Interface) gpuInventory {
	var inv gpuInventory
	d, err := openDriver(api)
	if err != nil {
		inv.reason = err.Error()
		return inv
	}
	defer d.close()
	if v, ret := d.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		inv.driver = v
	}
	if v, ret := d.SystemGetNVMLVersion(); ret == nvml.SUCCESS {
		inv.nvml = v
	}
	if d.has("nvmlSystemGetCudaDriverVersion") {
		if v, ret := d.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
			inv.cuda = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
		}
	}
	n, ret := d.DeviceGetCount()
	switch {
	case ret != nvml.SUCCESS:
		inv.reason = "the NVIDIA driver does not report its number of GPUs: " + errorText(ret)
	case n == 0:
		inv.reason = "the NVIDIA driver has no GPU"
	}
	var handles []*gpuHandle
	for i := range n {
		h := d.handle(i)
		inv.gpus = append(inv.gpus, h.describe())
		handles = append(handles, h)
	}
	for i, h := range handles { // after all bus addresses are known
		inv.gpus[i].NVLink = h.nvlink(inv.gpus)
		inv.gpus[i].Error = h.fault
	}
	return inv
}

// A gpuHandle reads one device.
type gpuHandle struct {
	nvml.Device
	d     *driver
	index int
	fault string // why the device does not respond, "" if it does
}

func (d *driver) handle(index int) *gpuHandle {
	h := &gpuHandle{d: d, index: index}
	device, ret := d.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		h.fault = errorText(ret)
	}
	h.Device = device
	return h
}

// call calls f on a device. It returns nil if the library lacks the function, the device does not
// support it, or the call fails. A lost device is not called again.
func call[T any](h *gpuHandle, symbol string, f func() (T, nvml.Return)) *T {
	if h.fault != "" || !h.d.has(symbol) {
		return nil
	}
	v, ret := f()
	if isLost(ret) {
		h.fault = errorText(ret)
	}
	if ret != nvml.SUCCESS {
		return nil
	}
	return &v
}

// valueOf returns the value of p, or the zero value for nil.
func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// scaled returns a number in another unit.
func scaled[T uint32 | uint64 | int](p *T, by float64) *float64 {
	if p == nil {
		return nil
	}
	v := float64(*p) * by
	return &v
}

func (h *gpuHandle) describe() GPU {
	g := GPU{Index: h.index}
	if h.Device == nil {
		return g
	}
	g.Name = valueOf(call(h, "nvmlDeviceGetName", h.GetName))
	g.UUID = valueOf(call(h, "nvmlDeviceGetUUID", h.GetUUID))
	if m := call(h, "nvmlDeviceGetMemoryInfo", h.GetMemoryInfo); m != nil {
		g.MemBytes, g.MemUsedBytes = scaled(&m.Total, 1), scaled(&m.Used, 1)
	}
	if p := call(h, "nvmlDeviceGetPciInfo", h.GetPciInfo); p != nil {
		g.PCIBusID = busID(*p)
	}
	g.PCIe = h.pcie()
	call(h, "nvmlDeviceGetCudaComputeCapability", func() (struct{}, nvml.Return) {
		major, minor, ret := h.GetCudaComputeCapability()
		if ret == nvml.SUCCESS {
			g.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
		}
		return struct{}{}, ret
	})
	g.PowerLimitWatts = scaled(call(h, "nvmlDeviceGetEnforcedPowerLimit", h.GetEnforcedPowerLimit), 1e-3)
	if mode := call(h, "nvmlDeviceGetPersistenceMode", h.GetPersistenceMode); mode != nil {
		on := *mode == nvml.FEATURE_ENABLED
		g.Persistence = &on
	}
	g.ECC = h.ecc()
	g.MIG = h.mig()
	if list := call(h, "nvmlDeviceGetComputeRunningProcesses", h.GetComputeRunningProcesses); list != nil {
		g.Processes = &Processes{Count: len(*list)}
		for _, p := range *list {
			g.Processes.PIDs = append(g.Processes.PIDs, int(p.Pid))
		}
	}
	return g
}

func (h *gpuHandle) pcie() *PCIe {
	p := PCIe{
		Gen:      valueOf(call(h, "nvmlDeviceGetCurrPcieLinkGeneration", h.GetCurrPcieLinkGeneration)),
		Width:    valueOf(call(h, "nvmlDeviceGetCurrPcieLinkWidth", h.GetCurrPcieLinkWidth)),
		MaxGen:   valueOf(call(h, "nvmlDeviceGetMaxPcieLinkGeneration", h.GetMaxPcieLinkGeneration)),
		MaxWidth: valueOf(call(h, "nvmlDeviceGetMaxPcieLinkWidth", h.GetMaxPcieLinkWidth)),
	}
	if p == (PCIe{}) {
		return nil
	}
	p.Bps = PCIeBps(p.MaxGen, p.MaxWidth)
	return &p
}

func (h *gpuHandle) ecc() *ECC {
	mode := call(h, "nvmlDeviceGetEccMode", func() (nvml.EnableState, nvml.Return) {
		current, _, ret := h.GetEccMode()
		return current, ret
	})
	if mode == nil {
		return nil
	}
	e := &ECC{Enabled: *mode == nvml.FEATURE_ENABLED}
	if e.Enabled {
		e.Corrected = h.eccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED)
		e.Uncorrected = h.eccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)
	}
	return e
}

func (h *gpuHandle) eccErrors(kind nvml.MemoryErrorType) *uint64 {
	return call(h, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return h.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	})
}

func (h *gpuHandle) mig() *MIG {
	mode := call(h, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		current, _, ret := h.GetMigMode()
		return current, ret
	})
	if mode == nil {
		return nil
	}
	m := &MIG{Enabled: *mode == nvml.DEVICE_MIG_ENABLE}
	if !m.Enabled {
		return m
	}
	for i := range valueOf(call(h, "nvmlDeviceGetMaxMigDeviceCount", h.GetMaxMigDeviceCount)) {
		part := call(h, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) {
			return h.GetMigDeviceHandleByIndex(i)
		})
		if part == nil {
			continue // the slot is empty
		}
		p := &gpuHandle{Device: *part, d: h.d, index: h.index}
		instance := MIGInstance{
			UUID: valueOf(call(p, "nvmlDeviceGetUUID", p.GetUUID)),
			Name: valueOf(call(p, "nvmlDeviceGetName", p.GetName)),
		}
		if memory := call(p, "nvmlDeviceGetMemoryInfo", p.GetMemoryInfo); memory != nil {
			instance.MemBytes = scaled(&memory.Total, 1)
		}
		m.Instances = append(m.Instances, instance)
	}
	return m
}

// busID formats the address of a device, "" if it is missing. Bus 0 has no GPU.
func busID(p nvml.PciInfo) string {
	var b []byte
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	switch {
	case len(b) > 0:
		return string(bytes.ToUpper(b))
	case p.Bus == 0:
		return ""
	}
	return fmt.Sprintf("%08X:%02X:%02X.0", p.Domain, p.Bus, p.Device)
}
