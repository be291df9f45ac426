package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const dl2Head = "model,sync,batch_size,num_ps,num_workers,speed_sum_samples_s\n"

func TestDL2Rows(t *testing.T) {
	ms, bad := collect(t, "dl2", fstest.MapFS{
		"ps_speed.csv":           file(dl2Head + "net,dist_sync,32,2,4,16\nnet,dist_sync,32,2,5,16\nother,dist_sync,32,1,1,0\n"),
		"model_measurements.csv": file("model,model_size_mb\nnet,102.2\nother,much\n"),
	})
	if len(bad) != 0 || len(ms) != 3 {
		t.Fatalf("%d rows and faults %v, want 3 and none", len(ms), bad)
	}
	for i, want := range []string{"dp=4,tp=1,pp=1,ps=2,mb=8,ga=1", "dp=5,tp=1,pp=1,ps=2,mb=7,ga=1", "dp=1,tp=1,pp=1,ps=1,mb=32,ga=1"} {
		m := ms[i]
		if got := m.Config.Plan.String(); got != want {
			t.Errorf("row %d: plan %s, want %s", i, got, want)
		}
		if m.Env["global_batch"] != "32" || m.Config.Accelerator.Name != "GTX1080Ti" {
			t.Errorf("row %d: %v on %s", i, m.Env, m.Config.Accelerator.Name)
		}
		if err := m.Config.Check(); err != nil {
			t.Error(err)
		}
	}
	for i, m := range ms[:2] {
		if m.Outcome != spec.OK || m.MedianStepSec() != 2 || m.Config.Model.ParamCount != 25_550_000 {
			t.Errorf("row %d: %s after %g s, %g parameters, want 2 s and 25.55e6", i, m.Outcome, m.MedianStepSec(), m.Config.Model.ParamCount)
		}
	}
	if m := ms[2]; m.Outcome != spec.Failed || m.Reason == "" || m.Config.Model.ParamCount != 0 {
		t.Errorf("speed 0: %s (%s), %g parameters", m.Outcome, m.Reason, m.Config.Model.ParamCount)
	}
}

func TestDL2NamesWhatIsWrong(t *testing.T) {
	for row, want := range map[string]string{
		",dist_sync,32,1,1,5":       `ps_speed.csv:2: model "": is missing`,
		"net,dist_sync,32,0,1,5":    `num_ps "0": is missing or 0`,
		"net,dist_sync,32,1,1.5,5":  `num_workers "1.5": is not a whole number`,
		"net,dist_sync,32,1,1,-5":   `speed_sum_samples_s "-5": is negative`,
		"net,dist_sync,32,1,1,":     `speed_sum_samples_s "": is missing`,
		"net,dist_async,32,1,1,5":   `sync "dist_async": is not dist_sync`,
		"net,dist_sync,32,1,1,1e-9": `speed_sum_samples_s "1e-9": is too small`,
	} {
		_, bad := collect(t, "dl2", fstest.MapFS{"ps_speed.csv": file(dl2Head + row)})
		if len(bad) != 1 || !strings.Contains(bad[0].Error(), want) {
			t.Errorf("%s: %v, want %s", row, bad, want)
		}
	}
}

// TestDL2Published reads the whole data set: 804 points, nine of them failed.
func TestDL2Published(t *testing.T) {
	ms, bad := collect(t, "dl2", os.DirFS(spectest.Shared(t)+"/data/dl2"))
	failed := map[string]int{}
	for _, m := range ms {
		if m.Outcome == spec.Failed {
			failed[m.Config.Model.Name]++
		}
		if m.Config.Model.ParamCount == 0 {
			t.Errorf("%s: %s without parameters", m.Origin, m.Config.Model.Name)
		}
	}
	if len(ms) != 804 || len(bad) != 0 || failed["vgg-16"] != 8 || failed["inception-bn"] != 1 || len(failed) != 2 {
		t.Errorf("%d rows, faults %v, failed %v", len(ms), bad, failed)
	}
}

// TestReadDL2Speeds distinguishes measured speeds from the table of a simulator.
func TestReadDL2Speeds(t *testing.T) {
	dir := spectest.Shared(t)
	for path, want := range map[string]string{
		"data/dl2": "804 rows, 9 failed, listed false", "data/dl2/ps_speed.csv": "804 rows, 9 failed, listed false",
		"baselines/dl2/speed_grid.csv": "2312 rows, 9 failed, listed true",
	} {
		s, err := ReadDL2Speeds(t.Context(), filepath.Join(dir, path))
		if err != nil || len(s.Bad) > 0 {
			t.Fatal(err, s.Bad)
		}
		failed := 0
		for _, m := range s.Rows {
			if m.Outcome == spec.Failed {
				failed++
			}
		}
		if got := fmt.Sprintf("%d rows, %d failed, listed %v", len(s.Rows), failed, s.Listed); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
