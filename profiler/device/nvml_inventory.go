//go:build cgo && linux

package device

import (
	"bytes"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func inspectGPUs() gpuInventory { return inspectNVML(nvmlLibrary()) }

// inspectNVML lists what NVML tells.
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
		inv.reason = "the NVIDIA driver does not count its GPUs: " + failure(ret)
	case n == 0:
		inv.reason = "the NVIDIA driver has no GPU"
	}
	var handles []*gpuHandle
	for i := range n {
		h := d.handle(i)
		inv.gpus = append(inv.gpus, h.describe())
		handles = append(handles, h)
	}
	for i, h := range handles { // when all bus addresses are known
		inv.gpus[i].NVLink = h.nvlink(inv.gpus)
		inv.gpus[i].Error = h.fault
	}
	return inv
}

// A gpuHandle asks one device.
type gpuHandle struct {
	nvml.Device
	d     *driver
	index int
	fault string // why it does not answer, "" if it does
}

func (d *driver) handle(index int) *gpuHandle {
	h := &gpuHandle{d: d, index: index}
	device, ret := d.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		h.fault = failure(ret)
	}
	h.Device = device
	return h
}

// ask returns the answer of a device, nil where there is none: the library
// lacks the function, the device does not support it, or it fails. A device that
// is gone is not asked.
func ask[T any](h *gpuHandle, symbol string, f func() (T, nvml.Return)) *T {
	if h.fault != "" || !h.d.has(symbol) {
		return nil
	}
	v, ret := f()
	if gone(ret) {
		h.fault = failure(ret)
	}
	if ret != nvml.SUCCESS {
		return nil
	}
	return &v
}

// or returns what p points to, or the zero value.
func or[T any](p *T) T {
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
	g.Name = or(ask(h, "nvmlDeviceGetName", h.GetName))
	g.UUID = or(ask(h, "nvmlDeviceGetUUID", h.GetUUID))
	if m := ask(h, "nvmlDeviceGetMemoryInfo", h.GetMemoryInfo); m != nil {
		g.MemBytes, g.MemUsedBytes = scaled(&m.Total, 1), scaled(&m.Used, 1)
	}
	if p := ask(h, "nvmlDeviceGetPciInfo", h.GetPciInfo); p != nil {
		g.PCIBusID = busID(*p)
	}
	g.PCIe = h.pcie()
	ask(h, "nvmlDeviceGetCudaComputeCapability", func() (struct{}, nvml.Return) {
		major, minor, ret := h.GetCudaComputeCapability()
		if ret == nvml.SUCCESS {
			g.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
		}
		return struct{}{}, ret
	})
	g.PowerLimitWatts = scaled(ask(h, "nvmlDeviceGetEnforcedPowerLimit", h.GetEnforcedPowerLimit), 1e-3)
	if mode := ask(h, "nvmlDeviceGetPersistenceMode", h.GetPersistenceMode); mode != nil {
		on := *mode == nvml.FEATURE_ENABLED
		g.Persistence = &on
	}
	g.ECC = h.ecc()
	g.MIG = h.mig()
	if list := ask(h, "nvmlDeviceGetComputeRunningProcesses", h.GetComputeRunningProcesses); list != nil {
		g.Processes = &Processes{Count: len(*list)}
		for _, p := range *list {
			g.Processes.PIDs = append(g.Processes.PIDs, int(p.Pid))
		}
	}
	return g
}

func (h *gpuHandle) pcie() *PCIe {
	p := PCIe{
		Gen:      or(ask(h, "nvmlDeviceGetCurrPcieLinkGeneration", h.GetCurrPcieLinkGeneration)),
		Width:    or(ask(h, "nvmlDeviceGetCurrPcieLinkWidth", h.GetCurrPcieLinkWidth)),
		MaxGen:   or(ask(h, "nvmlDeviceGetMaxPcieLinkGeneration", h.GetMaxPcieLinkGeneration)),
		MaxWidth: or(ask(h, "nvmlDeviceGetMaxPcieLinkWidth", h.GetMaxPcieLinkWidth)),
	}
	if p == (PCIe{}) {
		return nil
	}
	p.Bps = PCIeBps(p.MaxGen, p.MaxWidth)
	return &p
}

func (h *gpuHandle) ecc() *ECC {
	mode := ask(h, "nvmlDeviceGetEccMode", func() (nvml.EnableState, nvml.Return) {
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
	return ask(h, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return h.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	})
}

func (h *gpuHandle) mig() *MIG {
	mode := ask(h, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
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
	for i := range or(ask(h, "nvmlDeviceGetMaxMigDeviceCount", h.GetMaxMigDeviceCount)) {
		part := ask(h, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) {
			return h.GetMigDeviceHandleByIndex(i)
		})
		if part == nil {
			continue // the slot is empty
		}
		p := &gpuHandle{Device: *part, d: h.d, index: h.index}
		instance := MIGInstance{
			UUID: or(ask(p, "nvmlDeviceGetUUID", p.GetUUID)),
			Name: or(ask(p, "nvmlDeviceGetName", p.GetName)),
		}
		if memory := ask(p, "nvmlDeviceGetMemoryInfo", p.GetMemoryInfo); memory != nil {
			instance.MemBytes = scaled(&memory.Total, 1)
		}
		m.Instances = append(m.Instances, instance)
	}
	return m
}

// busID writes the address of a device, "" if it was not told: bus 0 has no GPU.
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
