package server

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// TestBatchAlike: a batch, over HTTP or Flight, has the same answers as its questions one by one on another server.
func TestBatchAlike(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	var qs []question
	var bodies []string
	for range 300 {
		q := question{one("llama3-8b", "llama2-7b", "llama3-70b", "mixtral-8x7b"), one("h100", "a100"), one("dp=8,zero=3", "dp=16,zero=2,recompute=full", "dp=4,tp=2", "dp=2,tp=4,recompute=selective", "dp=4,tp=2,pp=2,ga=8", "tp=7"),
			1024 * rnd.Int64N(4), 256 * rnd.Int64N(2)}
		qs = append(qs, q)
		more := ""
		if q.seq > 0 { // else the model's own length
			more = fmt.Sprintf(`,"seq":%d`, q.seq)
		}
		if q.packed > 0 {
			more += fmt.Sprintf(`,"packed":%d`, q.packed)
		}
		bodies = append(bodies, fmt.Sprintf(`{"model":%q,"accelerator":%q,"plan":%q%s}`, q.model, q.accelerator, q.plan, more))
	}
	batches, singly := newServer(t, Options{}), newServer(t, Options{})
	predict := func(s *Server, qs ...question) arrow.Record {
		out, err := (&flightService{s: s}).predict(t.Context(), questionRecord(false, qs...))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	whole := predict(batches, qs...)
	rows := post[Batch](t, batches, "/v1/predict/batch", `{"questions":[`+strings.Join(bodies, ",")+`]}`).Rows
	fit, problems := 0, 0
	for i, q := range qs {
		if alone := predict(singly, q); !array.RecordEqual(whole.NewSlice(int64(i), int64(i)+1), alone) {
			t.Fatalf("%+v: in a batch %v, alone %v", q, whole.NewSlice(int64(i), int64(i)+1), alone)
		}
		if rows[i].Problem != nil {
			problems++
			continue
		}
		if rows[i].Plan.Fits {
			fit++
		}
		if alone := post[query.Plans](t, singly, "/v1/predict", bodies[i]).Plans[0]; !reflect.DeepEqual(*rows[i].Plan, alone) {
			t.Fatalf("%+v: in a batch %+v, alone %+v", q, *rows[i].Plan, alone)
		}
	}
	if min(fit, problems, len(qs)-fit-problems) < 20 {
		t.Errorf("%d of %d fit, %d are problems: too few of a kind", fit, len(qs), problems)
	}
}
