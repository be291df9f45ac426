package experiment

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// namesOfLlama are names of one model: two of the catalog, and how another organization publishes it.
var namesOfLlama = []string{"Llama3-8B", "llama3-8b", "meta-llama/Meta-Llama-3-8B"}

// TestFittedByAnyName: a fitted model predicts for jobs that name the model otherwise than its rows, also if
// its family predicts without a fit.
func TestFittedByAnyName(t *testing.T) {
	for _, name := range []string{"rubick", "hybrid"} {
		fam, err := family.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, stored := range namesOfLlama {
			checkFitted(t, fam, stored)
		}
	}
}

// TestFittedNeedsAFit: a family that predicts nothing before a fit, and has none, is an error; others predict.
func TestFittedNeedsAFit(t *testing.T) {
	reg, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []Data{{}, {Fitted: func() (*registry.Registry, error) { return reg, nil }}} {
		s := &Simulation{options: Options{Data: data}}
		if p, err := s.fittedPredictor("truth", "rubick"); p != nil || err == nil || !strings.Contains(err.Error(), "no rubick model is fitted yet") {
			t.Errorf("rubick: %v, %v", p, err)
		}
		if p, err := s.fittedPredictor("truth", "analytic"); p == nil || err != nil {
			t.Errorf("analytic: %v, %v", p, err)
		}
	}
}

// checkFitted fits a family to rows of Llama3-8B under one of its names, and predicts by each of its names.
func checkFitted(t *testing.T, fam perfmodel.Family, stored string) {
	t.Helper()
	reg, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOfLlama(t, stored)
	fitted, card, err := perfmodel.FitKey(t.Context(), fam, rows, perfmodel.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.Put(card, fitted); err != nil {
		t.Fatal(err)
	}
	s := &Simulation{options: Options{Data: Data{Fitted: func() (*registry.Registry, error) { return reg, nil }}}}
	p, err := s.fittedPredictor("truth", fam.Name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := fitted.Predict(t.Context(), rows[0].Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range namesOfLlama {
		c := rows[0].Config
		c.Model.Name = name
		if got, err := p.Predict(t.Context(), c); err != nil || got.Throughput != want.Throughput {
			t.Errorf("%s fitted to %s: %s has %g samples/s, %v, want %g", fam.Name, stored, name, got.Throughput, err, want.Throughput)
		}
	}
}

// rowsOfLlama returns invented rows of Llama3-8B under a name.
func rowsOfLlama(t *testing.T, name string) (out []spec.Measurement) {
	t.Helper()
	m, a := querytest.Named(t, "llama3-8b", "h100")
	m.Name = name
	for dp := 1; dp <= 4; dp++ {
		c := spec.Config{Model: m, SeqLen: 2048, Accelerator: a, Plan: spec.Plan{DP: dp, MicroBatch: 2}.Normal(), Shape: spec.NewShape(dp)}
		out = append(out, spec.Measurement{Config: c, Outcome: spec.OK, Source: "test", StepSec: []float64{1 + 0.1*float64(dp)}})
	}
	return out
}

// TestTableByAnyName: jobs and the substitute may name models otherwise than the table. A model that the table
// lacks stays unknown.
func TestTableByAnyName(t *testing.T) {
	s := &Simulation{truth: &Source{Name: "table"}, Cluster: clusterOfH100(t)}
	s.truth.setTable(measured.New(rowsOfLlama(t, "meta-llama/Meta-Llama-3-8B")))
	jobs := []spec.Job{
		{ID: "1", Model: spec.Model{Name: "Llama3-8B"}, Devices: 1},
		{ID: "2", Model: spec.Model{Name: "llama3-8b"}, Devices: 1},
	}
	got, err := s.substitute(t.Context(), jobs)
	if err != nil || len(s.Notes) > 0 {
		t.Fatalf("%v, notes %q", err, s.Notes)
	}
	for i := range got {
		if got[i].Model.Name != "meta-llama/Meta-Llama-3-8B" {
			t.Errorf("%s becomes %s", jobs[i].Model.Name, got[i].Model.Name)
		}
	}
	jobs = append(jobs, spec.Job{ID: "3", Model: spec.Model{Name: "Llama2-7B"}, Devices: 1})
	if _, err := s.substitute(t.Context(), jobs); err == nil || !strings.Contains(err.Error(), "no measurement of Llama2-7B (1 job)") {
		t.Errorf("a job of another model: %v", err)
	}
	s.options.Substitute = "llama3-8b"
	if got, err = s.substitute(t.Context(), jobs); err != nil || got[2].Model.Name != "meta-llama/Meta-Llama-3-8B" {
		t.Errorf("with a substitute: %+v, %v", got, err)
	}
}

func clusterOfH100(t *testing.T) spec.Cluster {
	t.Helper()
	cl, err := (&Options{Cluster: "1x4xH100"}).cluster()
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// TestProfileByAnyName: a belief that learns begins with the stored rows of all names of a job's model.
func TestProfileByAnyName(t *testing.T) {
	l, err := parseLearning("rubick")
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.Concat(rowsOfLlama(t, "llama3-8b")[:2], rowsOfLlama(t, "meta-llama/Meta-Llama-3-8B")[2:], rowsOfLlama(t, "Llama2-7B"))
	s := &Simulation{Jobs: []spec.Job{{Model: spec.Model{Name: "Llama3-8B"}}}, Cluster: clusterOfH100(t), options: Options{
		Data: Data{Rows: func(context.Context, store.Filter) ([]spec.Measurement, error) { return rows, nil }},
		Warn: func(w Warning) { t.Errorf("warns %+v", w) },
	}}
	want, _, err := perfmodel.Split(l.family, rowsOfLlama(t, "Llama3-8B"), l.points)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.profile(t.Context(), s); err != nil || !reflect.DeepEqual(l.rows, want) {
		t.Errorf("profiled %+v, %v, want %+v", l.rows, err, want)
	}
	if rows[0].Config.Model.Name != "llama3-8b" {
		t.Error("the stored rows have changed")
	}
}
