package goodput

import (
	"errors"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestPlan(t *testing.T) {
	read := tables(t, "app", "yolov3", "ncf")
	limited := read.With(Adjustment{Limits: []Limit{{Model: "ncf", Devices: 1}, {Model: "yolov3", Local: 8}}})
	for _, c := range []struct {
		why            string
		tables         *Tables
		app            string
		batch, devices int
		want           string // "" = no plan
	}{
		{"what fits on each at once", read, "app", 40, 2, "dp=2,tp=1,pp=1,mb=20,ga=1"},
		{"the initial batch on one device", read, "app", 10, 1, "dp=1,tp=1,pp=1,mb=10,ga=1"},
		{"two passes on one device show the noise", read, "app", 12, 1, "dp=1,tp=1,pp=1,mb=6,ga=2"},
		{"as many passes as it takes", read, "app", 80, 1, "dp=1,tp=1,pp=1,mb=20,ga=4"},
		{"rounded up", read, "app", 41, 2, "dp=2,tp=1,pp=1,mb=11,ga=2"},
		{"but not beyond the largest batch", read, "app", 79, 3, "dp=3,tp=1,pp=1,mb=13,ga=2"},
		{"5 samples on each at least", read, "app", 40, 8, "dp=8,tp=1,pp=1,mb=5,ga=1"},
		{"no more devices than that", read, "app", 40, 9, ""},
		{"below the initial batch", read, "app", 9, 1, ""},
		{"above the largest", read, "app", 81, 2, ""},
		{"not without devices", read, "app", 40, 0, ""},
		{"another application", read, "bpp", 40, 2, ""},
		{"8 samples on each in the artifact", limited, "yolov3", 40, 2, "dp=2,tp=1,pp=1,mb=7,ga=3"},
		{"one device in the artifact", limited, "ncf", 40, 1, "dp=1,tp=1,pp=1,mb=20,ga=2"},
		{"not two", limited, "ncf", 40, 2, ""},
		{"two without it", read, "ncf", 40, 2, "dp=2,tp=1,pp=1,mb=20,ga=1"},
	} {
		p, err := c.tables.Plan(c.app, "T4", c.batch, c.devices)
		switch {
		case c.want == "" && !errors.Is(err, perfmodel.ErrNotCovered):
			t.Errorf("%s: %d on %d devices: plan %s, error %v", c.why, c.batch, c.devices, p, err)
		case c.want != "" && (err != nil || p.String() != c.want):
			t.Errorf("%s: %d on %d devices: plan %s, error %v, want %s", c.why, c.batch, c.devices, p, err, c.want)
		}
	}
}

// TestStepSec checks that accumulation adds the part of a step without reduction for
// each further micro-batch: 20 samples on each of 2+2 take 0.5+1+2+0.5 = 4 s with 1 s
// of reduction.
func TestStepSec(t *testing.T) {
	_, s, err := tables(t, "app").lookup("app", "T4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		plan string
		want float64 // 0 = not covered
	}{
		{"dp=4,mb=20", 4}, {"dp=4,mb=20,ga=3", 10}, {"dp=2,tp=2,mb=20", 0}, {"dp=8,mb=20", 0}, {"dp=4,mb=21", 0}, {"dp=4,mb=20,zero=1", 0},
	} {
		p, err := spec.ParsePlan(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.stepSec(p, spec.NewShape(2, 2))
		if got != c.want || (err == nil) != (c.want > 0) || err != nil && !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%s takes %g s, error %v, want %g", c.plan, got, err, c.want)
		}
	}
}

// TestSubmit checks that a job with a plan keeps it, and that a job without a table or
// with too many devices gets none.
func TestSubmit(t *testing.T) {
	cl := spec.Cluster{Groups: []spec.NodeGroup{{Count: 4, Devices: 4, Accelerator: spec.Accelerator{Name: "T4"}}}}
	own := spec.Plan{DP: 2, MicroBatch: 5, AccumSteps: 4}
	jobs := []spec.Job{
		{ID: "plain", Model: spec.Model{Name: "app"}, Devices: 2, GlobalBatch: 40},
		{ID: "own", Model: spec.Model{Name: "app"}, Devices: 2, GlobalBatch: 40, Plan: own},
		{ID: "other", Model: spec.Model{Name: "bpp"}, Devices: 2, GlobalBatch: 40},
		{ID: "elsewhere", Model: spec.Model{Name: "app"}, Devices: 2, GlobalBatch: 40, Accelerator: "A"},
	}
	got := tables(t, "app").Submit(jobs, cl)
	want := []spec.Plan{spec.Plan{DP: 2, MicroBatch: 20}.Normal(), own, {}, {}}
	for i, j := range got {
		if j.Plan != want[i] {
			t.Errorf("%s has plan %s, want %s", j.ID, j.Plan, want[i])
		}
	}
	if jobs[0].Plan != (spec.Plan{}) {
		t.Error("the jobs given were changed")
	}
}

func TestAdopt(t *testing.T) {
	cl := spec.Cluster{Groups: []spec.NodeGroup{{Count: 4, Devices: 4, Accelerator: spec.Accelerator{Name: "T4"}}}}
	for _, c := range []struct {
		job    spec.Job
		plan   string // "" = it cannot be one
		batch  int
		epochs float64
	}{
		{spec.Job{Devices: 2, GlobalBatch: 40, Steps: 9}, "dp=2,tp=1,pp=1,mb=20,ga=1", 40, 2},
		{spec.Job{Devices: 4, GlobalBatch: 1000, Steps: 9, Duration: 9}, "dp=4,tp=1,pp=1,mb=5,ga=1", 20, 0},
		{spec.Job{Devices: 1, Epochs: 100}, "dp=1,tp=1,pp=1,mb=10,ga=1", 10, 2},
		{spec.Job{Devices: 17}, "", 0, 0},
		{spec.Job{Devices: 1, Accelerator: "A"}, "", 0, 0},
	} {
		j := c.job
		err := tables(t, "app").Adopt(&j, "app", cl)
		if c.plan == "" {
			if !errors.Is(err, perfmodel.ErrNotCovered) {
				t.Errorf("%+v: error %v", c.job, err)
			}
			continue
		}
		if err != nil || j.Plan.String() != c.plan || j.GlobalBatch != c.batch || j.Epochs != c.epochs || j.Steps != 0 || j.Model.Name != "app" {
			t.Errorf("%+v becomes %+v, error %v", c.job, j, err)
		}
	}
}
