package device_test

import (
	"fmt"

	"github.com/pacer-ml/pacer/profiler/device"
)

// ExampleInventory_Machine: a machine with two GPUs connected by an NVLink switch. GPU 1 is split by MIG, so
// only GPU 0 is used.
func ExampleInventory_Machine() {
	link := &device.NVLink{Version: "4.0", ActiveLinks: 18, Bps: 450e9, Peers: []device.NVLinkPeer{{Switch: true, Links: 18}}}
	inv := device.Inventory{
		CPU: device.CPU{UsableThreads: 64, MemBytes: 512e9},
		GPUs: []device.GPU{
			{Index: 0, Name: "NVIDIA H100 80GB HBM3", ComputeCapability: "9.0", NVLink: link},
			{Index: 1, Name: "NVIDIA H100 80GB HBM3", ComputeCapability: "9.0", MIG: &device.MIG{Enabled: true}},
		},
	}
	m, notes, err := inv.Machine(device.MachineOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Accelerator.Name, m.Accelerator.Arch, "devices", m.Devices)
	fmt.Println("note:", notes[0])
	// Output:
	// H100 80GB HBM3 Hopper devices [0]
	// note: GPU 1 is split by MIG (no instances), and instances cannot be chosen: use another device, or nvidia-smi -i 1 -mig 0; left out
}

// One direction of a PCIe 5.0 x16 link.
func ExamplePCIeBps() {
	fmt.Printf("%.1f GB/s\n", device.PCIeBps(5, 16)/1e9)
	// Output: 63.0 GB/s
}
