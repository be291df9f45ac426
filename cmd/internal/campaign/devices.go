package campaign

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
)

// DeviceRow is one device in the table and CSV of profile devices; an
// unknown figure is 0.
type DeviceRow struct {
	Device  int     `json:"device"`
	Name    string  `json:"name"`
	MemGiB  float64 `json:"mem_gib"`
	UsedGiB float64 `json:"used_gib"`
	LinkBps float64 `json:"link_bps"` // to other devices, one direction
	HostBps float64 `json:"host_bps"` // to host memory
	Watts   float64 `json:"power_limit_w"`
	Note    string  `json:"note"`
}

// DeviceRows has the GPUs, or the CPU cores that are measured in their place.
func DeviceRows(inv device.Inventory, m profiler.Machine) (rows []DeviceRow) {
	for _, g := range inv.GPUs {
		r := DeviceRow{Device: g.Index, Name: g.Name, MemGiB: valueOf(g.MemBytes) / memory.GiB, UsedGiB: valueOf(g.MemUsedBytes) / memory.GiB,
			Watts: valueOf(g.PowerLimitWatts), Note: g.Error}
		if g.NVLink != nil {
			r.LinkBps = g.NVLink.Bps
		}
		if g.PCIe != nil {
			r.HostBps = g.PCIe.Bps
		}
		if p := g.Processes; p != nil && p.Count > 0 && r.Note == "" {
			r.Note = fmt.Sprintf("in use by %d", p.Count)
		}
		rows = append(rows, r)
	}
	if !m.CPU {
		return rows
	}
	for _, i := range m.Devices {
		rows = append(rows, DeviceRow{Device: i, Name: m.Accelerator.Name, MemGiB: m.Accelerator.MemBytes / memory.GiB,
			LinkBps: m.Link.IntraBps, HostBps: m.Link.HostBps})
	}
	return rows
}

// valueOf is a figure of the driver, 0 if it is unknown.
func valueOf(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
