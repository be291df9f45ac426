package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"google.golang.org/grpc/metadata"

	"github.com/pacer-ml/pacer/cmd/server/bodycheck"
	"github.com/pacer-ml/pacer/cmd/server/problem"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// DoPut implements flight.FlightServer: it stores record batches with the columns of an exported file, each whole or
// not at all, and answers each with a Stored as JSON. Where the metadata has an idempotency-key, each batch has that
// key with its number, so that the same batches may be sent again.
func (f *flightService) DoPut(stream flight.FlightService_DoPutServer) error {
	key, err := idempotencyKey(stream.Context())
	if err != nil {
		return err
	}
	hash := sha256.New() // of the schema and the messages of a record batch
	in, err := newRecordReader(stream, f.s.o.MaxBody, hash)
	if err != nil {
		return err
	}
	defer in.release()
	schema := hash.Sum(nil)
	if d := in.reader.LatestFlightDescriptor(); pathOf(d) != flightMeasurements {
		return noFlight(d)
	}
	for i := 0; ; i++ {
		hash.Reset()
		hash.Write(schema)
		rec, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		batch := key
		if key != "" {
			batch = fmt.Sprintf("%s/%d", key, i)
		}
		out, err := f.put(stream.Context(), batch, [sha256.Size]byte(hash.Sum(nil)), rec)
		if err != nil {
			return inBatch(i, err)
		}
		answer, err := json.Marshal(out)
		if err != nil {
			return err
		}
		if err := stream.Send(&flight.PutResult{AppMetadata: answer}); err != nil {
			return err
		}
	}
}

// put stores one record batch.
func (f *flightService) put(ctx context.Context, key string, sum [sha256.Size]byte, rec arrow.Record) (Stored, error) {
	if rec.NumRows() == 0 {
		return f.s.stored(store.Counts{}), nil
	}
	return admitted(ctx, f.s, light, 0, func() (Stored, error) {
		return f.s.storeOnce(ctx, key, sum, func() ([]spec.Measurement, error) { return measurementsOf(rec) })
	})
}

// inBatch names the record batch of an error.
func inBatch(i int, err error) error {
	p := problem.Of(err)
	if p.Status >= http.StatusInternalServerError {
		return err
	}
	p.Detail = fmt.Sprintf("record batch %d: %s", i, p.Detail)
	return p
}

// idempotencyKey returns the key of the metadata; "" without one.
func idempotencyKey(ctx context.Context) (string, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	keys := md.Get("idempotency-key")
	if len(keys) == 0 {
		return "", nil
	}
	const most = 240 // that of HTTP, less the number of a batch
	if key := keys[0]; len(keys) == 1 && len(key) <= most && strings.Trim(key, " ") != "" && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return key, nil
	}
	return "", badFlight(fmt.Sprintf("idempotency-key %q: want one of printable ASCII text, of at most %d characters", problem.Echo(strings.Join(keys, ",")), most))
}

// measurementsOf returns the rows of a record batch. Their names are plain, as those of other requests.
func measurementsOf(rec arrow.Record) ([]spec.Measurement, error) {
	out := make([]spec.Measurement, 0, rec.NumRows())
	for m, err := range rowfile.ReadRecord(rec) {
		if err != nil {
			return nil, badFlight(fmt.Sprintf("measurement %d: %v", len(out), err))
		}
		for name, text := range map[string]string{"model": m.Config.Model.Name, "accelerator": m.Config.Accelerator.Name, "source": m.Source, "origin": m.Origin,
			"framework": m.Config.Framework, "accelerator_vendor": m.Config.Accelerator.Vendor, "accelerator_arch": m.Config.Accelerator.Arch} {
			if !bodycheck.PlainText(text) {
				return nil, badFlight(fmt.Sprintf("measurement %d: %s %q: expected text in Unicode normal form C without control or invisible characters", len(out), name, problem.Echo(text)))
			}
		}
		out = append(out, m)
	}
	return out, nil
}
