package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// getFlight returns the rows that a ticket selects.
func getFlight(t *testing.T, c flight.Client, ticket string) (out []spec.Measurement, err error) {
	t.Helper()
	stream, err := c.DoGet(t.Context(), &flight.Ticket{Ticket: []byte(ticket)})
	if err != nil {
		return nil, err
	}
	r, err := flight.NewRecordReader(stream)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	for r.Next() {
		for m, err := range rowfile.ReadRecord(r.Record()) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, m)
		}
	}
	return out, r.Err()
}

// DoGet gives the rows of the store that the ticket selects, and GetFlightInfo their number and ticket.
func TestFlightGet(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	rows[0].Outcome, rows[0].StepSec = spec.OOM, nil
	if _, err := s.db.PutAll(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	conn, _ := serveRPC(t, s)
	c := flightOf(conn)
	var stored []spec.Measurement
	for m, err := range s.db.Query(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, m)
	}
	got, err := getFlight(t, c, "")
	if d := cmp.Diff(stored, got); d != "" || err != nil {
		t.Errorf("%v, %s", err, d)
	}
	for ticket, want := range map[string]int{`{"model":["llama3-8b"]}`: len(rows), `{"source":["nosuch"]}`: 0, `{"outcome":["oom"]}`: 1, `{"accelerator":["h100"],"outcome":["ok"]}`: len(rows) - 1} {
		info, err := c.GetFlightInfo(t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(ticket)})
		if err != nil || info.TotalRecords != int64(want) {
			t.Fatalf("%s: %v, %v", ticket, info, err)
		}
		if got, err := getFlight(t, c, string(info.Endpoint[0].Ticket.Ticket)); len(got) != want || err != nil {
			t.Errorf("%s: %d rows, want %d, %v", ticket, len(got), want, err)
		}
	}
	for _, bad := range []string{`{"colour":["red"]}`, `{`, `[]`, `{"outcome":["fine"]}`} {
		if _, err := getFlight(t, c, bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", bad, err)
		}
	}
	list, err := c.ListFlights(t.Context(), &flight.Criteria{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := list.Recv()
	if err != nil || info.TotalRecords != int64(len(rows)) {
		t.Fatalf("%v, %v", info, err)
	}
	schema, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
	if err != nil || !schema.Equal(rowfile.Schema()) {
		t.Errorf("schema %v, %v", schema, err)
	}
}

// putFlight sends rows as record batches of n, and returns the answers.
func putFlight(t *testing.T, c flight.Client, path, key string, n int, rows ...spec.Measurement) (out []Stored, err error) {
	t.Helper()
	return putSchema(t, c, rowfile.Schema(), path, key, n, rows...)
}

// putSchema is putFlight with a schema.
func putSchema(t *testing.T, c flight.Client, schema *arrow.Schema, path, key string, n int, rows ...spec.Measurement) (out []Stored, err error) {
	t.Helper()
	ctx := t.Context()
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", key)
	}
	stream, err := c.DoPut(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{path}})
	batches := 0
	_, err = rowfile.Batches(func(rec arrow.Record) error {
		batches++
		return w.Write(array.NewRecord(schema, rec.Columns(), rec.NumRows()))
	}, n, func(yield func(spec.Measurement, error) bool) {
		for _, m := range rows {
			if !yield(m, nil) {
				return
			}
		}
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for range batches {
		result, failed := stream.Recv()
		if failed != nil {
			return out, failed
		}
		var got Stored
		if err := json.Unmarshal(result.AppMetadata, &got); err != nil {
			t.Fatal(err)
		}
		out = append(out, got)
	}
	return out, err
}

// DoPut stores record batches once, and models are refitted.
func TestFlightPut(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	conn, _ := serveRPC(t, s)
	c := flightOf(conn)
	got, err := putFlight(t, c, flightMeasurements, "k", 5, rows...)
	if err != nil || len(got) != 3 || got[0].Added != 5 || got[2].Added != len(rows)-10 {
		t.Fatalf("%+v, %v", got, err)
	}
	if n, _ := s.fits.Waiting(); n != 1 {
		t.Errorf("%d models wait for a fit", n)
	}
	if again, err := putFlight(t, c, flightMeasurements, "k", 5, rows...); err != nil || !again[0].Replayed || again[0].Added != 5 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := putFlight(t, c, flightMeasurements, "k", 4, rows...); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "another body") {
		t.Errorf("other rows with the same key: %v", err)
	}
	notes := arrow.NewMetadata([]string{"note"}, []string{"another"})
	other := arrow.NewSchema(rowfile.Schema().Fields(), &notes)
	if _, err := putSchema(t, c, other, flightMeasurements, "k", 5, rows...); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "another body") {
		t.Errorf("the same rows under another schema: %v", err)
	}
	if again, err := putFlight(t, c, flightMeasurements, "", 100, rows...); err != nil || again[0].Unchanged != len(rows) {
		t.Errorf("without a key: %+v, %v", again, err)
	}
	back, err := getFlight(t, c, "")
	if len(back) != len(rows) || err != nil {
		t.Errorf("%d rows, %v", len(back), err)
	}
}

