package datasets

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const (
	siaPlaced = "placement,local_bsz,step_time,sync_time\n"
	siaSpread = "local_bsz,step_time,sync_time,num_nodes,num_replicas\n"
)

func TestSiaRows(t *testing.T) {
	const aws = siaPlaced + "1,4,0.5,0.01\n31,4,0.75,0.25\n"
	root := fstest.MapFS{
		"sia-simulator/traces/bert/placements-aws.csv":       file(aws),
		"sia-simulator/traces/bert/placements.csv":           file(aws), // repeats the one of aws
		"sia-simulator/traces/bert/validation-12.csv":        file("progress,iteration\n1,1\n"),
		"sia-simulator/traces/imagenet/scalability-dgx.csv":  file(siaSpread + "20.0,0.25,0.125,2,5\n"),
		"sia-simulator/traces/ncf/placements.csv":            file(siaPlaced + "4,32,0.5,0\n"), // without one of aws
		"sia-simulator/traces/gpt_pmp/placements-rtx.csv":    file(siaPlaced + "8,1,0.2,3\n8,2,0.3,3\n"),
		"sia-simulator/workloads/philly/workload-1.csv":      file("name,time\n"),
		"sia-simulator/traces/yolov3/placements-azure.csv":   file(siaPlaced),
		"sia-simulator/traces/cifar10/scalability-quad.csv":  file(siaSpread + "32,0.5,0.25,1,4\n"),
		"sia-simulator/traces/deepspeech2/placements-rt.csv": file(siaPlaced + "1,1,1,0\n"),
	}
	ms, bad := collect(t, "sia", root)
	type got struct {
		Model, Acc, Plan, Shape, Source, Origin string
		Step, Sync                              float64
	}
	want := []got{
		{"bert", "T4", "dp=1,tp=1,pp=1,mb=4,ga=1", "1", "sia/aws", "bert/placements-aws.csv:2", 0.5, 0.01},
		{"bert", "T4", "dp=4,tp=1,pp=1,mb=4,ga=1", "3+1", "sia/aws", "bert/placements-aws.csv:3", 0.75, 0.25},
		{"cifar10", "RTX6000", "dp=4,tp=1,pp=1,mb=32,ga=1", "4", "sia/quad", "cifar10/scalability-quad.csv:2", 0.5, 0.25},
		{"imagenet", "A100-40GB-SXM", "dp=5,tp=1,pp=1,mb=20,ga=1", "3+2", "sia/dgx", "imagenet/scalability-dgx.csv:2", 0.25, 0.125},
		{"ncf", "T4", "dp=4,tp=1,pp=1,mb=32,ga=1", "4", "sia/aws", "ncf/placements.csv:2", 0.5, 0},
	}
	var have []got
	for _, m := range ms {
		c := m.Config
		if c.Framework != "adaptdl" || c.Model.Kind != spec.Opaque || c.Link.InterBps == 0 {
			t.Errorf("%s: framework %q, kind %q, link %+v", m.Origin, c.Framework, c.Model.Kind, c.Link)
		}
		have = append(have, got{c.Model.Name, c.Accelerator.Name, c.Plan.String(), c.Shape.Devices, m.Source,
			strings.TrimPrefix(m.Origin, "sia-simulator/traces/"), m.MedianStepSec(), m.PhaseSec["sync"]})
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	if len(bad) != 2 || !strings.Contains(bad[0].Error(), `suffix "rt"`) || !errors.Is(bad[1], ErrNotMeasurable) {
		t.Errorf("faults %v", bad)
	}
}

func TestSiaNamesWhatIsWrong(t *testing.T) {
	for row, want := range map[string]string{
		"5,4,1,0":  `traces/bert/placements-aws.csv:2: placement "5": has more than the node's 4 devices`,
		"10,4,1,0": `placement "10": has a node with no devices`,
		"1,0,1,0":  `local_bsz "0": is missing or 0`,
		"1,4,0,0":  `step_time "0": is not between 0 and a year`,
		"1,4,,0":   `step_time "": is not between`,
		"1,4,1,2":  `sync_time "2": is more than the step`,
		"1,4,1,-1": `sync_time "-1": is negative`,
	} {
		_, bad := collect(t, "sia", fstest.MapFS{"traces/bert/placements-aws.csv": file(siaPlaced + row)})
		if len(bad) != 1 || !strings.Contains(bad[0].Error(), want) {
			t.Errorf("%s: %v, want %s", row, bad, want)
		}
	}
	_, bad := collect(t, "sia", fstest.MapFS{"traces/bert/scalability-aws.csv": file(siaSpread + "4,1,0,2,9\n4,1,0,3,2\n")})
	if len(bad) != 2 || !strings.Contains(bad[0].Error(), "cannot be spread over 2 nodes") {
		t.Errorf("%v", bad)
	}
	_, bad = collect(t, "sia", fstest.MapFS{"traces/gpt5/placements-aws.csv": file(siaPlaced + "1,1,1,0")})
	if len(bad) != 1 || !strings.Contains(bad[0].Error(), `folder "gpt5": is not a model of the data set`) {
		t.Errorf("%v", bad)
	}
}

// The folder of models is enough, without the rest of the repository.
func TestSiaTracesFolder(t *testing.T) {
	ms, bad := collect(t, "sia", fstest.MapFS{
		"bert/placements-rtx.csv":  file(siaPlaced + "8,4,1,0.5"),
		"bert/scalability-rtx.csv": file(siaSpread + "4,1,0.5,2,9"),
	})
	if len(ms) != 2 || len(bad) != 0 || ms[1].Config.Shape.Devices != "5+4" {
		t.Errorf("%v, %v", ms, bad)
	}
}

// TestSiaPublished reads the whole data set; the counts are its files' lines.
func TestSiaPublished(t *testing.T) {
	ms, bad := collect(t, "sia", os.DirFS(spectest.Shared(t)+"/data/sia"))
	by := map[string]int{}
	for _, m := range ms {
		by[m.Source]++
		if n := m.Config.Shape.Total(); n != m.Config.Plan.DP {
			t.Errorf("%s: %d devices placed, dp=%d", m.Origin, n, m.Config.Plan.DP)
		}
	}
	want := map[string]int{"sia/aws": 7103, "sia/azure": 4405, "sia/dgx": 2792, "sia/dgx-ext": 5124, "sia/quad": 520, "sia/rtx": 3360}
	if d := cmp.Diff(want, by); d != "" {
		t.Error(d)
	}
	if len(bad) != 4 {
		t.Errorf("faults %v, want the four tables of pipeline stages", bad)
	}
}
