package device

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// MachineOptions select the devices of an Inventory to measure on.
type MachineOptions struct {
	// Devices are the indices of GPUs to use, nil = all in Visible.
	Devices []int
	// Visible is the value of CUDA_VISIBLE_DEVICES of this process, nil if unset. Clusters assign devices with
	// it. If Devices is nil, only these devices are used.
	Visible *string
	// Lookup finds a device type by name, nil = no catalog. It is called with the name that NVML reports, then
	// with that name without "NVIDIA ".
	Lookup func(name string) (spec.Accelerator, bool)
	// CPU selects the CPU even if there are GPUs.
	CPU bool
	// Threads is the number of cores per device of the CPU, 0 = 1.
	Threads int
}

// Machine returns the machine to measure on, and notes on it. Without GPUs, or with CPU set, the devices are
// cores of the CPU; else they are GPUs of one type.
//
// Errors wrap profiler.ErrSetup and say what to change: several types of GPU without a choice, a device that
// does not respond, a device split by MIG. Without a choice of devices, Machine leaves the last two out and
// notes it, as long as others remain. The caller sets Framework, Lacks and Configs.
func (inv Inventory) Machine(o MachineOptions) (profiler.Machine, []string, error) {
	if o.Threads < 0 {
		return profiler.Machine{}, nil, fmt.Errorf("device: %d threads for a device of the CPU, want at least 1", o.Threads)
	}
	switch {
	case o.CPU || len(inv.GPUs) == 0 && len(o.Devices) == 0:
		return inv.CPU.machine(max(o.Threads, 1)), nil, nil
	case len(inv.GPUs) == 0:
		return profiler.Machine{}, nil, fmt.Errorf("device: no GPU %d here: %s: %w", o.Devices[0], inv.Reason, profiler.ErrSetup)
	case len(o.Devices) == 0 && hidesGPUs(o.Visible):
		note := fmt.Sprintf("CUDA_VISIBLE_DEVICES=%q hides the GPUs; measuring the CPU", *o.Visible)
		return inv.CPU.machine(max(o.Threads, 1)), []string{note}, nil
	}
	gpus, notes, err := inv.choose(o)
	if err != nil {
		return profiler.Machine{}, nil, err
	}
	return inv.gpuMachine(gpus, o.Lookup), append(notes, warnings(gpus)...), nil
}

// machine returns the CPU as a machine with one device per threads cores.
func (c CPU) machine(threads int) profiler.Machine {
	m := profiler.Machine{
		Accelerator: c.Accelerator(threads), CPUs: c.UsableThreads, HostBytes: c.MemBytes, CPU: true,
		Link: spec.Link{IntraBps: loopbackBps, HostBps: coreMemBps * float64(threads)},
		Env:  map[string]string{"cores": strconv.Itoa(c.Cores), "threads": strconv.Itoa(c.Threads)},
	}
	for i := range max(1, c.Usable()/threads) {
		m.Devices = append(m.Devices, i)
	}
	m.PerNode = len(m.Devices)
	for key, v := range map[string]string{"cpu": c.Model, "simd": c.SIMD, "cpu_bf16": c.BF16} {
		if v != "" {
			m.Env[key] = v
		}
	}
	return m
}

// gpuMachine returns GPUs of one type as a machine.
func (inv Inventory) gpuMachine(gpus []GPU, lookup func(string) (spec.Accelerator, bool)) profiler.Machine {
	g := gpus[0]
	m := profiler.Machine{
		Accelerator: accelerator(g, lookup), PerNode: len(inv.GPUs), CPUs: inv.CPU.UsableThreads, HostBytes: inv.CPU.MemBytes,
		Link: link(gpus), Env: map[string]string{"gpu": g.Name},
	}
	for _, g := range gpus {
		m.Devices = append(m.Devices, g.Index)
	}
	for key, v := range map[string]string{profiler.EnvDriver: inv.Driver, "cuda_driver": inv.CUDA, "nvml": inv.NVML, "cpu": inv.CPU.Model} {
		if v != "" {
			m.Env[key] = v
		}
	}
	maps.Copy(m.Env, g.facts())
	return m
}

// facts returns the properties of g that affect its speed, for Measurement.Env.
func (g GPU) facts() map[string]string {
	env := map[string]string{}
	if g.PowerLimitWatts != nil {
		env["power_limit_w"] = number(*g.PowerLimitWatts)
	}
	if g.ECC != nil {
		env["ecc"] = strconv.FormatBool(g.ECC.Enabled)
	}
	if g.PCIe != nil && g.PCIe.MaxGen > 0 {
		env["pcie"] = fmt.Sprintf("gen %d x%d", g.PCIe.MaxGen, g.PCIe.MaxWidth)
	}
	if g.NVLink != nil && g.NVLink.ActiveLinks > 0 {
		env["nvlink"] = fmt.Sprintf("%s x%d", g.NVLink.Version, g.NVLink.ActiveLinks)
	}
	return env
}

// accelerator returns the type of g from lookup. If it is not found, it returns its name without "NVIDIA "
// (older drivers omit that) and its memory.
func accelerator(g GPU, lookup func(string) (spec.Accelerator, bool)) spec.Accelerator {
	short := strings.TrimPrefix(g.Name, "NVIDIA ")
	if lookup != nil {
		for _, name := range []string{g.Name, short} {
			if a, ok := lookup(name); ok {
				return a
			}
		}
	}
	a := spec.Accelerator{Name: short, Vendor: "NVIDIA", Arch: architecture(g.ComputeCapability)}
	if g.MemBytes != nil {
		a.MemBytes = *g.MemBytes
	}
	return a
}

// architecture returns the generation for a compute capability, as the catalog names it, "" if unknown (CUDA
// C++ Programming Guide, compute capabilities).
func architecture(capability string) string {
	major, minor, _ := strings.Cut(capability, ".")
	switch major {
	case "6":
		return "Pascal"
	case "7":
		if minor == "5" {
			return "Turing"
		}
		return "Volta"
	case "8":
		if minor == "9" {
			return "Ada"
		}
		return "Ampere"
	case "9":
		return "Hopper"
	case "10":
		if minor == "3" {
			return "Blackwell Ultra"
		}
		return "Blackwell"
	case "12":
		return "Blackwell"
	}
	return ""
}

// link returns the rates of the slowest of gpus: NVLink if each of them reaches all others by it, else PCIe.
func link(gpus []GPU) spec.Link {
	var l spec.Link
	least := func(of func(GPU) float64) float64 {
		return of(slices.MinFunc(gpus, func(a, b GPU) int { return cmp.Compare(of(a), of(b)) }))
	}
	l.HostBps = least(func(g GPU) float64 {
		if g.PCIe == nil {
			return 0
		}
		return g.PCIe.Bps
	})
	l.IntraBps = least(func(g GPU) float64 {
		if g.NVLink == nil || !g.NVLink.reaches(gpus, g.Index) {
			return 0
		}
		return g.NVLink.Bps
	})
	if l.IntraBps == 0 {
		l.IntraBps = l.HostBps
	}
	return l
}

// reaches reports whether the links of device self connect it to all other gpus.
func (n NVLink) reaches(gpus []GPU, self int) bool {
	direct := map[int]bool{self: true}
	for _, p := range n.Peers {
		if p.Switch {
			return true
		}
		if p.Device != nil {
			direct[*p.Device] = true
		}
	}
	return !slices.ContainsFunc(gpus, func(g GPU) bool { return !direct[g.Index] })
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
