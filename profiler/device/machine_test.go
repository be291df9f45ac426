package device

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// rackOf returns an inventory of n GPUs with the same name, each linked to all others.
func rackOf(name string, n int) Inventory {
	inv := Inventory{CPU: CPU{Model: "A CPU", UsableThreads: 96, Cores: 48, Threads: 96, MemBytes: 1 << 40}, Driver: "550.1", CUDA: "12.4"}
	for i := range n {
		memory := float64(80 << 30)
		g := GPU{Index: i, Name: name, UUID: "GPU-" + string(rune('a'+i)), MemBytes: &memory, ComputeCapability: "9.0",
			PCIe: &PCIe{MaxGen: 5, MaxWidth: 16, Bps: PCIeBps(5, 16)}, NVLink: &NVLink{Version: "4.0", ActiveLinks: n - 1, Bps: 25e9 * float64(n-1)}}
		for j := range n {
			if j != i {
				g.NVLink.Peers = append(g.NVLink.Peers, NVLinkPeer{Device: &j, Links: 1})
			}
		}
		inv.GPUs = append(inv.GPUs, g)
	}
	return inv
}

func TestMachineOfGPUs(t *testing.T) {
	known := spec.Accelerator{Name: "H100-80GB-SXM", FP32: 67e12}
	var names []string
	lookup := func(name string) (spec.Accelerator, bool) {
		names = append(names, name)
		return known, name == "H100 80GB HBM3"
	}
	m, notes, err := rackOf("NVIDIA H100 80GB HBM3", 4).Machine(MachineOptions{Lookup: lookup})
	if err != nil || len(notes) != 0 {
		t.Fatal(notes, err)
	}
	want := profiler.Machine{Accelerator: known, Devices: []int{0, 1, 2, 3}, PerNode: 4, CPUs: 96, HostBytes: 1 << 40,
		Link: spec.Link{IntraBps: 75e9, HostBps: PCIeBps(5, 16)},
		Env: map[string]string{"gpu": "NVIDIA H100 80GB HBM3", "driver": "550.1", "cuda_driver": "12.4", "cpu": "A CPU",
			"pcie": "gen 5 x16", "nvlink": "4.0 x3"}}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	if !cmp.Equal(names, []string{"NVIDIA H100 80GB HBM3", "H100 80GB HBM3"}) {
		t.Errorf("looked up %q", names)
	}
	m, _, err = rackOf("NVIDIA Z9", 1).Machine(MachineOptions{Lookup: lookup})
	if want := (spec.Accelerator{Name: "Z9", Vendor: "NVIDIA", Arch: "Hopper", MemBytes: 80 << 30}); err != nil || m.Accelerator != want {
		t.Errorf("an unknown type: %+v, %v", m.Accelerator, err)
	}
}

// TestLinkOfPartlyJoinedDevices: devices that NVLink does not connect use PCIe.
func TestLinkOfPartlyJoinedDevices(t *testing.T) {
	inv := rackOf("X", 4)
	for i := range inv.GPUs {
		other := i ^ 1
		inv.GPUs[i].NVLink.Peers = []NVLinkPeer{{Device: &other, Links: 4}}
	}
	for _, tc := range []struct {
		devices []int
		want    float64
	}{{[]int{0, 1}, 75e9}, {[]int{0, 2}, PCIeBps(5, 16)}, {nil, PCIeBps(5, 16)}} {
		m, _, err := inv.Machine(MachineOptions{Devices: tc.devices})
		if err != nil || m.Link.IntraBps != tc.want {
			t.Errorf("%v: %g B/s, %v, want %g", tc.devices, m.Link.IntraBps, err, tc.want)
		}
	}
}

