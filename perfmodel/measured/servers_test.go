package measured

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// paramServerRow returns a measurement of an invented model with a batch of 32.
func paramServerRow(replicas, servers int, samplesPerSec float64) spec.Measurement {
	j := spec.Job{GlobalBatch: 32}
	return spec.Measurement{
		Config:  spec.Config{Model: spec.Model{Name: "m"}, Accelerator: spec.Accelerator{Name: "a"}, Plan: j.ParamServerPlan(replicas, servers)},
		Outcome: spec.OK, StepSec: []float64{32 / samplesPerSec}, Env: map[string]string{spec.EnvGlobalBatch: "32"},
	}
}

func speedOf(t *testing.T, s *Servers, replicas, servers int) float64 {
	t.Helper()
	c := paramServerRow(replicas, servers, 1).Config
	p, err := s.Predict(t.Context(), c)
	if errors.Is(err, ErrNotMeasured) && errors.Is(err, perfmodel.ErrNotCovered) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return 32 * p.Throughput / float64(c.Plan.GlobalBatch())
}

func TestServers(t *testing.T) {
	failed := paramServerRow(2, 2, 1)
	failed.Outcome, failed.StepSec = spec.Failed, nil
	rows := []spec.Measurement{paramServerRow(1, 1, 10), paramServerRow(5, 1, 30), paramServerRow(1, 5, 20), paramServerRow(1, 5, 24), failed}
	s, err := NewServers(rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		replicas, servers int
		want              float64 // 0 = refused
	}{
		{1, 1, 10}, {5, 1, 30}, {1, 5, 22}, {4, 3, 0}, {5, 5, 0}, {6, 1, 0}, {1, 6, 0}, {1, 0, 0},
	} {
		if got := speedOf(t, s, c.replicas, c.servers); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d replicas and %d servers: %g samples/s, want %g", c.replicas, c.servers, got, c.want)
		}
	}
	for _, at := range [][2]int{{2, 2}, {3, 3}, {3, 1}, {1, 3}} { // inside the triangle, or on its border
		if got := speedOf(t, s, at[0], at[1]); !(got > 10 && got < 30) {
			t.Errorf("%v: %g samples/s, want between those measured", at, got)
		}
	}
	if n := len(s.Configs()); n != 15 {
		t.Errorf("%d configurations, want the 15 of the triangle", n)
	}
	for _, c := range s.Configs() {
		if !s.Allows(c) {
			t.Errorf("%s is listed and not allowed", c.Plan)
		}
	}
	listed := ListedServers(rows)
	if got := speedOf(t, listed, 2, 2); got != 0 {
		t.Errorf("listed alone: %g samples/s where nothing was measured", got)
	}
	other := paramServerRow(1, 1, 1).Config
	other.Plan.MicroBatch = 64
	if s.Allows(other) {
		t.Error("another batch is allowed")
	}
}

func TestServersOnOneLine(t *testing.T) {
	if _, err := NewServers([]spec.Measurement{paramServerRow(1, 1, 1), paramServerRow(2, 2, 2), paramServerRow(3, 3, 3)}); err == nil {
		t.Error("three points on one line are interpolated between")
	}
}

// TestServersAsDL2 interpolates between DL2's measurements of models without failed rows, as its simulator
// does.
func TestServersAsDL2(t *testing.T) {
	byModel := map[string][]spec.Measurement{}
	readDL2(t, "data/dl2/ps_speed.csv", "speed_sum_samples_s", func(model string, w, p int, speed float64) {
		m := paramServerRow(w, p, speed)
		if speed == 0 {
			m.Outcome = spec.Failed
		}
		byModel[model] = append(byModel[model], m)
	})
	tables := map[string]*Servers{}
	for model, rows := range byModel {
		s, err := NewServers(rows)
		if err != nil {
			t.Fatal(err)
		}
		tables[model] = s
	}
	compared, worst := 0, 0.0
	readDL2(t, "baselines/dl2/speed_grid.csv", "speed_samples_s", func(model string, w, p int, want float64) {
		if model == "vgg-16" || model == "inception-bn" {
			return
		}
		if got := speedOf(t, tables[model], w, p); got > 0 {
			compared, worst = compared+1, max(worst, math.Abs(got/want-1))
		}
	})
	if compared < 800 || worst > 1e-3 {
		t.Errorf("%d points, off by %.2g at most; want 800 within 0.001", compared, worst)
	}
	if got := speedOf(t, tables["vgg-16"], 12, 13); got != 0 {
		t.Errorf("25 tasks, of which nothing was measured, make %g samples/s", got)
	}
}

// readDL2 calls each with the rows of a table of DL2.
func readDL2(t *testing.T, file, speed string, each func(model string, w, p int, speed float64)) {
	t.Helper()
	for _, r := range spectest.Table(t, file) {
		w, err1 := strconv.Atoi(r["num_workers"])
		p, err2 := strconv.Atoi(r["num_ps"])
		v, err3 := strconv.ParseFloat(r[speed], 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		each(r["model"], w, p, v)
	}
}
