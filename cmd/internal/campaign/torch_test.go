package campaign

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// GPUs that torch sees but the driver's library does not are an error, not a reason to measure
// the CPU.
func TestUnseenGPUs(t *testing.T) {
	torch := worker.Features{Torch: "2.8.0", Executable: "/opt/python3"}
	if err := unseenGPUs(torch, 0, nil); err != nil {
		t.Error(err)
	}
	err := unseenGPUs(torch, 2, []string{"no NVML"})
	if !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "sees 2 CUDA devices, but they cannot be watched (no NVML)") {
		t.Error(err)
	}
}

// A torch that cannot use every device is an error.
func TestSeesDevices(t *testing.T) {
	m := profiler.Machine{Devices: []int{1, 3}}
	for devices, want := range map[int]string{0: "was built without CUDA", 1: "sees 1 of the GPUs [1 3]; choose", 2: ""} {
		err := seesDevices(worker.Features{Torch: "2.8.0", Devices: devices}, m)
		if want == "" && err != nil || want != "" && (!errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d devices: %v, want %q", devices, err, want)
		}
	}
	m.CPU = true
	if err := seesDevices(worker.Features{}, m); err != nil {
		t.Error(err)
	}
}
