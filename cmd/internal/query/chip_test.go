package query

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestChipTemplate: the template is a valid file, with and without its optional lines, with the figures of the catalog's
// H100.
func TestChipTemplate(t *testing.T) {
	c, err := parseChip([]byte(ChipTemplate), "chip.yaml")
	if err != nil || c.Accelerator.Arch != "" {
		t.Fatal(c, err)
	}
	optional := regexp.MustCompile(`(?m)^# ([a-z_]+: )`)
	if n := len(optional.FindAllString(ChipTemplate, -1)); n != 6 {
		t.Errorf("%d optional lines", n)
	}
	if c, err = parseChip([]byte(optional.ReplaceAllString(ChipTemplate, "$1")), "chip.yaml"); err != nil {
		t.Fatal(err)
	}
	want, err := catalog.Accelerator("H100")
	if err != nil {
		t.Fatal(err)
	}
	got := c.Accelerator
	want.Name, want.HostBps = got.Name, got.HostBps
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := c.Node; n.Devices != 8 || n.Link.IntraBps != 450e9 || n.Link.InterBps != 400e9 || n.CPUs != 224 || n.HostBytes != 2048<<30 {
		t.Errorf("%+v", n)
	}
}

// TestChipErrors: errors name file, line, column and value.
func TestChipErrors(t *testing.T) {
	const good = "name: X\ntflops: {bf16: 100}\nmemory_gib: 80\nmemory_gbytes_per_s: 2000\n"
	if _, err := parseChip([]byte(good), "c.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ text, want string }{
		{strings.Replace(good, "memory_gib: 80\n", "", 1), "c.yaml:1:1: memory_gib is missing"},
		{strings.Replace(good, "bf16: 100", "bf16: -100", 1), "c.yaml:2:16: -100 is not above 0"},
		{strings.Replace(good, "bf16: 100", "bf18: 100", 1), `c.yaml:2:10: unknown key "bf18", nearest is bf16`},
		{good + "memory_gb: 80\n", `c.yaml:5:1: unknown key "memory_gb", nearest is memory_gib`},
		{strings.Replace(good, "80", "{value: 0, source: sheet}", 1), "c.yaml:3:21: 0 is not above 0"},
		{strings.Replace(good, "80", "eighty", 1), `c.yaml:3:13: "eighty" is not a number`},
		{strings.Replace(good, "name: X", "name: h100", 1), `c.yaml:1:7: "h100" is H100-80GB-SXM of the catalog`},
		{good + "arch: Hoper\n", `c.yaml:5:7: arch: "Hoper" is not the architecture of an accelerator of pacer ls accelerators, such as Hopper`},
		{good + "devices: 0\n", "c.yaml:5:10: 0 is not in 1..65536"},
		{good + "tflops: 7\n", "c.yaml:5:1"},
		{strings.Replace(good, "{bf16: 100}", "100", 1), "c.yaml:2:9: 100, want rates by format"},
		{"", "the file is empty"},
	} {
		if _, err := parseChip([]byte(tc.text), "c.yaml"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.text, err, tc.want)
		}
	}
	missing := filepath.Join(t.TempDir(), "none.yaml")
	var bad *FieldError
	if _, err := ReadChip(missing); !errors.As(err, &bad) || !strings.Contains(err.Error(), "none.yaml: no such file") {
		t.Errorf("%v", err)
	}
	spectest.WriteFile(t, missing, []byte(good), 0o600)
	if c, err := ReadChip(missing); err != nil || c.Accelerator.BF16 != 100e12 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestChipCheck: a device type of a request has a name of its own and figures within bounds.
