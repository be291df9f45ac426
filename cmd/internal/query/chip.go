package query

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// Chip is a device type that the request describes, and the machine it comes in. Comparable.
type Chip struct {
	Accelerator spec.Accelerator
	Node        spec.Node
}

// maxChipFile bounds the size of a chip file.
const maxChipFile = 1 << 20

// IsChipFile reports whether an accelerator is named by a chip file: a name that ends in .yaml or .yml.
func IsChipFile(name string) bool {
	ext := strings.ToLower(filepath.Ext(strings.TrimSpace(name)))
	return ext == ".yaml" || ext == ".yml"
}

// ReadChip reads a chip file. Errors about its content name file, line and column.
func ReadChip(path string) (Chip, error) {
	text, err := ReadFile("accelerator", path, maxChipFile)
	var bad *fs.PathError
	if errors.As(err, &bad) {
		err = bad.Err
	}
	if err != nil {
		return Chip{}, &FieldError{Field: "accelerator", Value: path, Err: fmt.Errorf("{accelerator} %s: %w; pacer ls accelerators --template prints an example", path, err)}
	}
	chip, err := parseChip(text, path)
	if err != nil {
		return Chip{}, &FieldError{Field: "accelerator", Value: path, Err: err}
	}
	return chip, nil
}

// ChipTemplate is an example of a chip file. Its figures are those of NVIDIA's H100 SXM.
const ChipTemplate = `# A device type that the catalog lacks. Use it as --accelerator chip.yaml.
# Every figure may carry its source: {value: 80, source: "datasheet, page 2"}.
name: MyChip-80GB

# Dense peak rates in TFLOP/s, without sparsity. At least one; a format without a rate is not available.
tflops:
  fp32: 67
  tf32: 494.7
  fp16: 989.4
  bf16: {value: 989.4, source: "datasheet: half of the printed sparse rate"}
  fp8: 1978.9

memory_gib: 80
memory_gbytes_per_s: 3350

# Links. All rates are for one direction.
intra_gbytes_per_s: 450 # per device, to the other devices of its node; default: host_gbytes_per_s
inter_gbits_per_s: 3200 # out of one node, all NICs together; default: that of a similar machine
host_gbytes_per_s: 63   # per device, to host memory; default: PCIe 3.0 x16

# The machine.
devices: 8              # per node, default 8

# Optional:
# arch: Hopper          # efficiency and training stacks of this architecture, see pacer ls accelerators -o json; default: an average device
# watts: 700            # board power limit
# host_gib: 2048        # host memory per node, GiB
# Notes, without effect:
# vendor: NVIDIA
# cpus: 224             # CPU threads per node
# source: datasheet
`

// Bounds of the figures of a chip file.
const (
	maxTera   = 1e9 // TFLOP/s
	maxGiga   = 1e9 // GB/s, Gbit/s, GiB
	maxOnNode = 1 << 16
)

// chipReader reads a chip file.
type chipReader struct {
	yamlfile.File
	chip Chip
}

func parseChip(text []byte, name string) (Chip, error) {
	r := &chipReader{File: yamlfile.File{Name: name, Package: "query", Kind: "chip"}}
	r.read(r.Parse(text))
	return r.chip, r.Err()
}

func (r *chipReader) read(top yamlfile.Node) {
	if !top.Given() {
		return
	}
	a, n := &r.chip.Accelerator, &r.chip.Node
	n.Devices = usualDevices
	given := map[string]bool{}
	entries := top.Entries("name", "vendor", "arch", "source", "tflops", "memory_gib", "memory_gbytes_per_s", "watts",
		"intra_gbytes_per_s", "inter_gbits_per_s", "host_gbytes_per_s", "devices", "cpus", "host_gib")
	for _, e := range entries {
		given[e.Key] = true
		switch v := e.Value; e.Key {
		case "name":
			a.Name = v.Text()
			if err := ownName(a.Name); err != nil {
				v.Fail("%v", err)
			}
		case "vendor":
			a.Vendor = v.Text()
		case "arch":
			a.Arch = v.Text()
			if err := knownArch(a.Arch); err != nil {
				v.Fail("%v", err)
			}
		case "source":
			v.Text()
		case "tflops":
			r.rates(v)
		case "memory_gib":
			a.MemBytes = figure(v, false, maxGiga) * (1 << 30)
		case "memory_gbytes_per_s":
			a.MemBps = figure(v, false, maxGiga) * 1e9
		case "watts":
			a.Watts = figure(v, false, maxGiga)
		case "intra_gbytes_per_s":
			a.ScaleUpBps = figure(v, true, maxGiga) * 1e9
		case "inter_gbits_per_s":
			n.Link.InterBps = figure(v, false, maxGiga) * 1e9 / 8
		case "host_gbytes_per_s":
			a.HostBps = figure(v, false, maxGiga) * 1e9
		case "devices":
			n.Devices = valued(v).Whole(1, maxOnNode)
		case "cpus":
			n.CPUs = valued(v).Whole(1, maxOnNode)
		case "host_gib":
			n.HostBytes = figure(v, false, maxGiga) * (1 << 30)
		}
	}
	for _, key := range []string{"name", "tflops", "memory_gib", "memory_gbytes_per_s"} {
		if !given[key] && len(entries) > 0 {
			top.Fail("%s is missing; pacer ls accelerators --template prints an example", key)
		}
	}
	r.chip = chipOf(*a, *n)
}

