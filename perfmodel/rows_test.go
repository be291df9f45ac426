package perfmodel_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestUsable: a row that ran another configuration than recorded is doubted, with or without a Doubt.
func TestUsable(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*spec.Measurement)
		reason string
		usable bool
	}{
		"as measured":         {func(*spec.Measurement) {}, "", true},
		"other facts":         {func(m *spec.Measurement) { m.Env = map[string]string{"a": "b"} }, "", true},
		"doubted":             {func(m *spec.Measurement) { m.Doubt = "erratic" }, "erratic", false},
		"wrong configuration": {func(m *spec.Measurement) { m.Env = map[string]string{spec.EnvWrongConfig: "half the batch"} }, "half the batch", false},
		"doubted, wrong":      {func(m *spec.Measurement) { m.Doubt, m.Env = "erratic", map[string]string{spec.EnvWrongConfig: "half"} }, "erratic", false},
		"without a step time": {func(m *spec.Measurement) { m.StepSec = nil }, "", false},
		"not run":             {func(m *spec.Measurement) { m.Outcome = spec.OOM }, "", false},
	} {
		m := row(2, 1)
		tc.change(&m)
		if perfmodel.Usable(m) != tc.usable || m.DoubtReason() != tc.reason {
			t.Errorf("%s: usable %t, reason %q, want %t, %q", name, perfmodel.Usable(m), m.DoubtReason(), tc.usable, tc.reason)
		}
	}
}

func TestMergeRepeats(t *testing.T) {
	raw := row(2, 1)
	raw.StepSec = []float64{1, 2, 9}
	got := perfmodel.MergeRepeats([]spec.Measurement{row(4, 1), row(1, 3), raw, row(1, 1), row(1, 2)})
	want := []string{"1 [1 2 3]", "2 [1 2 9]", "4 [4]"}
	for i, m := range got {
		if s := fmt.Sprintf("%d %v", m.Config.Plan.DP, m.StepSec); i >= len(want) || s != want[i] {
			t.Errorf("row %d: %s, want %v", i, s, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}

// TestCompareConfigsTellsAllApart changes one field at a time.
func TestCompareConfigsTellsAllApart(t *testing.T) {
	base := row(4, 1).Config
	all := []spec.Config{base}
	for _, change := range []func(*spec.Config){
		func(c *spec.Config) { c.Model.Name = "n" },
		func(c *spec.Config) { c.Model.Layers = 3 },
		func(c *spec.Config) { c.Accelerator.Name = "b" },
		func(c *spec.Config) { c.Accelerator.BF16 = 1 },
		func(c *spec.Config) { c.Plan.ZeRO = 1 },
		func(c *spec.Config) { c.Shape.Devices = "2+2" },
		func(c *spec.Config) { c.Shape.CPUs = 4 },
		func(c *spec.Config) { c.Shape.HostBytes = 4 },
		func(c *spec.Config) { c.SeqLen = 7 },
		func(c *spec.Config) { c.Framework = "f" },
		func(c *spec.Config) { c.Link.IntraBps = 1 },
		func(c *spec.Config) { c.Link.InterBps = 1 },
		func(c *spec.Config) { c.Link.HostBps = 1 },
	} {
		c := base
		change(&c)
		all = append(all, c)
	}
	for i, a := range all {
		for j, b := range all {
			ab, ba := perfmodel.CompareConfigs(a, b), perfmodel.CompareConfigs(b, a)
			if (ab == 0) != (i == j) || ab != -ba {
				t.Errorf("configs %d and %d compare %d and %d", i, j, ab, ba)
			}
		}
	}
}

func TestGroupByKey(t *testing.T) {
	other := row(1, 1)
	other.Config.Accelerator.Name = "b"
	got := perfmodel.GroupByKey([]spec.Measurement{row(1, 1), other, row(2, 1)})
	keys := slices.SortedFunc(maps.Keys(got), perfmodel.CompareKeys)
	if fmt.Sprint(keys) != "[m on a m on b]" || len(got[keys[0]]) != 2 || len(got[keys[1]]) != 1 {
		t.Errorf("groups %v", got)
	}
}

func TestHashRowsFollowsTheRows(t *testing.T) {
	a, b := []spec.Measurement{row(1, 1), row(2, 1)}, []spec.Measurement{row(1, 1), row(2, 1.5)}
	hash := func(rows []spec.Measurement) string {
		h, err := perfmodel.HashRows(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if len(hash(a)) != 32 || hash(a) != hash(slices.Clone(a)) || hash(a) == hash(b) {
		t.Errorf("hashes %s and %s", hash(a), hash(b))
	}
}

func TestErrorSummary(t *testing.T) {
	var ape []float64
	for i := 20; i >= 1; i-- {
		ape = append(ape, float64(i))
	}
	if mean, p95 := perfmodel.ErrorSummary(ape); mean != 10.5 || p95 != 19 {
		t.Errorf("mean %g, p95 %g; want 10.5 and the 19th of 20", mean, p95)
	}
	if mean, p95 := perfmodel.ErrorSummary(nil); mean != 0 || p95 != 0 {
		t.Errorf("of nothing: %g, %g", mean, p95)
	}
}