// A record batch with a bad row is refused as a whole, with the text of HTTP.
func TestFlightPutRefuses(t *testing.T) {
	s := newServer(t, Options{})
	conn, _ := serveRPC(t, s)
	c := flightOf(conn)
	for says, change := range map[string]func(*spec.Measurement){
		"Unicode normal form C": func(m *spec.Measurement) { m.Source = "lab\u202e" },
		"fp32":                  func(m *spec.Measurement) { m.Config.Accelerator.FP32 = -1 },
	} {
		rows := measured(t, s, 1)
		change(&rows[3])
		_, err := putFlight(t, c, flightMeasurements, "", 100, rows...)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(says)) || !strings.Contains(err.Error(), "measurement 3") {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := putFlight(t, c, "nosuch", "", 100, measured(t, s, 1)...); status.Code(err) != codes.NotFound {
		t.Errorf("another path: %v", err)
	}
	if _, err := putFlight(t, c, flightMeasurements, strings.Repeat("k", 300), 100, measured(t, s, 1)...); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a long key: %v", err)
	}
	if n, err := s.db.Len(t.Context(), store.Filter{}); n != 0 || err != nil {
		t.Errorf("%d rows are stored, %v", n, err)
	}
}

// keptMessages keeps the messages of a writer.
type keptMessages struct{ sent []*flight.FlightData }

// Send implements flight.DataStreamWriter.
func (k *keptMessages) Send(m *flight.FlightData) error {
	k.sent = append(k.sent, &flight.FlightData{FlightDescriptor: m.FlightDescriptor, DataHeader: bytes.Clone(m.DataHeader), DataBody: bytes.Clone(m.DataBody)})
	return nil
}

// Damaged messages are errors of the client, and no panic of the server.
func TestFlightPutDamaged(t *testing.T) {
	s := newServer(t, Options{})
	conn, _ := serveRPC(t, s)
	kept := &keptMessages{}
	w := flight.NewRecordWriter(kept, ipc.WithSchema(rowfile.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{flightMeasurements}})
	rows := func(yield func(spec.Measurement, error) bool) {
		for _, m := range measured(t, s, 1) {
			if !yield(m, nil) {
				return
			}
		}
	}
	if _, err := rowfile.Batches(func(rec arrow.Record) error { return w.Write(rec) }, 100, rows); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for i := range 200 {
		messages := make([]*flight.FlightData, len(kept.sent))
		for k, m := range kept.sent {
			messages[k] = &flight.FlightData{FlightDescriptor: m.FlightDescriptor, DataHeader: bytes.Clone(m.DataHeader), DataBody: bytes.Clone(m.DataBody)}
		}
		header := messages[i%2].DataHeader
		for range 1 + i%3 {
			header[random.IntN(len(header))] = byte(random.IntN(256))
		}
		stream, err := flightOf(conn).DoPut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if stream.Send(m) != nil {
				break // the server has answered
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		switch _, err = stream.Recv(); status.Code(err) {
		case codes.OK, codes.Unknown: // the changed byte says nothing; no rows, so no answer
		case codes.InvalidArgument, codes.NotFound:
			refused++
		default:
			t.Errorf("%v", err)
		}
	}
	if n := panicsOf(s); refused < 50 || n != 0 {
		t.Errorf("%d of 200 refused, %g panics", refused, n)
	}
}

// question is a row of questions.
type question struct {
	model, accelerator, plan string
	seq, packed              int64
}

// questionRecord returns questions as a record batch, with dictionaries or plain texts.
func questionRecord(dictionaries bool, qs ...question) arrow.Record {
	text := arrow.DataType(arrow.BinaryTypes.String)
	if dictionaries {
		text = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "model", Type: text}, {Name: "accelerator", Type: text}, {Name: "plan", Type: text},
		{Name: "seq", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "packed", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil))
	defer b.Release()
	for _, q := range qs {
		for i, s := range []string{q.model, q.accelerator, q.plan} {
			switch f := b.Field(i).(type) {
			case *array.StringBuilder:
				f.Append(s)
			case *array.BinaryDictionaryBuilder:
				if err := f.AppendString(s); err != nil {
					panic(err) // there is memory
				}
			}
		}
		for i, n := range []int64{q.seq, q.packed} {
			if whole := b.Field(3 + i).(*array.Int64Builder); n == 0 {
				whole.AppendNull()
			} else {
				whole.Append(n)
			}
		}
	}
	return b.NewRecord()
}

// predictFlight sends questions and returns the predictions.
func predictFlight(t testing.TB, c flight.Client, rec arrow.Record) (arrow.Record, error) {
	t.Helper()
	stream, err := c.DoExchange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rec.Schema()), ipc.WithDictionaryDeltas(false))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{flightPredict}})
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	r, err := flight.NewRecordReader(stream)
	if err != nil {
		return nil, err
	}
	out, err := r.Read()
	if err == nil {
		out.Retain()
	}
	return out, err
}

