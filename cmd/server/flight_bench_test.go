package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// distinctQuestions returns the questions of a batch that benchmarks ask: 48 plans for many lengths of samples, or as many
// plans as questions.
func distinctQuestions(manyPlans bool) (qs []question) {
	models := []string{"llama3-8b", "llama2-7b", "llama2-13b", "llama3-70b"}
	plans := []string{"dp=8,zero=3", "dp=16,zero=2,recompute=full", "dp=8,tp=2,zero=1", "dp=4,tp=4,zero=1,recompute=selective", "dp=2,tp=8", "dp=4,tp=2,pp=4,ga=8"}
	for i := range maxBatch {
		plan, seq := plans[i/8%6], int64(1024+64*(i/48))
		if manyPlans {
			plan, seq = fmt.Sprintf("dp=%d,tp=%d,mb=%d,ga=%d,zero=1", 1<<(i/8%4), 1<<(i/32%4), 1+i/128%10, 1+i/1280), 4096
		}
		qs = append(qs, question{models[i%4], []string{"h100", "a100"}[i/4%2], plan, seq, 0})
	}
	return qs
}

// benchmarkQuestions measures the time of the processor of a distinct question of a batch.
func benchmarkQuestions(b *testing.B, prepare func(b *testing.B, s *Server, qs []question) (ask func() error)) {
	for name, manyPlans := range map[string]bool{"questions=lengths": false, "questions=plans": true} {
		b.Run(name, func(b *testing.B) {
			ask := prepare(b, newServer(b, Options{}), distinctQuestions(manyPlans))
			b.ReportAllocs()
			b.ResetTimer()
			start := processorTime()
			for range b.N {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(processorTime()-start)/float64(b.N)/maxBatch, "cpu-ns/question")
		})
	}
}

// BenchmarkBatch is the cost of a distinct question of 10000 over HTTP, without a connection.
func BenchmarkBatch(b *testing.B) {
	benchmarkQuestions(b, func(_ *testing.B, s *Server, qs []question) func() error {
		var text []byte
		for _, q := range qs {
			text = fmt.Appendf(text, `,{"model":%q,"accelerator":%q,"plan":%q,"seq":%d}`, q.model, q.accelerator, q.plan, q.seq)
		}
		body := fmt.Appendf(nil, `{"questions":[%s]}`, text[1:])
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/predict/batch", nil)
		r.Header.Set("Content-Type", "application/json")
		return func() error {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			w := sink{header: http.Header{}}
			if s.Handler().ServeHTTP(&w, r); w.status > 200 || w.n == 0 {
				return fmt.Errorf("status %d", w.status)
			}
			return nil
		}
	})
}

// BenchmarkFlightPredict is the cost of a distinct question of a record batch of 10000, without a connection.
func BenchmarkFlightPredict(b *testing.B) {
	benchmarkQuestions(b, func(b *testing.B, s *Server, qs []question) func() error {
		f, rec := &flightService{s: s}, questionRecord(false, qs...)
		return func() error {
			out, err := f.predict(b.Context(), rec)
			if err == nil {
				out.Release()
			}
			return err
		}
	})
}

// BenchmarkFlightGet is the cost of a distinct row of an export, without a connection.
func BenchmarkFlightGet(b *testing.B) {
	const rows = 20000
	s := newServer(b, Options{})
	m, a := querytest.Named(b, "llama3-8b", "h100")
	node := query.NodeOf(a)
	var batch []spec.Measurement
	for i := range rows {
		plan := spec.Plan{DP: 8, TP: 1 + i%2, PP: 1, MicroBatch: 1 + i%7, AccumSteps: 1 + i%64, ZeRO: i % 4, Precision: "bf16"}
		batch = append(batch, spec.Measurement{Config: spec.Config{Model: m, SeqLen: 1024 + i%8192, Plan: plan, Accelerator: a, Shape: spec.Packed(plan.Devices(), 8), Link: node.Link, Framework: "FSDP"},
			Outcome: spec.OK, StepSec: []float64{1 + float64(i)/rows, 1.01, 1.02}, PeakBytes: 1e9 * float64(1+i), Source: fmt.Sprintf("lab-%d", i%10), Origin: fmt.Sprintf("run %d", i)})
		if len(batch) == 5000 {
			if _, err := s.db.PutAll(b.Context(), batch...); err != nil {
				b.Fatal(err)
			}
			batch = nil
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	start := processorTime()
	for range b.N {
		n, err := s.db.Batches(b.Context(), func(rec arrow.Record) error { _, err := fmt.Fprint(io.Discard, rec.NumRows()); return err }, flightRows, store.Filter{})
		if n != rows || err != nil {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(processorTime()-start)/float64(b.N)/rows, "cpu-ns/row")
}
