package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
	"github.com/pacer-ml/pacer/profiler/runner"
)

func profileDevicesCommand() *cli.Command {
	return &cli.Command{
		Name:  "devices",
		Usage: "what this machine has to measure on",
		Description: `GPUs are listed as the NVIDIA driver knows them. Without one the CPU is measured,
a device per core; --devices takes no single cores. Example:

   pacer profile devices --output json`,
		Flags:  []cli.Flag{devicesListFlag()},
		Before: command.NoArgs,
		Action: runProfileDevices,
	}
}

func runProfileDevices(c *cli.Context) error {
	inv := inspect(c.Context)
	m, notes, err := machineOn(c, inv, profiler.Campaign{})
	if fail.Code(err) == fail.Usage {
		return err
	}
	out := map[string]any{"inventory": inv, "machine": nil, "notes": list(notes)}
	if err != nil { // the inventory says what there is to choose from
		out["notes"] = []string{err.Error()}
	} else {
		out["machine"] = measurementSetup{machine: m}.describe()
	}
	rows := deviceRows(inv, m)
	csv, csvErr := console.CSV(rows)
	if csvErr != nil {
		return csvErr
	}
	return command.Print(c, console.Result{JSON: out, CSV: csv, Table: func(w io.Writer) error {
		if err := printDevices(w, rows); err != nil {
			return err
		}
		return printInventory(w, inv, m, out["notes"].([]string))
	}})
}

// deviceRow is one device in the table and CSV of profile devices; a figure that
// nothing tells is 0.
type deviceRow struct {
	Device  int     `json:"device"`
	Name    string  `json:"name"`
	MemGiB  float64 `json:"mem_gib"`
	UsedGiB float64 `json:"used_gib"`
	LinkBps float64 `json:"link_bps"` // to other devices, one direction
	HostBps float64 `json:"host_bps"` // to host memory
	Watts   float64 `json:"power_limit_w"`
	Note    string  `json:"note"`
}

// deviceRows has the GPUs, or the devices that are measured in their place.
func deviceRows(inv device.Inventory, m profiler.Machine) (rows []any) {
	for _, g := range inv.GPUs {
		r := deviceRow{Device: g.Index, Name: g.Name, MemGiB: told(g.MemBytes) / gib, UsedGiB: told(g.MemUsedBytes) / gib,
			Watts: told(g.PowerLimitWatts), Note: g.Error}
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
		rows = append(rows, deviceRow{Device: i, Name: m.Accelerator.Name, MemGiB: m.Accelerator.MemBytes / gib,
			LinkBps: m.Link.IntraBps, HostBps: m.Link.HostBps})
	}
	return rows
}

func told(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func printDevices(w io.Writer, rows []any) error {
	table := [][]string{{"device", "name", "GiB", "in use", "link GB/s", "host GB/s", "limit W", ""}}
	for _, x := range rows {
		r := x.(deviceRow)
		table = append(table, []string{strconv.Itoa(r.Device), r.Name, console.Figure(r.MemGiB), console.Figure(r.UsedGiB), console.Figure(r.LinkBps / 1e9),
			console.Figure(r.HostBps / 1e9), console.Figure(r.Watts), r.Note})
	}
	return console.WriteTable(w, table)
}

// printInventory says what is the same for all devices.
func printInventory(w io.Writer, inv device.Inventory, m profiler.Machine, notes []string) error {
	cpu := inv.CPU
	fmt.Fprintf(w, "CPU: %s, %s, %s of %d usable, %s GiB\n", cpu.Brand, spec.Count(cpu.Cores, "core"), spec.Count(cpu.UsableThreads, "thread"),
		cpu.Threads, console.Significant(cpu.MemBytes/gib, 3))
	if inv.Driver != "" {
		fmt.Fprintf(w, "NVIDIA driver %s, CUDA up to %s\n", inv.Driver, inv.CUDA)
	}
	if inv.Reason != "" {
		fmt.Fprintln(w, inv.Reason)
	}
	if len(m.Devices) > 0 {
		fmt.Fprintf(w, "Campaigns measure %d x %s\n", len(m.Devices), m.Accelerator.Name)
	}
	for _, n := range notes {
		fmt.Fprintln(w, "note:", n)
	}
	return nil
}

// driverTimeout bounds the wait for a driver that hangs.
const driverTimeout = 30 * time.Second

func inspect(ctx context.Context) device.Inventory {
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	return device.Inspect(ctx)
}

// machineOn returns what --devices leaves of a machine to measure camp on.
func machineOn(c *cli.Context, inv device.Inventory, camp profiler.Campaign) (profiler.Machine, []string, error) {
	o := device.MachineOptions{Lookup: lookupAccelerator, CPU: c.String("devices") == cpuDevices, Threads: camp.Point.Threads}
	if v, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		o.Visible = &v
	}
	if !o.CPU { // without GPUs too: who names one does not want the CPU
		var err error
		if o.Devices, err = deviceIndices(c); err != nil {
			return profiler.Machine{}, nil, err
		}
	}
	m, notes, err := inv.Machine(o)
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

// thisMachine returns this machine, and who watches its devices.
func thisMachine(c *cli.Context, camp profiler.Campaign) (profiler.Machine, *device.Watcher, []string, error) {
	inv := inspect(c.Context)
	m, notes, err := machineOn(c, inv, camp)
	if err != nil {
		return m, nil, nil, setupError(err)
	}
	if inv.Reason != "" && c.String("devices") != cpuDevices {
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

// cpuDevices is the value of --devices that asks for the CPU.
const cpuDevices = "cpu"

func devicesListFlag() cli.Flag {
	return &cli.StringFlag{Name: "devices", Usage: "use only these devices, by index: `0,1`, see pacer profile devices; cpu for the CPU", DefaultText: "all"}
}

// deviceIndices reads the list of --devices, nil if there is none.
func deviceIndices(c *cli.Context) (list []int, err error) {
	text := c.String("devices")
	if text == "" {
		return nil, nil
	}
	for _, word := range strings.Split(text, ",") {
		var i int
		if _, err := fmt.Sscanf(word+"\n", "%d\n", &i); err != nil || i < 0 {
			return nil, fail.Usagef("%s: --devices %q: %q is not a device index, want a list such as 0,1, or cpu", c.Command.Name, text, word)
		}
		list = append(list, i)
	}
	return list, nil
}
