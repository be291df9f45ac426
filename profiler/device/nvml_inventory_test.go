//go:build cgo && linux

package device

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/pacer-ml/pacer/profiler"
)

func ptr[T any](v T) *T { return &v }

// inventory returns the inventory of a mock machine.
func (r *mockMachine) inventory(t *testing.T) Inventory {
	t.Helper()
	g := inspectNVML(r)
	if n := r.inits.Load(); n != 0 {
		t.Errorf("NVML was initialised %d times more than shut down", n)
	}
	return Inventory{CPU: CPU{UsableThreads: 64, MemBytes: 1 << 40}, Driver: g.driver, CUDA: g.cuda, NVML: g.nvml, GPUs: g.gpus, Reason: g.reason}
}

func TestInventoryOfDGX(t *testing.T) {
	for name, tc := range map[string]struct {
		model              mockModel
		capability, nvlink string
		links              int
		linkBps            float64
	}{
		"a100": {a100SXM, "8.0", "3.0", 12, 300e9},
		"h100": {h100, "9.0", "4.0", 18, 450e9},
		"h200": {h200, "9.0", "4.0", 18, 450e9},
		"b200": {b200, "10.0", "5.0", 18, 900e9},
	} {
		t.Run(name, func(t *testing.T) {
			r := newMockMachine(t, dgx(tc.model))
			r.gpus[3].set(func(f *fakeGPU) { f.pids, f.used, f.corrected = []uint32{4711, 4712}, 5<<30, 3 })
			inv := r.inventory(t)
			if len(inv.GPUs) != 8 || inv.Reason != "" || inv.Driver == "" || inv.NVML == "" || !strings.Contains(inv.CUDA, ".") {
				t.Fatalf("got %+v", inv)
			}
			want := GPU{
				Index: 3, UUID: "GPU-00000003-0000", Name: tc.model.name, MemBytes: ptr(float64(tc.model.memBytes)), MemUsedBytes: ptr(5.0 * (1 << 30)),
				PCIBusID: "00000000:04:00.0", PCIe: &PCIe{Gen: 1, Width: 16, MaxGen: 5, MaxWidth: 16, Bps: PCIeBps(5, 16)},
				ComputeCapability: tc.capability, PowerLimitWatts: ptr(700.0), Persistence: ptr(true),
				ECC: &ECC{Enabled: true, Corrected: ptr(uint64(3)), Uncorrected: ptr(uint64(0))}, MIG: &MIG{},
				Processes: &Processes{Count: 2, PIDs: []int{4711, 4712}},
			}
			want.NVLink = &NVLink{Version: tc.nvlink, ActiveLinks: tc.links, Bps: tc.linkBps, Peers: []NVLinkPeer{{Switch: true, Links: tc.links}}}
			if diff := cmp.Diff(want, inv.GPUs[3]); diff != "" {
				t.Errorf("GPU 3 (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnsupportedFieldsAreAbsent(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	r.gpus[0].set(func(f *fakeGPU) {
		for _, what := range []string{"memory", "pci", "pcie", "limit", "persistence", "ecc", "mig", "processes", "nvlink", "uuid"} {
			f.unsupported[what] = true
		}
	})
	g := r.inventory(t).GPUs[0]
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"index":0,"name":"NVIDIA H100 80GB HBM3","compute_capability":"9.0"}`; string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestOldLibrary: a function that the installed library lacks must not be called, since that ends the process.
func TestOldLibrary(t *testing.T) {
	r := newMockMachine(t, dgx(a100SXM))
	r.LookupSymbolFunc = func(symbol string) error {
		if strings.Contains(symbol, "Mig") || strings.Contains(symbol, "RemoteDeviceType") || strings.Contains(symbol, "EventReasons") ||
			strings.Contains(symbol, "Energy") || strings.Contains(symbol, "EventSet") {
			return errors.New("no such function")
		}
		return nil
	}
	r.EventSetCreateFunc = nil
	for _, d := range r.devices {
		d.GetMigModeFunc, d.GetNvLinkRemoteDeviceTypeFunc = nil, nil // calling them panics
		d.GetCurrentClocksEventReasonsFunc, d.GetTotalEnergyConsumptionFunc = nil, nil
		d.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Bus: 5}, nvml.SUCCESS }
	}
	g := r.inventory(t).GPUs[0]
	if g.MIG != nil || g.NVLink == nil || len(g.NVLink.Peers) != 1 || g.NVLink.Peers[0].Device == nil || *g.NVLink.Peers[0].Device != 4 {
		t.Errorf("got %+v, links %+v", g, g.NVLink)
	}
	r.gpus[0].set(func(f *fakeGPU) { f.reasons = 8 })
	reading := r.source(t, 0).read(0, someTime, true)
	if !reading.hasReasons || reading.reasons != 8 || reading.values[power] != 300 {
		t.Errorf("got %+v, want the reasons by their old name, and power", reading)
	}
}

func TestLostGPUIsListedWithItsError(t *testing.T) {
	r := newMockMachine(t, dgx(h100))
	r.gpus[2].set(func(f *fakeGPU) { f.ret = nvml.ERROR_GPU_IS_LOST })
	handle := r.DeviceGetHandleByIndexFunc
	r.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 5 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return handle(i)
	}
	inv := r.inventory(t)
	for i, g := range inv.GPUs {
		if lost := i == 2 || i == 5; lost != strings.Contains(g.Error, "lost") || g.Index != i {
			t.Errorf("GPU %d: %+v", i, g)
		}
	}
	m, notes, err := inv.Machine(MachineOptions{})
	if err != nil || len(m.Devices) != 6 || len(notes) != 2 || !strings.Contains(notes[0], "GPU 2") {
		t.Errorf("devices %v, notes %q, %v", m.Devices, notes, err)
	}
	if _, _, err := inv.Machine(MachineOptions{Devices: []int{1, 5}}); !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "GPU 5") {
		t.Errorf("choosing a lost GPU: %v", err)
	}
}

func TestMIGIsNamed(t *testing.T) {
	r := newMockMachine(t, dgx(a100SXM))
	for _, f := range r.gpus[:1] {
		f.set(func(f *fakeGPU) {
			f.mig = []*mock.Device{newInstance("A100-SXM4-40GB MIG 3g.20gb", "MIG-aaaa", 20<<30), nil,
				newInstance("A100-SXM4-40GB MIG 1g.5gb", "MIG-bbbb", 5<<30)}
		})
	}
	inv := r.inventory(t)
	want := &MIG{Enabled: true, Instances: []MIGInstance{
		{"MIG-aaaa", "A100-SXM4-40GB MIG 3g.20gb", ptr(20.0 * (1 << 30))}, {"MIG-bbbb", "A100-SXM4-40GB MIG 1g.5gb", ptr(5.0 * (1 << 30))}}}
	if diff := cmp.Diff(want, inv.GPUs[0].MIG); diff != "" {
		t.Error(diff)
	}
	m, notes, err := inv.Machine(MachineOptions{})
	if err != nil || len(m.Devices) != 7 || len(notes) != 1 || !strings.Contains(notes[0], "MIG-aaaa") {
		t.Errorf("devices %v, notes %q, %v", m.Devices, notes, err)
	}
	if _, _, err := inv.Machine(MachineOptions{Devices: []int{0}}); !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "1g.5gb") {
		t.Errorf("choosing a MIG GPU: %v", err)
	}
}

// TestFailedInit: after a failed Init no other function may be called; the mock panics then.
func TestFailedInit(t *testing.T) {
	for ret, word := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND: "libnvidia-ml.so.1 not found", nvml.ERROR_DRIVER_NOT_LOADED: "not loaded",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "different versions", nvml.ERROR_UNKNOWN: "NVML error 999",
	} {
		g := inspectNVML(&mock.Interface{InitFunc: func() nvml.Return { return ret }})
		if !strings.Contains(g.reason, word) || len(g.gpus) != 0 {
			t.Errorf("%v: %+v, want a reason with %q", int(ret), g, word)
		}
	}
	e := &nvmlMonitor{api: func() nvml.Interface {
		return &mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }}
	}}
	w := &Watcher{period: defaultPeriod, monitor: e}
	defer w.Close()
	got := w.Watch([]int{0}, nil)(someTime, someTime.Add(1))
	if got.Doubt != "" || !strings.Contains(got.Env[profiler.EnvWarning], "not found") {
		t.Errorf("got %+v", got)
	}
}

func TestMixedTypes(t *testing.T) {
	inv := newMockMachine(t, []mockModel{a100PCIe, h100, a100PCIe}).inventory(t)
	_, _, err := inv.Machine(MachineOptions{})
	if !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "NVIDIA A100-PCIE-40GB (0, 2), NVIDIA H100 80GB HBM3 (1)") {
		t.Errorf("got %v", err)
	}
	m, _, err := inv.Machine(MachineOptions{Devices: []int{2, 0}})
	if err != nil || m.Accelerator.Name != "A100-PCIE-40GB" || !cmp.Equal(m.Devices, []int{2, 0}) {
		t.Errorf("got %+v, %v", m, err)
	}
}
