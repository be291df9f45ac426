package trace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func openShared(t *testing.T, file, format string) Workload {
	t.Helper()
	w, err := Open(t.Context(), filepath.Join(spectest.Shared(t), file), format)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// devicesOf counts jobs by their devices.
func devicesOf(w Workload) map[int]int {
	out := map[int]int{}
	for _, j := range w.Jobs {
		out[j.Devices]++
	}
	return out
}

// The 160 jobs in 8 hours of each published workload, and those of the other
// loads: data/pollux/README.md, data/sia/README.md.
func TestPolluxWorkloadsPublished(t *testing.T) {
	shared := spectest.Shared(t)
	for pattern, want := range map[string]struct {
		format      string
		files, jobs int
		end         time.Duration
	}{
		"data/pollux/workloads/*.csv":           {"pollux", 8, 160, 8 * time.Hour},
		"data/pollux/workloads-0.5/*.csv":       {"pollux", 8, 80, 8 * time.Hour},
		"data/pollux/workloads-1.5/*.csv":       {"pollux", 8, 240, 8 * time.Hour},
		"data/pollux/workloads-2.0/*.csv":       {"pollux", 8, 320, 8 * time.Hour},
		"data/pollux/workloads-realistic/*.csv": {"pollux", 8, 160, 8 * time.Hour},
		"data/sia/workloads/philly/*.csv":       {"sia", 8, 160, 8 * time.Hour},
		"data/sia/workloads/saturn/*.csv":       {"sia", 10, 160, 8 * time.Hour},
		"data/sia/workloads/newtrace/*.csv":     {"sia", 10, 960, 48 * time.Hour},
		"data/sia/workloads/scale/*/*.csv":      {"sia", 100, 0, 0},
		"data/sia/physical_workload/*.csv":      {"sia", 1, 30, 0},
	} {
		files, err := filepath.Glob(filepath.Join(shared, pattern))
		if err != nil || len(files) != want.files {
			t.Errorf("%s: %d files, %v, want %d", pattern, len(files), err, want.files)
		}
		for _, file := range files {
			w, err := Open(t.Context(), file, want.format)
			if err != nil || len(w.Bad) != 0 || want.jobs > 0 && len(w.Jobs) != want.jobs {
				t.Errorf("%s: %d jobs, %v, %v, want %d", file, len(w.Jobs), w.Bad, err, want.jobs)
				continue
			}
			if last := w.Jobs[len(w.Jobs)-1].Submit; want.end > 0 && last > want.end {
				t.Errorf("%s: the last job is submitted after %v", file, last)
			}
			for _, j := range w.Jobs {
				if j.Epochs != polluxEpochs[j.Model.Name] || j.Epochs == 0 {
					t.Errorf("%s: %s trains %g epochs of %s", file, j.ID, j.Epochs, j.Model.Name)
				}
			}
		}
	}
}

// The first rows are those of the file, and the jobs by virtual cluster those of the
// whole file; data/pollux/README.md has the columns.
func TestPhillyCSVPublished(t *testing.T) {
	w := openShared(t, "data/pollux/traces/philly.csv", "")
	if w.Format != "philly-csv" || len(w.Bad) != 0 || len(w.Jobs) != 82247 {
		t.Fatalf("%s: %d jobs, %d bad rows, want 82247 and none", w.Format, len(w.Jobs), len(w.Bad))
	}
	if n := devicesOf(w); n[1] != 76627 || n[8] != 1643 || n[128] != 3 {
		t.Errorf("jobs by devices: %v", n)
	}
	for _, j := range w.Jobs {
		if j.ID != "line-4" {
			continue
		}
		at := w.Began.Add(j.Submit)
		if j.Duration != 860662*time.Second || j.Tenant != "6c71a0" || !at.Equal(time.Date(2017, 9, 29, 7, 58, 32, 0, time.UTC)) {
			t.Errorf("%+v at %v", j, at)
		}
	}
	if want := time.Date(2017, 9, 4, 10, 30, 41, 0, time.UTC); !w.Began.Equal(want) {
		t.Errorf("began %v, want %v", w.Began, want)
	}
}

// 8,152 pods over 149 days, by number of GPUs: data/traces/README.md. Of those
// with GPUs 861 were never scheduled.
func TestPAI2023Published(t *testing.T) {
	w := openShared(t, "data/traces/alibaba_gpu_v2023/openb_pod_list_default.csv", "")
	n := devicesOf(w)
	if w.Format != "pai2023" || len(w.Bad) != 0 || n[1] != 6129 || n[2] != 15 || n[4] != 15 || n[8] != 44 || len(w.Jobs) != 6203 {
		t.Errorf("%s: %d jobs, %v, %v", w.Format, len(w.Jobs), w.Bad, n)
	}
	last := w.Jobs[len(w.Jobs)-1].Submit
	if days := last.Hours() / 24; days < 148 || days > 150 {
		t.Errorf("the last pod is created after %.1f days", days)
	}
	if first := w.Jobs[0]; first.ID != "openb-pod-0000" || first.Duration != 12537496*time.Second {
		t.Errorf("first pod %+v", first)
	}
	counted := countRowsOf(t, "data/traces/alibaba_gpu_v2023/openb_pod_list_default.csv")
	if counted != 8152 {
		t.Errorf("%d jobs and rows without one, want 8152", counted)
	}
	// 33 % of the GPU pods of this variant name a type
	typed := openShared(t, "data/traces/alibaba_gpu_v2023/openb_pod_list_gpuspec33.csv", "")
	if by := acceleratorsOf(typed); by["T4"] == 0 || by["V100-SXM2-32GB"] == 0 || by["G2"] == 0 {
		t.Errorf("accelerators %v", by)
	}
	_, err := Open(t.Context(), filepath.Join(spectest.Shared(t), "data/traces/alibaba_gpu_v2023/openb_pod_list_multigpu50.csv"), "pai2023")
	if err == nil || !strings.Contains(err.Error(), "no column creation_time, deletion_time, scheduled_time") {
		t.Errorf("a list without times: %v", err)
	}
}

// countRowsOf returns the rows a reader accounts for: jobs, and rows that hold
// none.
func countRowsOf(t *testing.T, file string) int {
	t.Helper()
	rows := 0
	for _, err := range jobsOf(t.Context(), os.DirFS(spectest.Shared(t)), file) {
		if err == nil || errors.Is(err, ErrNoJob) {
			rows++
		}
	}
	return rows
}

func acceleratorsOf(w Workload) map[string]int {
	out := map[string]int{}
	for _, j := range w.Jobs {
		out[j.Accelerator]++
	}
	return out
}

// The 60 jobs of ten models: data/traces/README.md.
func TestTiresiasPublished(t *testing.T) {
	w := openShared(t, "data/traces/tiresias/60_job.csv", "")
	if w.Format != "tiresias" || len(w.Jobs) != 60 || len(w.Bad) != 0 || len(w.Warnings) != 0 {
		t.Fatalf("%s: %d jobs, %v, %v", w.Format, len(w.Jobs), w.Bad, w.Warnings)
	}
	models := map[string]int{}
	for _, j := range w.Jobs {
		models[j.Model.Name]++
	}
	if len(models) != 10 {
		t.Errorf("models %v, want ten", models)
	}
	if j := w.Jobs[2]; j.Submit != 53*time.Second || j.Devices != 2 || j.Steps != 157 || j.Duration != 127*time.Second {
		t.Errorf("%+v", j)
	}
}

// The recorded run's jobs, of one device each: baselines/blox/README.md.
func TestBloxPublished(t *testing.T) {
	w := openShared(t, "baselines/blox/inputs/C_jobs.csv", "blox")
	if len(w.Jobs) != 1365 || len(w.Bad) != 0 || len(w.Warnings) != 0 || devicesOf(w)[1] != 1365 {
		t.Fatalf("%d jobs, %v, %v", len(w.Jobs), w.Bad, w.Warnings)
	}
	if j := w.Jobs[1]; j.ID != "1" || j.Submit != 352*time.Second || j.Duration.Seconds() != 4578.832840173 {
		t.Errorf("%+v", j)
	}
	// ids and order are those of the format csv
	same := openShared(t, "baselines/blox/inputs/C_jobs.csv", "csv")
	for i, j := range w.Jobs {
		if j.ID != same.Jobs[i].ID {
			t.Fatalf("job %d is %s, and %s as csv", i, j.ID, same.Jobs[i].ID)
		}
	}
}
