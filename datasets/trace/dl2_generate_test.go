package trace

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func TestGenerateDL2(t *testing.T) {
	for _, arrivals := range dl2Arrivals {
		o, err := ParseDL2Options("small,jobs=200,arrivals=" + arrivals)
		if err != nil {
			t.Fatal(err)
		}
		o.Seed = 7
		jobs, err := GenerateDL2(o)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := GenerateDL2(o)
		fewer := o
		fewer.Jobs = 50
		first, _ := GenerateDL2(fewer)
		if len(jobs) != 200 || !reflect.DeepEqual(jobs, again) || !reflect.DeepEqual(jobs[:50], first) {
			t.Errorf("%s: %d jobs, not the same from the same seed, or others before more", arrivals, len(jobs))
		}
		o.Seed = 8
		if other, _ := GenerateDL2(o); reflect.DeepEqual(jobs, other) {
			t.Errorf("%s: another seed gives the same jobs", arrivals)
		}
		perSlot, types := map[time.Duration]int{}, map[string]bool{}
		for i := range jobs {
			j := &jobs[i]
			if err := j.Validate(); err != nil || !j.HasParamServers() || j.Submit%dl2Slot != 0 {
				t.Fatalf("%s: job %s at %v: %v", arrivals, j.ID, j.Submit, err)
			}
			perSlot[j.Submit]++
			types[j.Model.Name] = true
		}
		most, full := 0, 0
		for _, n := range perSlot {
			if most = max(most, n); n == o.PerSlot {
				full++
			}
		}
		if most > o.PerSlot || len(types) != len(dl2Types) || (arrivals == "uniform") != (full >= len(perSlot)-1) {
			t.Errorf("%s: %d in a slot, %d slots of %d full, %d types", arrivals, most, full, len(perSlot), len(types))
		}
	}
}

func TestDL2OptionsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "no workload dl2=", "tiny": "no workload dl2=tiny", "small,jobs=-1": "-1 jobs", "small,jobs=x": "jobs=x", "small,epochs=0": "0 epochs",
		"small,slot-s=NaN": "slots of", "small,arrivals=alibaba": `arrivals "alibaba"`, "small,nodes=3": "want one of jobs, per-slot",
	} {
		if _, err := ParseDL2Options(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestReadDL2Jobs reads a published trace.
func TestReadDL2Jobs(t *testing.T) {
	path := filepath.Join(spectest.Shared(t), "baselines/dl2/jobs.csv")
	w, err := Open(t.Context(), path, "dl2=testbed-Uniform-real/0")
	if err != nil || len(w.Jobs) != 10 || len(w.Bad) != 0 || len(w.Warnings) != 0 {
		t.Fatalf("%d jobs, %v, %v, %v", len(w.Jobs), w.Bad, w.Warnings, err)
	}
	j := w.Jobs[5] // 1,6,cnn-text-classification,460
	want := spec.Job{
		ID: "6", Submit: 5 * time.Minute, Model: spec.Model{Name: "cnn-text-classification", Kind: spec.Opaque}, GlobalBatch: 50,
		Host: spec.Host{MilliCPUs: 2000}, ServerHost: spec.Host{MilliCPUs: 2000}, Steps: 460 * 193.0 / 50,
		Plan: spec.Plan{DP: 1, ParamServers: 1, MicroBatch: 50}.Normal(),
	}
	if !reflect.DeepEqual(j, want) {
		t.Errorf("%+v, want %+v", j, want)
	}
	if w, err = Open(t.Context(), path, "dl2=small-e3000-Poisson-real/9"); err != nil || len(w.Jobs) != 60 || w.Jobs[59].Submit%dl2Slot != 0 {
		t.Errorf("%d jobs, %v", len(w.Jobs), err)
	}
}
