package bench

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/worker"
)

func readCampaign(t testing.TB, path string) profiler.Campaign {
	t.Helper()
	text := spectest.ReadFile(t, path)
	c, err := profiler.ReadCampaign(path, text, catalog.Model)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// machine is an invented node: n processes on CPUs, or n H200.
func machine(t testing.TB, n int, gpu bool) profiler.Machine {
	t.Helper()
	m := profiler.Machine{PerNode: n, CPUs: n, HostBytes: 8 * memory.GiB, Framework: "pacer-torch", CPU: true,
		Accelerator: spec.Accelerator{Name: "two cores", FP32: 5e10, MemBytes: 4 * memory.GiB, MemBps: 1e10}}
	if gpu {
		a, err := catalog.Accelerator("H200")
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]any{}
		for _, name := range []string{"zero_redundancy_optimizer", "fsdp1", "fsdp2", "compile", "bf16", "fp16", "tf32"} {
			all[name] = true
		}
		torch := worker.Features{Features: all}
		m.Lacks = func(c spec.Config) string { return torch.Lacks(c, worker.CUDA, false) }
		m.Accelerator, m.CPU, m.CPUs, m.HostBytes = a, false, 16*n, 128*memory.GiB
	}
	for i := range n {
		m.Devices = append(m.Devices, i)
	}
	return m
}

// TestCampaigns expands every campaign file on a machine that it is for. The counts follow from its
// lists (models x shapes x ...), minus configurations that need too much memory.
func TestCampaigns(t *testing.T) {
	for name, want := range map[string]struct {
		machine profiler.Machine
		legal   int
	}{
		"cpu-smoke":         {machine(t, 2, false), 2 * (2 + 4)},
		"cpu-small":         {machine(t, 2, false), 4 * (18 + 36 + 18 + 18)},
		"gpu-smoke":         {machine(t, 1, true), 7}, // one of them too large on purpose
		"gpu-smoke-compile": {machine(t, 1, true), 3},
		"gpu-single":        {machine(t, 1, true), 6 * 6 * 2 * 2 * 2},
		"gpu-deep":          {machine(t, 1, true), 8 * 3 * 4 * 2 * 2 * 2},
		"gpu-alone":         {machine(t, 1, true), 180},
		"gpu-node":          {machine(t, 8, true), 4 * (8 + 56 + 152 + 272 + 3)}, // by shape, and the plans
	} {
		c := readCampaign(t, "campaigns/"+name+".yaml")
		if c.Name != name || c.Description == "" {
			t.Errorf("%s: name %q, description %q", name, c.Name, c.Description)
		}
		points, rejected, err := c.Points(want.machine)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		large := 0
		for _, r := range rejected {
			if r.Group == profiler.ForMemory {
				large++
			}
			if r.UnusedValue != "" {
				t.Errorf("%s: %s is in no point: %s", name, r.UnusedValue, r.Why)
			}
		}
		if len(points)+large != want.legal || large > want.legal/10 {
			t.Errorf("%s: %d points and %d too large, want %d in all", name, len(points), large, want.legal)
		}
		for _, p := range points {
			if err := p.Config.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestReplayCampaigns expands the campaigns over published rows, and runs their first points.
func TestReplayCampaigns(t *testing.T) {
	field, _, err := datasets.ReadAll(t.Context(), "published", os.DirFS(filepath.Join(spectest.Shared(t), "data/field")))
	if err != nil {
		t.Fatal(err)
	}
	libai := slices.DeleteFunc(field, func(m spec.Measurement) bool { return m.Source != "published/oneflow_libai" })
	replayCampaign(t, "campaigns/rubick-replay.yaml", importAll(t, "rubick"), 250)
	replayCampaign(t, "campaigns/libai-replay.yaml", libai, 80)
}

// replayCampaign runs the first points of a campaign, which measures every model of rows.
func replayCampaign(t *testing.T, path string, rows []spec.Measurement, least int) {
	t.Helper()
	c := readCampaign(t, path)
	r := runner.NewReplay(rows, runner.SimulatedTiming{Noise: c.Runner.Noise, Seed: 1})
	points, _, err := c.Points(profiler.Machine{Configs: r.Configs()})
	if err != nil {
		t.Fatal(err)
	}
	if len(points) < least || len(points) > len(rows) {
		t.Errorf("%s: %d points of %d rows", path, len(points), len(rows))
	}
	fam := mustFamily(t, cmp.Or(c.Family, family.Default))
	c.Budget.Points, c.Until = 40, profiler.Until{}
	var sink rowSlice
	s, err := profiler.Run(t.Context(), c, profiler.Options{Runner: r, Sink: &sink, Family: fam, Seed: 1})
	if err != nil || s.Done != 40 || len(sink) != 40 {
		t.Fatalf("%s: %d points, %d rows, %v; want 40", path, s.Done, len(sink), err)
	}
	for _, m := range s.Models {
		if m.Done == 0 {
			t.Errorf("%s: %s: nothing measured of %d points", path, m.Key, m.Points)
		}
	}
	t.Logf("%s: %d points of %d models; %d skipped; outcomes %v", path, len(points), len(s.Models), s.Skipped, s.ByOutcome)
}

// rowSlice is a sink.
type rowSlice []spec.Measurement

func (s *rowSlice) Put(_ context.Context, ms ...spec.Measurement) error {
	*s = append(*s, ms...)
	return nil
}

// Every campaign file is in TestCampaigns or the test of replays.
func TestEveryCampaignIsTested(t *testing.T) {
	files, err := filepath.Glob("campaigns/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".yaml"))
		readCampaign(t, f)
	}
	if want := []string{"cpu-small", "cpu-smoke", "gpu-alone", "gpu-deep", "gpu-node", "gpu-single", "gpu-smoke-compile", "gpu-smoke", "libai-replay", "rubick-replay"}; !slices.Equal(names, want) {
		t.Errorf("campaigns are %v, want %v", names, want)
	}
}