func TestChoice(t *testing.T) {
	str := func(s string) *string { return &s }
	for _, tc := range []struct {
		o    MachineOptions
		want []int // nil = the CPU
		err  string
	}{
		{MachineOptions{}, []int{0, 1, 2}, ""},
		{MachineOptions{Devices: []int{2, 0}}, []int{2, 0}, ""},
		{MachineOptions{Devices: []int{3}}, nil, "no GPU 3 here, only 0, 1, 2"},
		{MachineOptions{Devices: []int{1, 1}}, nil, "GPU 1 is listed twice"},
		{MachineOptions{Visible: str("1,2")}, []int{1, 2}, ""},
		{MachineOptions{Visible: str(" 2 ,-1,0")}, []int{2}, ""},
		{MachineOptions{Visible: str("GPU-b")}, []int{1}, ""},
		{MachineOptions{Visible: str("1,1")}, nil, "GPU 1 is listed twice"},
		{MachineOptions{Visible: str("7")}, nil, `CUDA_VISIBLE_DEVICES="7" hides all GPUs (0, 1, 2)`},
		{MachineOptions{Visible: str("MIG-1234")}, nil, "hides all GPUs"},
		{MachineOptions{Visible: str("1"), Devices: []int{0}}, []int{0}, ""},
		{MachineOptions{Visible: str("")}, nil, ""},
		{MachineOptions{Visible: str("NoDevFiles")}, nil, ""},
		{MachineOptions{CPU: true}, nil, ""},
		{MachineOptions{Threads: -1}, nil, "-1 threads"},
	} {
		m, _, err := rackOf("X", 3).Machine(tc.o)
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.HasPrefix(err.Error(), "device: ") {
				t.Errorf("%+v: %v, want %q", tc.o, err, tc.err)
			}
		case err != nil || m.CPU != (tc.want == nil) || !m.CPU && !cmp.Equal(m.Devices, tc.want):
			t.Errorf("%+v: devices %v, CPU %v, %v, want %v", tc.o, m.Devices, m.CPU, err, tc.want)
		}
	}
}

func TestMachineOfTheCPU(t *testing.T) {
	c := parseCPU(sample(t, "xeon-gold-6248"), 0, "amd64")
	c.UsableThreads, c.MemBytes = 8, 32<<30
	inv := Inventory{CPU: c, Reason: "no NVIDIA driver"}
	m, notes, err := inv.Machine(MachineOptions{})
	if err != nil || len(notes) != 0 || !m.CPU || !cmp.Equal(m.Devices, []int{0, 1, 2, 3}) || m.PerNode != 4 || m.CPUs != 8 || m.HostBytes != 32<<30 {
		t.Errorf("%+v, %q, %v", m, notes, err)
	}
	if err := m.Accelerator.Validate(); err != nil {
		t.Error(err)
	}
	if m.Env["cpu"] != "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz" || m.Env["simd"] != "AVX-512" {
		t.Errorf("facts %v", m.Env)
	}
	if m, _, _ := inv.Machine(MachineOptions{Threads: 3}); len(m.Devices) != 1 || !strings.HasSuffix(m.Accelerator.Name, "3 threads") {
		t.Errorf("%+v", m)
	}
	if _, _, err := inv.Machine(MachineOptions{Devices: []int{0}}); !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "no NVIDIA driver") {
		t.Errorf("asking for a GPU that is not there: %v", err)
	}
}

func TestRemarks(t *testing.T) {
	inv := rackOf("X", 3)
	watts, less, errors := 700.0, 500.0, uint64(4)
	inv.GPUs[0].PowerLimitWatts, inv.GPUs[1].PowerLimitWatts, inv.GPUs[2].PowerLimitWatts = &watts, &less, &watts
	inv.GPUs[1].Processes = &Processes{Count: 9, PIDs: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	inv.GPUs[2].ECC = &ECC{Enabled: true, Uncorrected: &errors}
	idle, used := 600.0*(1<<20), 30.0*(1<<30)
	inv.GPUs[0].MemUsedBytes, inv.GPUs[1].MemUsedBytes = &idle, &used
	_, notes, err := inv.Machine(MachineOptions{})
	want := []string{"GPU 1 is in use by processes 1, 2, 3, 4, 5, 6, 7, 8, and 1 more",
		"GPU 1 already has 30.0 GiB of memory in use: points may run out of memory",
		"GPU 1 has a power limit of 500 W, GPU 0 one of 700 W",
		"GPU 2 has had 4 uncorrected memory errors since the driver was loaded"}
	if diff := cmp.Diff(want, notes); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestPCIeBps(t *testing.T) {
	for _, tc := range []struct {
		gen, lanes int
		want       float64
	}{{1, 16, 4e9}, {2, 16, 8e9}, {3, 16, 15.754e9}, {4, 16, 31.508e9}, {5, 16, 63.015e9}, {6, 16, 121e9}, {5, 8, 31.508e9}, {0, 16, 0}, {9, 1, 0}, {3, -1, 0}} {
		if got := PCIeBps(tc.gen, tc.lanes); got < tc.want*0.999 || got > tc.want*1.001 {
			t.Errorf("gen %d x%d: %g B/s, want %g", tc.gen, tc.lanes, got, tc.want)
		}
	}
}
