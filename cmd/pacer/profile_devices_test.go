package main

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
)

// TestDevicesWithoutGPUs: who names a GPU does not get a core in its place.
func TestDevicesWithoutGPUs(t *testing.T) {
	inv := device.Inventory{Reason: "no driver", CPU: device.CPU{UsableThreads: 2, Cores: 2}}
	on := func(devices string) (profiler.Machine, error) {
		flags := flag.NewFlagSet("run", flag.ContinueOnError)
		flags.String("devices", devices, "")
		c := cli.NewContext(nil, flags, nil)
		c.Command = &cli.Command{Name: "run"}
		m, _, err := machineOn(c, inv, profiler.Campaign{})
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
