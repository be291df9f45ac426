package campaign

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
)

// Without GPUs an index of a device is an error, and never means a CPU core.
func TestDevicesWithoutGPUs(t *testing.T) {
	inv := device.Inventory{Reason: "no driver", CPU: device.CPU{UsableThreads: 2, Cores: 2}}
	on := func(devices string) (profiler.Machine, error) {
		m, _, err := (&Options{Devices: devices}).Machine(inv, profiler.Campaign{})
		return m, err
	}
	if m, err := on("0"); !errors.Is(err, profiler.ErrSetup) || !strings.Contains(err.Error(), "no GPU 0 here: no driver") ||
		!strings.Contains(err.Error(), "--devices cpu") {
		t.Errorf("%+v, %v", m, err)
	}
	for _, all := range []string{"", cpuDevices} {
		if m, err := on(all); err != nil || !m.CPU || len(m.Devices) == 0 {
			t.Errorf("%q: %+v, %v", all, m, err)
		}
	}
}

// TestDevicesNamed: --devices keeps the devices it names, each of them once.
func TestDevicesNamed(t *testing.T) {
	all := profiler.Machine{Devices: []int{0, 1, 2}}
	for devices, wrong := range map[string]string{"2,0": "", "1,1": "names device 1 twice", "0,2,0": "names device 0 twice", "3": "no device 3"} {
		m, err := (&Options{Devices: devices}).withDevices(all)
		if wrong == "" && (err != nil || !slices.Equal(m.Devices, []int{2, 0})) {
			t.Errorf("%s: %v, %v", devices, m.Devices, err)
		}
		if wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: %v, want %q", devices, err, wrong)
		}
	}
}
