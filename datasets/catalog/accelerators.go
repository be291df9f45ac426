package catalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// AcceleratorEntry is one accelerator of the catalog.
type AcceleratorEntry struct {
	Accelerator spec.Accelerator
	Aliases     []string
	Year        int
	FormFactor  string
	MemType     string
	ScaleUp     string  // name of the link between devices, "none" without
	MatmulBF16  float64 // best measured bf16 matrix rate, FLOP/s; 0 = none published
	Uncertain   string  // which figures are doubtful, and why
	Source      string
	// Also is another accelerator that an alias without a memory size may mean, "" = none.
	Also string
}

type acceleratorTable struct {
	*index
	entries []AcceleratorEntry
}

var loadAccelerators = sync.OnceValue(func() *acceleratorTable {
	t := &acceleratorTable{index: newIndex("accelerator", withoutVendor)}
	t.match, t.tokens = someWords, true
	more := map[string]AcceleratorEntry{}
	for _, r := range readTable("accelerator_names.csv") {
		more[r.str("name")] = AcceleratorEntry{Aliases: r.list("aliases"), Also: r.str("also")}
	}
	for _, table := range []string{"accelerators.csv", "more_accelerators.csv"} {
		for _, r := range readTable(table) {
			e := acceleratorFromRow(r)
			named := more[e.Accelerator.Name]
			e.Aliases, e.Also = slices.Concat(e.Aliases, named.Aliases), named.Also
			t.entries = append(t.entries, e)
			t.add(e.Accelerator.Name, e.Aliases, 0)
		}
	}
	return t
})

// Factors from the tables' units to base units.
const (
	tera = 1e12
	giga = 1e9
	gib  = 1 << 30
)

func acceleratorFromRow(r row) AcceleratorEntry {
	return AcceleratorEntry{
		Accelerator: spec.Accelerator{
			Name:   r.str("name"),
			Vendor: r.str("vendor"),
			Arch:   r.str("arch"),

			FP32: r.num("fp32_tflops") * tera,
			TF32: r.num("tf32_dense_tflops") * tera,
			FP16: r.num("fp16_dense_tflops") * tera,
			BF16: r.num("bf16_dense_tflops") * tera,
			FP8:  r.num("fp8_dense_tflops") * tera,
			FP4:  r.num("fp4_dense_tflops") * tera,

			MemBytes:   r.num("mem_gb") * gib,
			MemBps:     r.num("mem_bw_gbps") * giga,
			ScaleUpBps: r.num("scaleup_gbps_bidir_per_gpu") / 2 * giga,
			HostBps:    pcieBps(r.int("pcie_gen")) * r.num("pcie_lanes"),
			Watts:      r.num("tdp_w"),
		},
		Aliases:    r.list("aliases"),
		Year:       r.int("year"),
		FormFactor: r.str("form_factor"),
		MemType:    r.str("mem_type"),
		ScaleUp:    r.str("scaleup_link"),
		MatmulBF16: r.num("measured_max_bf16_matmul_tflops") * tera,
		Uncertain:  r.str("uncertain_fields"),
		Source:     r.str("source"),
	}
}

// pcieBps returns the bytes/s of one PCIe lane, one direction, after line
// encoding: 128b/130b of 8, 16 and 32 GT/s for generations 3 to 5, 242 of 256
// flit bytes of 64 GT/s for generation 6 (PCI-SIG base specifications).
func pcieBps(gen int) float64 {
	switch gen {
	case 3, 4, 5:
		return float64(int(8)<<(gen-3)) * giga * 128 / 130 / 8
	case 6:
		return 64 * giga * 242 / 256 / 8
	}
	return 0
}

// Accelerator returns the accelerator with a name or alias, or an *UnknownError.
func Accelerator(name string) (spec.Accelerator, error) {
	t := loadAccelerators()
	i, err := t.find(name)
	if err != nil {
		return spec.Accelerator{}, err
	}
	return t.entries[i].Accelerator, nil
}

// AcceleratorOf is Accelerator for names as people write them. They may begin with the vendor, NVIDIA H100, and have
// the words of a name in any order or leave some out, H100 SXM5 80GB, A100-80, or be that of a node, DGX H100. The error
// for a name that fits two or three accelerators, A100-SXM, is an *UnknownError that is Ambiguous.
func AcceleratorOf(name string) (spec.Accelerator, error) {
	t := loadAccelerators()
	i, err := t.findWritten(name)
	if err != nil {
		if node, nodeErr := Node(name); nodeErr == nil && node.Accelerator != "" {
			return Accelerator(node.Accelerator)
		}
		return spec.Accelerator{}, err
	}
	return t.entries[i].Accelerator, nil
}

// AlsoMeans returns the accelerator that a name may mean too, since it has no memory size: V100, which is taken as the one
// of 16 GB. "" = none.
func AlsoMeans(name string) string {
	t := loadAccelerators()
	i, ok := t.exact(name, t.bare(name))
	if !ok || strings.Contains(strings.ToLower(name), "gb") {
		return ""
	}
	return t.entries[i].Also
}

// Accelerators returns every accelerator, in table order.
func Accelerators() []AcceleratorEntry {
	out := slices.Clone(loadAccelerators().entries)
	for i := range out {
		out[i].Aliases = slices.Clone(out[i].Aliases)
	}
	return out
}

// counted matches a number of devices in front of a name, countedBehind one behind it. The latter is no type: RTX 4090.
var (
	counted       = regexp.MustCompile(`^\s*([0-9]{1,6})\s*[xX]\s*(\S.*)$`)
	countedBehind = regexp.MustCompile(`(?i)^(.*(?:[0-9)\s]|gb|sxm|pcie|nvl))x\s*([0-9]{1,6})\s*$`)
)

// SplitCount splits a number of devices off the name of an accelerator: "8xH100" and "H100 x8" are 8 of H100, "2x8xH100"
// and "2x DGX H100" are 16. 0 = none.
func SplitCount(name string) (devices int, bare string) {
	number := 0
	if m := counted.FindStringSubmatch(name); m != nil {
		number, bare = 1, m[2]
		devices, _ = strconv.Atoi(m[1])
	} else if m := countedBehind.FindStringSubmatch(name); m != nil {
		number, bare = 2, strings.TrimSpace(m[1])
		devices, _ = strconv.Atoi(m[2])
	}
	if number == 0 {
		return 0, name
	}
	each, rest := SplitCount(bare)
	if node, err := Node(rest); err == nil && node.Accelerator != "" && each == 0 {
		each = node.Devices
	}
	return devices * max(each, 1), rest
}
