package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// GPUs that torch sees and the driver's library does not are not passed over
// for the CPU.
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
