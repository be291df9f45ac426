package device

import (
	"context"
	"fmt"
)

// Inventory describes the hardware of this machine. Sizes are in bytes, rates in bytes/s of one direction,
// clocks in Hz, power in watts. Values that the hardware or driver does not report are absent.
type Inventory struct {
	CPU CPU `json:"cpu"`
	// Reason is why GPUs is empty, "" if it is not.
	Reason string `json:"reason,omitempty"`
	Driver string `json:"driver,omitempty"` // version of the NVIDIA driver
	CUDA   string `json:"cuda,omitempty"`   // newest CUDA version that the driver supports
	NVML   string `json:"nvml,omitempty"`   // version of libnvidia-ml
	GPUs   []GPU  `json:"gpus,omitempty"`   // by index
}

// GPU is one NVIDIA device.
type GPU struct {
	Index int `json:"index"` // in the order of NVML, nvidia-smi and CUDA_DEVICE_ORDER=PCI_BUS_ID
	// Error is why the device does not respond, such as a lost GPU. The other fields hold the values that were
	// read before.
	Error string `json:"error,omitempty"`
	UUID  string `json:"uuid,omitempty"`
	Name  string `json:"name,omitempty"`

	MemBytes     *float64 `json:"mem_bytes,omitempty"`
	MemUsedBytes *float64 `json:"mem_used_bytes,omitempty"` // including memory reserved by the driver

	PCIBusID          string   `json:"pci_bus_id,omitempty"`
	PCIe              *PCIe    `json:"pcie,omitempty"`
	NVLink            *NVLink  `json:"nvlink,omitempty"`
	ComputeCapability string   `json:"compute_capability,omitempty"` // such as "9.0"
	PowerLimitWatts   *float64 `json:"power_limit_w,omitempty"`      // the enforced limit
	Persistence       *bool    `json:"persistence,omitempty"`
	ECC               *ECC     `json:"ecc,omitempty"`
	MIG               *MIG     `json:"mig,omitempty"`
	// Processes run on the device now. Inside a container they may be missing, or have process ids of the host.
	Processes *Processes `json:"processes,omitempty"`
}

// PCIe is the link of a device to its host. The current generation drops when the device is idle; the maximum
// is what both device and slot support.
type PCIe struct {
	Gen      int     `json:"gen,omitempty"`
	Width    int     `json:"width,omitempty"` // lanes
	MaxGen   int     `json:"max_gen,omitempty"`
	MaxWidth int     `json:"max_width,omitempty"`
	Bps      float64 `json:"bps,omitempty"` // at the maximum, see PCIeBps
}

// NVLink describes the links between a device and its peers.
type NVLink struct {
	Version     string       `json:"version,omitempty"` // such as "4.0"
	ActiveLinks int          `json:"active_links"`
	Bps         float64      `json:"bps,omitempty"` // all active links, see nvlinkRates; absent if unknown
	Peers       []NVLinkPeer `json:"peers,omitempty"`
}

// NVLinkPeer is the other end of some links: one device of this machine, a switch, or, with neither
// set, something else.
type NVLinkPeer struct {
	Device *int   `json:"device,omitempty"` // GPU.Index
	Switch bool   `json:"switch,omitempty"`
	BusID  string `json:"pci_bus_id,omitempty"` // of anything else
	Links  int    `json:"links"`
}

// ECC is the error correction of the device's memories. Counts are since the driver was loaded.
type ECC struct {
	Enabled     bool    `json:"enabled"`
	Corrected   *uint64 `json:"corrected,omitempty"`
	Uncorrected *uint64 `json:"uncorrected,omitempty"`
}

// MIG describes the partition of a device.
type MIG struct {
	Enabled   bool          `json:"enabled"`
	Instances []MIGInstance `json:"instances,omitempty"`
}

// MIGInstance is one partition of a device.
type MIGInstance struct {
	UUID     string   `json:"uuid,omitempty"`
	Name     string   `json:"name,omitempty"`
	MemBytes *float64 `json:"mem_bytes,omitempty"`
}

// Processes lists the compute processes of a device.
type Processes struct {
	Count int   `json:"count"`
	PIDs  []int `json:"pids,omitempty"`
}

// Inspect reads the hardware of this machine. It always returns an inventory: values that cannot be read are
// absent, and Reason says why there are no GPUs. If the driver does not respond before ctx ends, Inspect
// returns without waiting for the call.
func Inspect(ctx context.Context) Inventory {
	inv := Inventory{CPU: thisCPU()}
	found := make(chan gpuInventory, 1)
	go func() { found <- inspectGPUs() }()
	select {
	case g := <-found:
		inv.Driver, inv.CUDA, inv.NVML, inv.GPUs, inv.Reason = g.driver, g.cuda, g.nvml, g.gpus, g.reason
	case <-ctx.Done():
		inv.Reason = fmt.Sprintf("the NVIDIA driver did not respond (%v)", ctx.Err())
	}
	if inv.Reason != "" {
		inv.Reason += "; measuring the CPU"
	}
	return inv
}

// gpuInventory is the part of an Inventory read by NVML.
type gpuInventory struct {
	reason, driver, cuda, nvml string
	gpus                       []GPU
}
