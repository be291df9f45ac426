package campaign

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
	"github.com/pacer-ml/pacer/profiler/runner"
)

// driverTimeout bounds the wait for a driver that hangs.
const driverTimeout = 30 * time.Second

// Inspect returns the devices of this machine.
func Inspect(ctx context.Context) device.Inventory {
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	return device.Inspect(ctx)
}

// Machine returns a machine with the devices of o that camp is measured on, and notes about
// them.
func (o *Options) Machine(inv device.Inventory, camp profiler.Campaign) (profiler.Machine, []string, error) {
	with := device.MachineOptions{Lookup: lookupAccelerator, CPU: o.Devices == cpuDevices, Threads: camp.Point.Threads}
	if v, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		with.Visible = &v
	}
	if !with.CPU { // also without GPUs: an index never means the CPU
		var err error
		if with.Devices, err = o.deviceIndices(); err != nil {
			return profiler.Machine{}, nil, err
		}
	}
	m, notes, err := inv.Machine(with)
	if err != nil && len(inv.GPUs) == 0 {
		err = fmt.Errorf("%w (--devices cpu measures the CPU)", err)
	}
	return m, notes, err
}

// lookupAccelerator finds a GPU in the catalog by the name its driver gives.
func lookupAccelerator(name string) (spec.Accelerator, bool) {
	a, err := catalog.Accelerator(name)
	return a, err == nil
}

// thisMachine returns this machine and the watcher of its devices.
func (o *Options) thisMachine(ctx context.Context, camp profiler.Campaign) (profiler.Machine, *device.Watcher, []string, error) {
	inv := Inspect(ctx)
	m, notes, err := o.Machine(inv, camp)
	if err != nil {
		return m, nil, nil, SetupError(err)
	}
	if inv.Reason != "" && o.Devices != cpuDevices {
		notes = append([]string{inv.Reason}, notes...)
	}
	return m, device.NewWatcher(device.WatchOptions{CPU: m.CPU, Threads: camp.Point.Threads}), notes, nil
}

// deviceWatch lets a runner watch with a device.Watcher.
type deviceWatch struct{ *device.Watcher }

func (d deviceWatch) Watch(devices []int, pgid func() int) func(began, ended time.Time) runner.Watched {
	stop := d.Watcher.Watch(devices, pgid)
	return func(began, ended time.Time) runner.Watched { return runner.Watched(stop(began, ended)) }
}

// cpuDevices is the value of --devices that selects the CPU.
const cpuDevices = "cpu"

// deviceIndices reads the list of indices in Devices, nil if it is empty.
func (o *Options) deviceIndices() (list []int, err error) {
	text := o.Devices
	if text == "" {
		return nil, nil
	}
	for _, word := range strings.Split(text, ",") {
		var i int
		if _, err := fmt.Sscanf(word+"\n", "%d\n", &i); err != nil || i < 0 {
			return nil, badField("devices", text, ": %q is not a device index, want a list such as 0,1, or cpu", word)
		}
		list = append(list, i)
	}
	return list, nil
}
