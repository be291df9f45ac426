package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
	"github.com/urfave/cli/v2"
)

func profileDevicesCommand() *cli.Command {
	return &cli.Command{
		Name:  "devices",
		Usage: "list the devices of this machine that can be measured",
		Description: `GPUs are listed as the NVIDIA driver reports them. Without one the CPU is measured,
a device per core; --devices takes no single cores. Example:

   pacer profile devices --output json`,
		Flags:  []cli.Flag{devicesListFlag()},
		Before: command.NoArgs,
		Action: runProfileDevices,
	}
}

func runProfileDevices(c *cli.Context) error {
	inv := campaign.Inspect(c.Context)
	o := campaignOptions(c)
	m, notes, err := o.Machine(inv, profiler.Campaign{})
	if fail.Code(err) == fail.Usage {
		return command.ForVerb(c, err)
	}
	out := map[string]any{"inventory": inv, "machine": nil, "notes": append([]string{}, notes...)}
	if err != nil { // the inventory lists the choices
		out["notes"] = []string{err.Error()}
	} else {
		out["machine"] = (&campaign.Setup{Machine: m}).JSON()
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

// deviceRow is one device in the table and CSV of profile devices; an
// unknown figure is 0.
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

// deviceRows has the GPUs, or the CPU cores that are measured in their place.
func deviceRows(inv device.Inventory, m profiler.Machine) (rows []deviceRow) {
	for _, g := range inv.GPUs {
		r := deviceRow{Device: g.Index, Name: g.Name, MemGiB: valueOf(g.MemBytes) / memory.GiB, UsedGiB: valueOf(g.MemUsedBytes) / memory.GiB,
			Watts: valueOf(g.PowerLimitWatts), Note: g.Error}
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
		rows = append(rows, deviceRow{Device: i, Name: m.Accelerator.Name, MemGiB: m.Accelerator.MemBytes / memory.GiB,
			LinkBps: m.Link.IntraBps, HostBps: m.Link.HostBps})
	}
	return rows
}

// valueOf is a figure of the driver, 0 if it is unknown.
func valueOf(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func printDevices(w io.Writer, rows []deviceRow) error {
	table := [][]string{{"device", "name", "GiB", "in use", "link GB/s", "host GB/s", "limit W", ""}}
	for _, r := range rows {
		table = append(table, []string{strconv.Itoa(r.Device), r.Name, console.Figure(r.MemGiB), console.Figure(r.UsedGiB), console.Figure(r.LinkBps / 1e9),
			console.Figure(r.HostBps / 1e9), console.Figure(r.Watts), r.Note})
	}
	return console.WriteTable(w, table)
}

// printInventory prints what all devices have in common.
func printInventory(w io.Writer, inv device.Inventory, m profiler.Machine, notes []string) error {
	cpu := inv.CPU
	fmt.Fprintf(w, "CPU: %s, %s, %s of %d usable, %s GiB\n", cpu.Brand, spec.Count(cpu.Cores, "core"), spec.Count(cpu.UsableThreads, "thread"),
		cpu.Threads, console.Significant(cpu.MemBytes/memory.GiB, 3))
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
