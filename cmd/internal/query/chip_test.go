package query

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
)

// TestChipTemplate: the template is a valid file, with the figures of the catalog's H100.
func TestChipTemplate(t *testing.T) {
	c, err := parseChip([]byte(ChipTemplate), "chip.yaml")
	if err != nil {
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
	if err := os.WriteFile(missing, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadChip(missing); err != nil || c.Accelerator.BF16 != 100e12 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestCheckCount: a number before the accelerator must be that of the devices or of a node.
func TestCheckCount(t *testing.T) {
	for _, tc := range []struct {
		accelerator      string
		devices, perNode int
		want             string
	}{
		{"h100", 3, 0, ""}, {"8xh100", 16, 0, ""}, {"8xH100", 0, 0, ""}, {"16 x h100", 16, 0, ""}, {"4xh100", 16, 4, ""},
		{"4xh100", 16, 0, "begins with 4 devices, but devices is 16 and a node has 8"}, {"2xa100", 0, 0, "begins with 2 devices, but a node has 8"},
		{"0xh100", 0, 0, "begins with 0 devices"}, {"9xnone", 1, 0, ""},
	} {
		q := Request{Accelerator: tc.accelerator, PerNode: tc.perNode}
		err := q.CheckCount(tc.devices)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s with %d devices: %v, want %q", tc.accelerator, tc.devices, err, tc.want)
		}
	}
	if n, bare := SplitCount("8xH100"); n != 8 || bare != "H100" {
		t.Errorf("%d of %q", n, bare)
	}
}
