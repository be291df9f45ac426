package profile

import (
	"fmt"
	"io"
	"strconv"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
	"github.com/urfave/cli/v2"
)

func devicesCommand() *cli.Command {
	return &cli.Command{
		Name:  "devices",
		Usage: "list the devices of this machine that can be measured",
		Description: `GPUs are listed as the NVIDIA driver reports them. Without one the CPU is measured,
a device per core; --devices takes no single cores. Example:

   pacer profile devices --output json`,
		Flags:  []cli.Flag{devicesListFlag()},
		Before: command.NoArgs,
		Action: runDevices,
	}
}

func runDevices(c *cli.Context) error {
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
	rows := campaign.DeviceRows(inv, m)
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

func printDevices(w io.Writer, rows []campaign.DeviceRow) error {
	table := [][]string{{"device", "name", "GiB", "in use", "link GB/s", "host GB/s", "limit W", ""}}
	for _, r := range rows {
		table = append(table, []string{strconv.Itoa(r.Device), r.Name, number.Figure(r.MemGiB), number.Figure(r.UsedGiB), number.Figure(r.LinkBps / 1e9),
			number.Figure(r.HostBps / 1e9), number.Figure(r.Watts), r.Note})
	}
	return console.WriteTable(w, table)
}

// printInventory prints what all devices have in common.
func printInventory(w io.Writer, inv device.Inventory, m profiler.Machine, notes []string) error {
	cpu := inv.CPU
	fmt.Fprintf(w, "CPU: %s, %s, %s of %d usable, %s GiB\n", cpu.Brand, spec.Count(cpu.Cores, "core"), spec.Count(cpu.UsableThreads, "thread"),
		cpu.Threads, number.Significant(cpu.MemBytes/memory.GiB, 3))
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
