package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Rows yields the stored measurements that f selects. It ends with the first error, which is that of ctx once that has ended.
// Over Arrow Flight they are those of one moment, and Timeout bounds the wait for each record batch; else they are read page
// by page.
func (c *Client) Rows(ctx context.Context, f Filter) iter.Seq2[spec.Measurement, error] {
	return func(yield func(spec.Measurement, error) bool) {
		read := c.pagedRows
		if c.flights != nil {
			read = c.flownRows
		}
		wanted := true
		err := read(ctx, f, func(m spec.Measurement, _ error) bool {
			wanted = yield(m, nil)
			return wanted && ctx.Err() == nil
		})
		if err == nil && wanted && ctx.Err() != nil {
			err = fmt.Errorf("remote: %w", ctx.Err())
		}
		if err != nil && wanted {
			yield(spec.Measurement{}, err)
		}
	}
}

// pagedRows passes rows to yield until it returns false.
func (c *Client) pagedRows(ctx context.Context, f Filter, yield func(spec.Measurement, error) bool) error {
	q := f.query()
	q.Set("limit", "1000")
	for {
		var page struct {
			Rows []struct {
				Measurement spec.Measurement `json:"measurement"`
			} `json:"rows"`
			Next string `json:"next"`
		}
		if err := c.Do(ctx, http.MethodGet, "/v1/measurements/rows?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		for i := range page.Rows {
			if !yield(page.Rows[i].Measurement, nil) {
				return nil
			}
		}
		if page.Next == "" {
			return nil
		}
		q.Set("cursor", page.Next)
	}
}

// errStop ends a flight with rows that are no longer wanted.
var errStop = errors.New("no more rows are wanted")

// flownRows is pagedRows over Arrow Flight. Once a row was passed on, nothing is repeated.
func (c *Client) flownRows(ctx context.Context, f Filter, yield func(spec.Measurement, error) bool) error {
	ticket, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("remote: %w", err)
	}
	passed := false
	var broken error // after rows were passed on
	err = c.fly(ctx, "", func(ctx context.Context, client flight.Client) error {
		err := c.batches(ctx, client, ticket, func(rows []spec.Measurement) error {
			for i := range rows {
				passed = true
				if !yield(rows[i], nil) {
					return errStop
				}
			}
			return nil
		})
		switch {
		case errors.Is(err, errStop):
			return nil
		case passed && err != nil && ctx.Err() == nil:
			_, broken = flightFailure(err, 0)
			return nil
		}
		return err
	})
	return cmp.Or(err, broken)
}

// batches calls each with the rows of each record batch of a ticket.
func (c *Client) batches(ctx context.Context, client flight.Client, ticket []byte, each func([]spec.Measurement) error) error {
	wait := c.o.Timeout
	if wait == 0 {
		wait = math.MaxInt64
	}
	late := status.Error(codes.DeadlineExceeded, fmt.Sprintf("no record batch arrived in %v", wait))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(wait, func() { cancel(late) })
	defer timer.Stop()
	stream, err := client.DoGet(ctx, &flight.Ticket{Ticket: ticket})
	if err == nil {
		err = readBatches(stream, func(rec arrow.Record) error {
			timer.Stop()
			rows := make([]spec.Measurement, 0, rec.NumRows())
			for m, err := range rowfile.ReadRecord(rec) {
				if err != nil {
					return err
				}
				rows = append(rows, m)
			}
			err := each(rows)
			timer.Reset(wait)
			return err
		})
	}
	if err != nil && errors.Is(context.Cause(ctx), late) {
		return late
	}
	return err
}

// Bounds of what PutRows sends at a time: rows, and their step times.
const (
	rowsAtOnce  = 2000
	stepsAtOnce = 1 << 16
)

// PutRows stores any number of rows and returns those that the server has on disk. Those that it sends at a time are
// stored whole or not at all, and once. It ends at the first error of rows or of the server.
func (c *Client) PutRows(ctx context.Context, rows iter.Seq2[spec.Measurement, error]) (out Stored, err error) {
	if c.flights != nil {
		_, err = rowfile.Batches(func(rec arrow.Record) error {
			n, err := c.putBatch(ctx, rec)
			out.add(n)
			return err
		}, rowsAtOnce, rows)
		return out, err
	}
	var batch []spec.Measurement
	steps := 0
	put := func() error {
		n, err := c.put(ctx, batch)
		out.add(n)
		batch, steps = batch[:0], 0
		return err
	}
	for m, err := range rows {
		if err != nil {
			return out, err
		}
		batch, steps = append(batch, m), steps+len(m.StepSec)
		if len(batch) == rowsAtOnce || steps >= stepsAtOnce {
			if err := put(); err != nil {
				return out, err
			}
		}
	}
	err = put() // changes out
	return out, err
}

// putBatch stores a record batch.
func (c *Client) putBatch(ctx context.Context, rec arrow.Record) (out Stored, err error) {
	err = c.fly(ctx, rand.Text(), func(ctx context.Context, client flight.Client) error {
		ctx, cancel := c.timed(ctx)
		defer cancel()
		stream, err := client.DoPut(ctx)
		if err != nil {
			return err
		}
		if err := sendBatch(stream, flightMeasurements, rec); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		// The end, so that the server does not count the request as canceled. The rows are stored, whatever it says.
		_, _ = stream.Recv()
		return json.Unmarshal(answer.AppMetadata, &out)
	})
	return out, err
}
