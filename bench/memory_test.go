package bench

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestMemory compares the estimate with the peaks that bigscience (rows with
// layers) and torchtitan print, and asks that the plans of Narayanan et al. SC
// 2021, table 1, fit the devices they ran on.
func TestMemory(t *testing.T) {
	errs := map[string][]float64{}
	sc21 := 0
	for _, m := range published(t) {
		name := strings.TrimPrefix(m.Source, "published/")
		if name == "megatron_sc21" {
			sc21++
			fits(t, m)
		}
		layers := m.Config.Model.Layers > 0
		if (name != "bigscience" || !layers) && name != "torchtitan" || m.Outcome != spec.OK || m.PeakBytes == 0 || m.Env[spec.EnvWrongConfig] != "" {
			continue
		}
		b, err := memory.Estimate(m.Config)
		if err != nil {
			t.Errorf("%s: %v", m.Origin, err)
			continue
		}
		errs[name] = append(errs[name], math.Abs(b.Total()/m.PeakBytes-1))
		errs["pooled"] = append(errs["pooled"], math.Abs(b.Total()/m.PeakBytes-1))
		if os.Getenv("PACER_VERBOSE") == name {
			t.Logf("%s %s %s: measured %.1f GiB, estimated %.1f: %s", m.Origin, m.Config.Model.Name, m.Config.Plan, m.PeakBytes/memory.GiB, b.Total()/memory.GiB, b)
		}
	}
	t.Logf("%-12s %5s %10s %10s %10s", "source", "rows", "mean", "median", "max")
	for _, name := range []string{"bigscience", "torchtitan", "pooled"} {
		e := errs[name]
		if len(e) < 10 {
			t.Fatalf("%s: %d rows with memory, want at least 10", name, len(e))
		}
		t.Logf("%-12s %5d %8.1f %% %8.1f %% %8.1f %%", name, len(e), 100*meanOf(e), 100*medianOf(e), 100*slices.Max(e))
	}
	if m := meanOf(errs["pooled"]); m > 0.15 {
		t.Errorf("mean error %.3f, want at most 0.15", m)
	}
	if sc21 != 10 {
		t.Errorf("%d plans of SC 2021, want 10", sc21)
	}
}

func fits(t *testing.T, m spec.Measurement) {
	b, err := memory.Estimate(m.Config)
	if err != nil || b.Total() > m.Config.Accelerator.MemBytes {
		t.Errorf("%s %s ran but is estimated to need %s of %.1f GiB (%v, %v)", m.Config.Model.Name, m.Config.Plan,
			fmt.Sprintf("%.1f", b.Total()/memory.GiB), m.Config.Accelerator.MemBytes/memory.GiB, b, err)
	}
}

func meanOf(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func medianOf(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}
