package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

func of(batch int) query.Request { return query.Request{GlobalBatch: batch} }

// BenchmarkSearchCost compares the estimated time of searches with the measured one.
func BenchmarkSearchCost(b *testing.B) {
	const known = `{"model":"llama3-8b","accelerator":"h100","global_batch":`
	for _, c := range []struct {
		name, path, body string
		cost             float64
	}{
		{"plan/devices=8", "/v1/plan", known + `%d,"devices":8}`, costOf(&body[PlanRequest]{PlanRequest{Devices: 8, Request: of(512)}})},
		{"plan/devices=512", "/v1/plan", known + `%d,"devices":512}`, costOf(&body[PlanRequest]{PlanRequest{Devices: 512, Request: of(512)}})},
		{"plan/devices=5040", "/v1/plan", known + `%d,"devices":5040}`, costOf(&body[PlanRequest]{PlanRequest{Devices: 5040, Request: of(512)}})},
		{"curve/devices=64", "/v1/curve", known + `%d,"max_devices":64}`, costOf(&body[CurveRequest]{CurveRequest{MaxDevices: 64, Request: of(512)}})},
		{"curve/devices=2048", "/v1/curve", known + `%d,"max_devices":2048}`, costOf(&body[CurveRequest]{CurveRequest{MaxDevices: 2048, Request: of(512)}})},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newServer(b, Options{})
			n := 0
			for b.Loop() {
				n++
				if w := do(s, http.MethodPost, c.path, fmt.Sprintf(c.body, 512*n)); w.Code != http.StatusOK && w.Code != http.StatusUnprocessableEntity {
					b.Fatal(w.Code, w.Body)
				}
			}
			b.ReportMetric(c.cost*1e9, "estimated-ns/op")
		})
	}
}