func TestChipCheck(t *testing.T) {
	good := spec.Accelerator{Name: "mine", BF16: 4e14, MemBytes: 1e11, MemBps: 3e12}
	for want, change := range map[string]func(*spec.Accelerator){
		"": func(*spec.Accelerator) {},
		`"H100-80GB-SXM" is H100-80GB-SXM of the catalog`: func(a *spec.Accelerator) { a.Name = "H100-80GB-SXM" },
		`arch: "Hoper" is not the architecture of an`:     func(a *spec.Accelerator) { a.Arch = "Hoper" },
		"host_bps of mine: -6e+10 is not in 0..1e+18":     func(a *spec.Accelerator) { a.HostBps = -6e10 },
		"fp8_flops of mine: -1 is not in 0..1e+21":        func(a *spec.Accelerator) { a.FP8 = -1 },
		"fp4_flops of mine: 2e+21 is not in 0..1e+21":     func(a *spec.Accelerator) { a.FP4 = 2e21 },
		"watts of mine: -700 is not in 0..1e+09":          func(a *spec.Accelerator) { a.Watts = -700 },
		"mem_bps of mine: 1e+30 is not in 0..1e+18":       func(a *spec.Accelerator) { a.MemBps = 1e30 },
		"scale_up_bps of mine: 2e+18 is not in 0..1e+18":  func(a *spec.Accelerator) { a.ScaleUpBps = 2e18 },
		"spec: accelerator mine: memory 0 B":              func(a *spec.Accelerator) { a.MemBytes = 0 },
	} {
		chip := ChipOf(good)
		change(&chip.Accelerator)
		q := Request{Model: "llama3-8b", Chip: chip}
		var bad *FieldError
		if err := q.Check(); (err == nil) != (want == "") || err != nil && (!errors.As(err, &bad) || bad.Field != "device" || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestChipUnmeasured: no fitted model and no measurement applies to a device type of the request, even if they are of
// one with its name.
func TestChipUnmeasured(t *testing.T) {
	rows := append(rowsNamed("llama3-8b", 2), rowsNamed("ours", 1)...)
	for i := range rows {
		rows[i].Config.Framework, rows[i].Config.SeqLen, rows[i].Config.Link = "DeepSpeed", 1234, spec.Link{IntraBps: 1, InterBps: 1, HostBps: 1}
	}
	d := resolverOf(t, rows...)
	if err := d.Fitted.Put(perfmodel.Card{Key: rows[0].Config.Key(), Family: "rubick", NFit: 2}, &analytic.Model{}); err != nil {
		t.Fatal(err)
	}
	chip := ChipOf(rows[0].Config.Accelerator)
	for _, model := range []string{"llama3-8b", "ours"} {
		target, err := d.Target(t.Context(), &Request{Model: model, Chip: chip, Family: Auto})
		if err != nil || target.card != nil || target.framework != "" || target.seqLen != 0 || target.link != chip.Node.Link || target.node != chip.Node {
			t.Errorf("%s: %+v, %v", model, target, err)
		}
		if _, err = d.Target(t.Context(), &Request{Model: model, Chip: chip, Family: "rubick"}); err == nil || !strings.Contains(err.Error(), "needs measurements of the device, and Acme 1 is not") {
			t.Errorf("%s by rubick: %v", model, err)
		}
	}
}

// TestOn: a number before the accelerator must be that of the devices or of a node.
func TestOn(t *testing.T) {
	for _, tc := range []struct {
		accelerator      string
		devices, perNode int
		want             string
	}{
		{"h100", 3, 8, ""}, {"8xh100", 16, 8, ""}, {"16 x h100", 16, 8, ""}, {"4xh100", 16, 4, ""}, {"4xmine.yaml", 16, 8, ""},
		{"4xh100", 16, 8, "names 4 devices, but the request is for 16 and a node has 8"}, {"0xh100", 8, 8, "names 0 devices"},
	} {
		q, r := Request{Accelerator: tc.accelerator}, Resolved{}
		r.PerNode = tc.perNode
		if strings.HasSuffix(tc.accelerator, ".yaml") {
			q.Chip = ChipOf(spec.Accelerator{Name: "mine"})
		}
		err := r.On(&q, tc.devices)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || r.Devices != tc.devices {
			t.Errorf("%s with %d devices: %v, want %q", tc.accelerator, tc.devices, err, tc.want)
		}
	}
	d := resolverOf(t)
	q := Request{Model: "llama3-8b", Accelerator: "16xh100"}
	for plan, ok := range map[string]bool{"dp=16,zero=3": true, "dp=4,zero=3": false} {
		r, err := d.Resolve(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Fix(&q, FixedPlan{Plan: plan}); (err == nil) != ok {
			t.Errorf("16xh100 with %s: %v", plan, err)
		}
	}
}