// chipOf returns a chip with the links of the device where those of the machine are not given.
func chipOf(a spec.Accelerator, n spec.Node) Chip {
	n.Name, n.Accelerator = a.Name+" node", a.Name
	n.Link.IntraBps, n.Link.HostBps = cmp.Or(n.Link.IntraBps, a.ScaleUpBps, a.HostBps), cmp.Or(n.Link.HostBps, a.HostBps)
	return Chip{a, n}
}

// ChipOf returns the chip of a device type without a machine: eight devices a node.
func ChipOf(a spec.Accelerator) Chip { return chipOf(a, spec.Node{Devices: usualDevices}) }

// usualDevices is the number of devices of a node if none is given.
const usualDevices = 8

// Check reports a device type with a name of the catalog, without figures that predictions need, or with one out of
// bounds.
func (c *Chip) Check() error {
	a := &c.Accelerator
	err := cmp.Or(ownName(a.Name), knownArch(a.Arch), CheckFigures(a), a.Validate())
	if err != nil {
		err = &FieldError{Field: "device", Value: a.Name, Err: err}
	}
	return err
}

// CheckFigures returns a *FieldError for a figure out of bounds. A figure of 0 is not known.
func CheckFigures(a *spec.Accelerator) error {
	for _, f := range [...]struct {
		name    string
		v, most float64
	}{
		{"fp32_flops", a.FP32, maxTera * 1e12}, {"tf32_flops", a.TF32, maxTera * 1e12}, {"fp16_flops", a.FP16, maxTera * 1e12},
		{"bf16_flops", a.BF16, maxTera * 1e12}, {"fp8_flops", a.FP8, maxTera * 1e12}, {"fp4_flops", a.FP4, maxTera * 1e12},
		{"mem_bytes", a.MemBytes, maxGiga * (1 << 30)}, {"mem_bps", a.MemBps, maxGiga * 1e9}, {"scale_up_bps", a.ScaleUpBps, maxGiga * 1e9},
		{"host_bps", a.HostBps, maxGiga * 1e9}, {"watts", a.Watts, maxGiga},
	} {
		if !(f.v >= 0 && f.v <= f.most) {
			return &FieldError{Field: f.name, Value: f.v, Err: fmt.Errorf("%s of %s: %g is not in 0..%g", f.name, a.Name, f.v, f.most)}
		}
	}
	return nil
}

// knownArch reports an architecture that no accelerator of the catalog has. "" is none.
func knownArch(arch string) error {
	if arch == "" {
		return nil
	}
	known := map[string]bool{}
	for _, e := range catalog.Accelerators() {
		known[e.Accelerator.Arch] = true
	}
	if known[arch] {
		return nil
	}
	delete(known, "")
	return fmt.Errorf("arch: %q is not the architecture of an accelerator of pacer ls accelerators, such as %s; leave it out if none is like it",
		arch, strings.Join(named.Nearest(arch, slices.Sorted(maps.Keys(known)), 3), ", "))
}

// ownName reports a name of the catalog.
func ownName(name string) error {
	if known, err := catalog.Accelerator(name); err == nil {
		return fmt.Errorf("%q is %s of the catalog: give this device another name", name, known.Name)
	}
	return nil
}

// rates reads the peak rates by format.
func (r *chipReader) rates(n yamlfile.Node) {
	a := &r.chip.Accelerator
	at := map[string]*float64{"fp32": &a.FP32, "tf32": &a.TF32, "fp16": &a.FP16, "bf16": &a.BF16, "fp8": &a.FP8, "fp4": &a.FP4}
	if !n.IsMapping() {
		n.Fail("%s, want rates by format, such as {bf16: 989.4}", n.What())
		return
	}
	for _, e := range n.Entries("fp32", "tf32", "fp16", "bf16", "fp8", "fp4") {
		*at[e.Key] = figure(e.Value, false, maxTera) * 1e12
	}
}

// figure returns a number above 0, or 0 itself if zero is true.
func figure(n yamlfile.Node, zero bool, most float64) float64 { return valued(n).Number(0, zero, most) }

// valued returns the value of a figure with a source, {value: 80, source: "..."}, or n itself.
func valued(n yamlfile.Node) yamlfile.Node {
	if !n.IsMapping() {
		return n
	}
	v := n
	for _, e := range n.Entries("value", "source") {
		if e.Key == "value" {
			v = e.Value
		} else {
			e.Value.Text()
		}
	}
	return v
}

// On sets the number of devices of r, the answer to q. It reports a number in front of the accelerator's name that is
// neither this one nor that of a node.
func (r *Resolved) On(q *Request, devices int) error {
	r.Devices = devices
	n, bare := catalog.SplitCount(q.Accelerator)
	if q.Chip != (Chip{}) || bare == q.Accelerator || n == devices || n == r.PerNode {
		return nil
	}
	return &FieldError{Field: "accelerator", Value: q.Accelerator,
		Why: fmt.Sprintf("names %d devices, but the request is for %d and a node has %d: leave the number out, or change {per_node}", n, devices, r.PerNode)}
}
