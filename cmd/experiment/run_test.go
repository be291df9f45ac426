package experiment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/experiment"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// unmeasured is a simulation of a job of a measured size, and of one of a size without a measurement.
func unmeasured(t *testing.T, policies string) *experiment.Simulation {
	t.Helper()
	m, err := catalog.Model("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := catalog.Cluster("1x2xA800")
	if err != nil {
		t.Fatal(err)
	}
	g := cluster.Groups[0]
	alone := spec.Config{Model: m, SeqLen: m.SeqLen, Accelerator: g.Accelerator, Link: g.Link, Plan: spec.Plan{DP: 1, MicroBatch: 4}.Normal(), Shape: spec.NewShape(1)}
	job := func(id string, submit time.Duration, devices int) spec.Job {
		return spec.Job{ID: spec.JobID(id), Submit: submit, Model: m, Plan: spec.Plan{DP: devices, MicroBatch: 4 / devices}.Normal(), Devices: devices, Steps: 100}
	}
	s, err := experiment.New(t.Context(), experiment.Options{Policy: policies, Given: experiment.Given{
		Jobs: []spec.Job{job("a", 0, 1), job("b", time.Second, 2)}, Cluster: cluster,
		Truth: experiment.Listed("table", []spec.Measurement{{Config: alone, Outcome: spec.OK, Source: "test", StepSec: []float64{1}}}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOnePolicyFails: a policy that grants an unmeasured placement ends its own run, with the reason in its result.
func TestOnePolicyFails(t *testing.T) {
	var done []string
	results, err := unmeasured(t, "fifo,gavel-las").Run(t.Context(), experiment.Hooks{Done: func(r *sim.Result) { done = append(done, r.Policy) }})
	if err != nil || len(results) != 2 || strings.Join(done, ",") != "fifo,gavel-las" {
		t.Fatal(len(results), done, err)
	}
	if !strings.Contains(results[0].Failed, "not measured") || results[1].Failed != "" || len(results[1].Jobs) != 2 {
		t.Errorf("fifo: %q, gavel-las: %q, want an error of fifo alone", results[0].Failed, results[1].Failed)
	}
	if alone, err := unmeasured(t, "fifo").Run(t.Context(), experiment.Hooks{}); err == nil || alone != nil {
		t.Errorf("the only run fails, and the error is %v", err)
	}
}
