package server

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/nextplans"
	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// Small questions are short searches, large ones long.
func TestCostTellsShortFromLong(t *testing.T) {
	plan := func(devices, batch int) answer.PlanRequest {
		return answer.PlanRequest{Devices: devices, Request: of(batch)}
	}
	wide := plan(512, 512)
	wide.Objective, wide.MinDevices = "cost", 1
	front := plan(5040, 5040)
	front.Pareto = true
	for _, c := range []struct {
		in   any
		long bool
	}{
		{&body[answer.PlanRequest]{plan(8, 8)}, false}, {&body[answer.PlanRequest]{plan(512, 512)}, false}, {&body[answer.PlanRequest]{wide}, true}, {&body[answer.PlanRequest]{front}, true},
		{&body[answer.CurveRequest]{answer.CurveRequest{MaxDevices: 64, Request: of(64)}}, false}, {&body[answer.CurveRequest]{answer.CurveRequest{MaxDevices: 4096, Request: of(4096)}}, true},
		{&body[BatchRequest]{BatchRequest{Questions: make([]answer.PredictRequest, 10)}}, false}, {&body[BatchRequest]{BatchRequest{Questions: make([]answer.PredictRequest, 10000)}}, true},
		{&body[nextplans.CalibrateNextRequest]{nextplans.CalibrateNextRequest{Devices: 1}}, true}, {&body[nextplans.CalibrateNextRequest]{}, true},
		{&body[answer.PredictRequest]{}, false}, {&body[answer.PlanRequest]{plan(-1, -1)}, false}, {&body[answer.PlanRequest]{plan(1<<62, 1<<62)}, true},
	} {
		if cost := costOf(c.in); (cost > shortSearch) != c.long || cost < 0 {
			t.Errorf("%T: %g s, want long %v", c.in, cost, c.long)
		}
	}
}

func of(batch int) query.Request { return query.Request{GlobalBatch: batch} }

// processorTime is that of the process so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSearchCost compares the estimated time of searches with the measured one.
func BenchmarkSearchCost(b *testing.B) {
	const known = `{"model":"llama3-8b","accelerator":"h100","global_batch":`
	for _, c := range []struct {
		name, path, body string
		cost             float64
	}{
		{"plan/devices=8", "/v1/plan", known + `%d,"devices":8}`, costOf(&body[answer.PlanRequest]{answer.PlanRequest{Devices: 8, Request: of(512)}})},
		{"plan/devices=512", "/v1/plan", known + `%d,"devices":512}`, costOf(&body[answer.PlanRequest]{answer.PlanRequest{Devices: 512, Request: of(512)}})},
		{"plan/devices=5040", "/v1/plan", known + `%d,"devices":5040}`, costOf(&body[answer.PlanRequest]{answer.PlanRequest{Devices: 5040, Request: of(512)}})},
		{"fit-check/devices=512", "/v1/fit-check", known + `%d,"devices":512}`, costOf(&body[answer.FitCheckRequest]{answer.FitCheckRequest{Devices: 512, Request: of(512)}})},
		{"calibrate-next/devices=16", "/v1/calibrate-next", known + `%d,"devices":16}`, costOf(&body[nextplans.CalibrateNextRequest]{nextplans.CalibrateNextRequest{Devices: 16, Request: of(512)}})},
		{"curve/devices=64", "/v1/curve", known + `%d,"max_devices":64}`, costOf(&body[answer.CurveRequest]{answer.CurveRequest{MaxDevices: 64, Request: of(512)}})},
		{"curve/devices=2048", "/v1/curve", known + `%d,"max_devices":2048}`, costOf(&body[answer.CurveRequest]{answer.CurveRequest{MaxDevices: 2048, Request: of(512)}})},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newServer(b, Options{})
			n := 0
			do(s, http.MethodPost, c.path, fmt.Sprintf(c.body, 8)) // reads the catalog
			before := processorTime()
			for b.Loop() {
				n++
				if w := do(s, http.MethodPost, c.path, fmt.Sprintf(c.body, 512*n)); w.Code != http.StatusOK && w.Code != http.StatusUnprocessableEntity {
					b.Fatal(w.Code, w.Body)
				}
			}
			b.ReportMetric(float64(processorTime()-before)/float64(n), "cpu-ns/op")
			b.ReportMetric(c.cost*1e9, "estimated-ns/op")
		})
	}
}