// DoExchange predicts what POST /v1/predict does; bad questions have its problem.
func TestFlightPredict(t *testing.T) {
	s := newServer(t, Options{})
	conn, _ := serveRPC(t, s)
	qs := []question{{"llama3-8b", "h100", "dp=8,zero=3", 0, 0}, {"llama3-8b", "h100", "dp=8,zero=3", 4096, 0}, {"llama3-70b", "a100", "dp=1", 0, 0}, {"llama3-8b", "a100", "dp=4,tp=2,mb=2", 2048, 0}, {"llama3-8b", "h100", "dp=8,zero=3", 4096, 512}, {"llama3-8b", "h100", "dp=8,zero=3", 8192, 512}, {"llama3-8b", "h100", "dp=8,zero=3", 256, 512},
		{"nosuch", "h100", "dp=8", 0, 0}, {"llama3-8b", "h100", "dp=8,nosuch=1", 0, 0}, {"llama3-8b", "h100", "dp=8", -5, 0}, {"llama3-8b\u202e", "h100", "dp=8", 0, 0}, {"llama3-8b", "h100", "tp=7,dp=1", 0, 0}}
	for _, dictionaries := range []bool{false, true} {
		out, err := predictFlight(t, flightOf(conn), questionRecord(dictionaries, qs...))
		if err != nil || out.NumRows() != int64(len(qs)) {
			t.Fatalf("%v, %v", out, err)
		}
		for i, q := range qs {
			body := fmt.Sprintf(`{"model":%q,"accelerator":%q,"plan":%q`, q.model, q.accelerator, q.plan)
			if q.seq != 0 {
				body += fmt.Sprintf(`,"seq":%d`, q.seq)
			}
			if q.packed != 0 {
				body += fmt.Sprintf(`,"packed":%d`, q.packed)
			}
			w := do(s, "POST", "/v1/predict", body+"}")
			var plans struct {
				Plans []struct {
					StepTimeSec float64 `json:"step_time_s"`
					MemGiB      float64 `json:"mem_gib"`
					Allocated   float64 `json:"mem_allocated_gib"`
					Reserved    float64 `json:"mem_reserved_gib"`
					TFLOPs      float64 `json:"tflops_per_gpu"`
					Fits        bool
					Verdict, By string
					Why         string
				}
				Status int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &plans); err != nil {
				t.Fatal(err)
			}
			number := func(c int) float64 { return out.Column(c).(*array.Float64).Value(i) }
			text := func(c int) string { return out.Column(c).(*array.String).Value(i) }
			if w.Code != 200 {
				if got := out.Column(11).(*array.Int32).Value(i); int(got) != w.Code || text(12) == "" || !out.Column(0).IsNull(i) {
					t.Errorf("%+v: status %d %q, HTTP has %d %s", q, got, text(12), w.Code, w.Body)
				}
				continue
			}
			p := plans.Plans[0]
			if math.Abs(number(0)-p.StepTimeSec) > 1e-3*p.StepTimeSec || math.Abs(number(4)-p.MemGiB) > 1e-2 || number(13) != p.Allocated || number(14) != p.Reserved || math.Abs(number(5)-p.TFLOPs) > 1 || out.Column(6).(*array.Boolean).Value(i) != p.Fits ||
				text(7) != p.Verdict || text(8) != p.By || text(9) != p.Why || !out.Column(11).IsNull(i) {
				t.Errorf("%+v: %g s, %g GiB, %q %q %q, HTTP has %+v", q, number(0), number(4), text(7), text(8), text(9), p)
			}
		}
	}
}

// Columns that are missing, unknown or of another type are errors of the batch.
func TestFlightPredictRefuses(t *testing.T) {
	s := newServer(t, Options{})
	conn, _ := serveRPC(t, s)
	whole := questionRecord(false, question{"llama3-8b", "h100", "dp=8", 1024, 0})
	fields := whole.Schema().Fields()
	renamed := append([]arrow.Field{}, fields...)
	renamed[3].Name = "sequence"
	for says, rec := range map[string]arrow.Record{
		`column "model" is missing`: array.NewRecord(arrow.NewSchema(fields[1:], nil), whole.Columns()[1:], 1),
		"unknown column":            array.NewRecord(arrow.NewSchema(renamed, nil), whole.Columns(), 1),
		`column "seq" is utf8`:      array.NewRecord(arrow.NewSchema([]arrow.Field{fields[0], fields[1], fields[2], {Name: "seq", Type: arrow.BinaryTypes.String}}, nil), []arrow.Array{whole.Column(0), whole.Column(1), whole.Column(2), whole.Column(0)}, 1),
	} {
		if _, err := predictFlight(t, flightOf(conn), rec); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
