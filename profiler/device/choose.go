package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/profiler"
)

// choose returns the GPUs to measure on, all of one type, and a note for each GPU that is left out.
func (inv Inventory) choose(o MachineOptions) ([]GPU, []string, error) {
	want, chosen := o.Devices, len(o.Devices) > 0
	if !chosen && o.Visible != nil {
		var err error
		if want, err = inv.visible(*o.Visible); err != nil {
			return nil, nil, err
		}
	}
	if !chosen && o.Visible == nil {
		for _, g := range inv.GPUs {
			want = append(want, g.Index)
		}
	}
	var gpus []GPU
	var notes, faults []string
	for i, index := range want {
		g, ok := inv.gpu(index)
		switch {
		case !ok:
			return nil, nil, fmt.Errorf("device: no GPU %d here, only %s: %w", index, indices(inv.GPUs), profiler.ErrSetup)
		case slices.Contains(want[:i], index):
			return nil, nil, fmt.Errorf("device: GPU %d is listed twice", index)
		case g.unusable() != "":
			faults = append(faults, g.unusable())
		default:
			gpus = append(gpus, g)
		}
	}
	if len(faults) > 0 && (chosen || len(gpus) == 0) {
		return nil, nil, fmt.Errorf("device: %s: %w", strings.Join(faults, "; "), profiler.ErrSetup)
	}
	for _, f := range faults {
		notes = append(notes, f+"; left out")
	}
	return gpus, notes, checkOneType(gpus)
}

func (inv Inventory) gpu(index int) (GPU, bool) {
	i := slices.IndexFunc(inv.GPUs, func(g GPU) bool { return g.Index == index })
	if i < 0 {
		return GPU{}, false
	}
	return inv.GPUs[i], true
}

// unusable returns why g cannot be measured on, "" if it can.
func (g GPU) unusable() string {
	switch {
	case g.Error != "":
		return fmt.Sprintf("GPU %d does not respond: %s", g.Index, g.Error)
	case g.MIG != nil && g.MIG.Enabled:
		var names []string
		for _, i := range g.MIG.Instances {
			names = append(names, strings.TrimSpace(i.Name+" "+i.UUID))
		}
		have := "no instances"
		if len(names) > 0 {
			have = "instances " + strings.Join(names, ", ")
		}
		return fmt.Sprintf("GPU %d is split by MIG (%s), and instances cannot be chosen: use another device, or nvidia-smi -i %d -mig 0",
			g.Index, have, g.Index)
	}
	return ""
}

// checkOneType returns an error if gpus are of several types.
func checkOneType(gpus []GPU) error {
	var names []string
	of := map[string][]GPU{}
	for _, g := range gpus {
		if of[g.Name] == nil {
			names = append(names, g.Name)
		}
		of[g.Name] = append(of[g.Name], g)
	}
	if len(names) <= 1 {
		return nil
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%s)", name, indices(of[name]))
	}
	return fmt.Errorf("device: this machine has GPUs of several types, choose GPUs of one type by index: %s: %w",
		strings.Join(names, ", "), profiler.ErrSetup)
}

// hidesGPUs reports whether this value of CUDA_VISIBLE_DEVICES hides all GPUs. Slurm sets NoDevFiles for jobs
// without GPUs.
func hidesGPUs(value *string) bool {
	return value != nil && slices.Contains([]string{"", "-1", "NoDevFiles"}, strings.TrimSpace(*value))
}

// visible returns the devices in a CUDA_VISIBLE_DEVICES value: indices in bus order, or UUIDs, possibly
// abbreviated. Like CUDA, it stops at the first entry that is neither, such as -1.
func (inv Inventory) visible(value string) ([]int, error) {
	out := []int{}
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimSpace(word)
		index, err := strconv.Atoi(word)
		if err != nil && word != "" {
			index = slices.IndexFunc(inv.GPUs, func(g GPU) bool { return strings.HasPrefix(g.UUID, word) })
			if index >= 0 {
				index = inv.GPUs[index].Index
			}
		}
		if _, ok := inv.gpu(index); !ok || word == "" {
			break
		}
		out = append(out, index)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("device: CUDA_VISIBLE_DEVICES=%q hides all GPUs (%s): choose devices by index, or measure the CPU: %w",
			value, indices(inv.GPUs), profiler.ErrSetup)
	}
	return out, nil
}

// indices formats the indices of gpus: "0, 1, 2".
func indices(gpus []GPU) string {
	var words []string
	for _, g := range gpus {
		words = append(words, strconv.Itoa(g.Index))
	}
	return strings.Join(words, ", ")
}

// usedBytes is more memory than the driver takes on an idle GPU.
const usedBytes = 2 << 30

// warnings returns conditions of gpus that may distort a measurement.
func warnings(gpus []GPU) []string {
	var notes []string
	for _, g := range gpus {
		if p := g.Processes; p != nil && p.Count > 0 {
			notes = append(notes, fmt.Sprintf("GPU %d is in use by processes %s", g.Index, pids(p.PIDs)))
		}
		if u := g.MemUsedBytes; u != nil && *u > usedBytes {
			notes = append(notes, fmt.Sprintf("GPU %d already has %.1f GiB of memory in use: points may run out of memory", g.Index, *u/(1<<30)))
		}
		if e := g.ECC; e != nil && e.Uncorrected != nil && *e.Uncorrected > 0 {
			notes = append(notes, fmt.Sprintf("GPU %d has had %d uncorrected memory errors since the driver was loaded", g.Index, *e.Uncorrected))
		}
		if a, b := gpus[0].PowerLimitWatts, g.PowerLimitWatts; a != nil && b != nil && *a != *b {
			notes = append(notes, fmt.Sprintf("GPU %d has a power limit of %s W, GPU %d one of %s W", g.Index, number(*b), gpus[0].Index, number(*a)))
		}
	}
	return notes
}

// pids formats process ids, at most eight of them.
func pids(all []int) string {
	var words []string
	for i, pid := range all {
		if i == 8 {
			words = append(words, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		words = append(words, strconv.Itoa(pid))
	}
	return strings.Join(words, ", ")
}
