package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

const (
	batchQuestions = 10000 // of a record batch and of a request
	batches        = 20    // of each kind
	exportRows     = 100_000
)

// batchCosts reports the processor time of the server for distinct questions in batches, over HTTP and over Arrow Flight,
// and for the rows of an export.
func batchCosts(address, rpc string) error {
	conn, err := grpc.NewClient(rpc, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := flight.NewClientFromConn(conn, nil)
	plain := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	next := 0 // question
	for _, k := range []struct {
		name, framework string
		ask             func([]byte, arrow.Record) error
	}{
		{"HTTP, any stack", "", func(body []byte, _ arrow.Record) error { return postBatch(http.DefaultClient, address, body) }},
		{"HTTP, FSDP", "FSDP", func(body []byte, _ arrow.Record) error { return postBatch(http.DefaultClient, address, body) }},
		{"HTTP, no gzip", "", func(body []byte, _ arrow.Record) error { return postBatch(plain, address, body) }},
		{"Flight, any stack", "", func(_ []byte, rec arrow.Record) error { return exchange(client, rec) }},
		{"Flight, FSDP", "FSDP", func(_ []byte, rec arrow.Record) error { return exchange(client, rec) }},
	} {
		cost, err := costOf(address, batches, func() error {
			body, rec := questionBatch(next, k.framework)
			next += batchQuestions
			return k.ask(body, rec)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Printf("%-18s %6.2f us of the server per question\n", k.name, cost.Seconds()*1e6/(batches*batchQuestions))
	}
	if err := fill(client); err != nil {
		return err
	}
	cost, err := costOf(address, batches, func() error { return export(client) })
	if err != nil {
		return err
	}
	fmt.Printf("%-18s %6.2f us of the server per row, %.0f rows per second of processor time\n", "Flight, export", cost.Seconds()*1e6/(batches*exportRows), batches*exportRows/cost.Seconds())
	return nil
}

// costOf returns the processor time of the server for n calls, after one that is not counted.
func costOf(address string, n int, call func() error) (time.Duration, error) {
	if err := call(); err != nil {
		return 0, err
	}
	before, err := used(address)
	if err != nil {
		return 0, err
	}
	for range n {
		if err := call(); err != nil {
			return 0, err
		}
	}
	after, err := used(address)
	return after.server - before.server, err
}

// questionBatch returns distinct questions from number first on, as JSON and as a record batch.
func questionBatch(first int, framework string) ([]byte, arrow.Record) {
	fields := []arrow.Field{{Name: "model", Type: arrow.BinaryTypes.String}, {Name: "accelerator", Type: arrow.BinaryTypes.String}, {Name: "plan", Type: arrow.BinaryTypes.String},
		{Name: "framework", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "seq", Type: arrow.PrimitiveTypes.Int64}}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	defer b.Release()
	var body bytes.Buffer
	body.WriteString(`{"questions":[`)
	for i := range batchQuestions {
		k := first + i
		next := func(m int) int { j := k % m; k /= m; return j }
		model, accelerator, plan := models[next(4)], accelerators[next(2)], degrees[next(6)]
		seq := 1024 + k
		for i, s := range []string{model, accelerator, plan} {
			b.Field(i).(*array.StringBuilder).Append(s)
		}
		if f := b.Field(3).(*array.StringBuilder); framework == "" {
			f.AppendNull()
		} else {
			f.Append(framework)
		}
		b.Field(4).(*array.Int64Builder).Append(int64(seq))
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"model":%q,"accelerator":%q,"plan":%q,"seq":%d`, model, accelerator, plan, seq)
		if framework != "" {
			fmt.Fprintf(&body, `,"framework":%q`, framework)
		}
		body.WriteByte('}')
	}
	body.WriteString("]}")
	return body.Bytes(), b.NewRecord()
}

func postBatch(client *http.Client, address string, body []byte) error {
	res, err := client.Post("http://"+address+"/v1/predict/batch", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if n := bytes.Count(answer, []byte(`"step_time_s":`)); err == nil && (res.StatusCode != http.StatusOK || n != batchQuestions) {
		err = fmt.Errorf("%s: %d predictions: %.200s", res.Status, n, answer)
	}
	return err
}

// exchange sends one record batch of questions and checks that each has a prediction.
func exchange(client flight.Client, rec arrow.Record) error {
	defer rec.Release()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := client.DoExchange(ctx)
	if err != nil {
		return err
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rec.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"predict"}})
	if err := errors.Join(w.Write(rec), stream.CloseSend()); err != nil {
		return err
	}
	r, err := flight.NewRecordReader(stream)
	if err != nil {
		return err
	}
	defer r.Release()
	out, err := r.Read()
	if err == nil && (out.NumRows() != rec.NumRows() || out.Column(0).NullN() > 0) {
		err = fmt.Errorf("%d predictions, %d of them null", out.NumRows(), out.Column(0).NullN())
	}
	return err
}

// fill stores exportRows distinct rows.
func fill(client flight.Client) error {
	stream, err := client.DoPut(context.Background())
	if err != nil {
		return err
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rowfile.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"measurements"}})
	put := func(rec arrow.Record) error {
		if err := w.Write(rec); err != nil {
			return err
		}
		_, err := stream.Recv()
		return err
	}
	_, err = rowfile.Batches(put, 2000, func(yield func(spec.Measurement, error) bool) {
		for i := range exportRows {
			if !yield(exportRow(i)) {
				return
			}
		}
	})
	return errors.Join(err, stream.CloseSend())
}

func exportRow(i int) (m spec.Measurement, err error) {
	c := &m.Config
	if c.Model, err = catalog.Model(models[i/1000%4]); err != nil {
		return m, err
	}
	if c.Accelerator, err = catalog.Accelerator(accelerators[i/4000%4]); err != nil {
		return m, err
	}
	c.Plan = spec.Plan{DP: 8, TP: 1 + i%2, PP: 1, MicroBatch: 1 + i%7, AccumSteps: 1 + i%64, ZeRO: i % 4, Precision: spec.BF16}
	c.SeqLen, c.Shape, c.Framework = 1024+i%8192, spec.Packed(c.Plan.Devices(), 8), "FSDP"
	m.Outcome, m.StepSec, m.PeakBytes = spec.OK, []float64{1 + float64(i)/exportRows, 1.01, 1.02}, 1e5*float64(1+i)
	m.Source, m.Origin = fmt.Sprintf("lab-%d", i%10), fmt.Sprintf("run %d", i)
	return m, nil
}

// export reads all rows.
func export(client flight.Client) error {
	stream, err := client.DoGet(context.Background(), &flight.Ticket{})
	if err != nil {
		return err
	}
	r, err := flight.NewRecordReader(stream)
	if err != nil {
		return err
	}
	defer r.Release()
	rows := int64(0)
	for r.Next() {
		rows += r.Record().NumRows()
	}
	if err := r.Err(); err != nil && !strings.Contains(err.Error(), io.EOF.Error()) {
		return err
	}
	if rows != exportRows {
		return fmt.Errorf("%d rows, want %d", rows, exportRows)
	}
	return nil
}
