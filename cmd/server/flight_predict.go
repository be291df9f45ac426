package server

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/server/batches"
	"github.com/pacer-ml/pacer/planner"
)

// DoExchange implements flight.FlightServer: it answers each record batch of questions with one of predictions.
func (f *flightService) DoExchange(stream flight.FlightService_DoExchangeServer) error {
	in, err := newRecordReader(stream, f.s.o.MaxBody, nil)
	if err != nil {
		return err
	}
	defer in.release()
	if d := in.reader.LatestFlightDescriptor(); pathOf(d) != flightPredict {
		return noFlight(d)
	}
	w := batches.NewWriter(stream, batches.Schema)
	defer w.Close()
	for i := 0; ; i++ {
		rec, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out, err := f.predict(stream.Context(), rec)
		if err != nil {
			return inBatch(i, err)
		}
		err = w.Write(out)
		out.Release()
		if err != nil {
			return err
		}
	}
}

// predict answers one record batch.
func (f *flightService) predict(ctx context.Context, rec arrow.Record) (arrow.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, f.s.o.Timeout)
	defer cancel()
	q, err := batches.Read(rec)
	if err != nil {
		return nil, err
	}
	return admitted(ctx, f.s, search, questionSec*float64(q.Rows), func() (arrow.Record, error) {
		b := batches.NewPredictions(q.Rows)
		batch := f.s.models.NewBatch(batches.CheckTexts)
		plans, key := map[string]*answer.Prepared{}, []byte(nil)
		var choice planner.Choice
		for row := range q.Rows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if key, err = q.AppendPlan(key[:0], row); err != nil {
				b.Fail(f.s.rowProblem(ctx, flightPredict, err))
				continue
			}
			p, ok := plans[string(key)]
			if !ok {
				of := q.Row(row).PlanOnly()
				p = batch.Prepare(ctx, &of)
				plans[string(key)] = p
			}
			if err := p.At(ctx, q.Seq(row), &choice); err != nil {
				b.Fail(f.s.rowProblem(ctx, flightPredict, err))
				continue
			}
			b.Add(&choice, p.Cost())
		}
		return b.Record(), nil
	})
}
