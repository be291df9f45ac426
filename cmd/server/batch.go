package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// BatchRequest asks about many plans.
type BatchRequest struct {
	Questions []answer.PredictRequest `json:"questions" minItems:"1" maxItems:"10000"`
}

// Batch answers a BatchRequest, a row per question in its order.
type Batch struct {
	Rows     []BatchRow `json:"rows"`
	ElapsedS float64    `json:"elapsed_s"`

	text []byte // the JSON, which the server writes in place of encoding it
}

// AppendJSON returns the text, which has no copy.
func (b Batch) AppendJSON([]byte) ([]byte, error) { return b.text, nil }

// BatchRow is a prediction, or why there is none.
type BatchRow struct {
	Plan    *query.PlanRow   `json:"plan,omitempty"`
	Launch  *query.Launch    `json:"launch,omitempty" doc:"Files that start the plan, with emit."`
	Problem *problem.Problem `json:"problem,omitempty"`
}

// jsonFormat is that of huma, but for answers with a quicker one of their own.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		quick, ok := v.(interface{ AppendJSON([]byte) ([]byte, error) })
		if !ok {
			return huma.DefaultJSONFormat.Marshal(w, v)
		}
		text, err := quick.AppendJSON(nil)
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		return err
	},
	Unmarshal: huma.DefaultJSONFormat.Unmarshal,
}

// rowsPerPiece is the number of rows of a batch that a core answers at a time.
const rowsPerPiece = 128

// batch returns the JSON of a Batch of so many rows, which it answers on all cores. row appends one to b.
func (s *Server) batch(ctx context.Context, start time.Time, rows int, row func(b []byte, i int) ([]byte, error)) ([]byte, error) {
	pieces := make([]*bytes.Buffer, (rows+rowsPerPiece-1)/rowsPerPiece)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for p := int(next.Add(1)) - 1; p < len(pieces) && ctx.Err() == nil; p = int(next.Add(1)) - 1 {
				pieces[p] = s.piece(ctx, p*rowsPerPiece, min((p+1)*rowsPerPiece, rows), row)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return joinRows(pieces, time.Since(start).Seconds()), nil
}

// prepare looks up the plans of a batch.
func (s *Server) prepare(ctx context.Context, plans []answer.Question) (out []*answer.Prepared, err error) {
	b := s.models.NewBatch(nil)
	for i := range plans {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(out, b.PrepareRows(ctx, &plans[i]))
	}
	return out, nil
}

// piece returns the rows from..to of the JSON of a Batch, each after a comma.
func (s *Server) piece(ctx context.Context, from, to int, row func(b []byte, i int) ([]byte, error)) *bytes.Buffer {
	out := piecesOfRows.Get().(*bytes.Buffer)
	for i := from; i < to; i++ {
		out.WriteByte(',')
		out.Write(s.appendRow(ctx, out.AvailableBuffer(), i, row))
	}
	return out
}

// piecesOfRows are buffers of finished batches.
var piecesOfRows = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// appendRow appends row i to b, which is empty, or the problem of its error or panic.
func (s *Server) appendRow(ctx context.Context, b []byte, i int, row func(b []byte, i int) ([]byte, error)) (out []byte) {
	defer func() { // net/http does not recover panics of other goroutines
		if v := recover(); v != nil {
			s.metrics.panics.Inc()
			s.o.Log.Error("panic", "id", requestOf(ctx).id, "path", "/v1/predict/batch", "value", fmt.Sprint(v), "stack", string(debug.Stack()))
			out, _ = query.AppendJSON(b, BatchRow{Problem: problem.New(http.StatusInternalServerError, "", "an internal error, which was logged")})
		}
	}()
	out, err := row(b, i)
	if err == nil {
		return out
	}
	if out, err = query.AppendJSON(b, BatchRow{Problem: s.rowProblem(ctx, "/v1/predict/batch", err)}); err != nil {
		panic(err)
	}
	return out
}

// rowProblem returns the problem of a row of a batch, and logs one that is the server's.
func (s *Server) rowProblem(ctx context.Context, path string, err error) *problem.Problem {
	p := problem.Of(err)
	if p.Status == http.StatusInternalServerError {
		s.o.Log.Error("row failed", "id", requestOf(ctx).id, "path", path, "error", err)
	}
	problem.Shorten(&p.ErrorModel)
	return p
}

// appendAnswer appends the row of any question.
func (s *Server) appendAnswer(ctx context.Context, b []byte, q *answer.PredictRequest) ([]byte, error) {
	row, begin, err := s.models.PredictRow(ctx, q)
	if err != nil {
		return b, err
	}
	return query.AppendJSON(b, BatchRow{Plan: &row, Launch: begin})
}

// joinRows returns the JSON of a Batch, and frees its pieces.
func joinRows(pieces []*bytes.Buffer, elapsed float64) []byte {
	const before, between, after = `{"rows":[`, `],"elapsed_s":`, "}"
	size := len(before) + len(between) + 32 + len(after) + 1 // of the end of the line
	for _, p := range pieces {
		size += p.Len()
	}
	out := append(make([]byte, 0, size), before...)
	for i, p := range pieces {
		if i == 0 {
			p.Next(1) // the comma
		}
		out = append(out, p.Bytes()...)
		p.Reset()
		piecesOfRows.Put(p)
	}
	out = query.AppendNumber(append(out, between...), elapsed)
	return append(out, after...)
}
