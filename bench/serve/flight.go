package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner/remote"
)

const (
	batchQuestions = 10000 // of a record batch and of a request
	batches        = 20    // of each kind
	exportRows     = 100_000
)

// batchCosts reports the processor time of the server for distinct questions in batches, over HTTP and over Arrow Flight,
// and for the rows of an export.
func batchCosts(address, rpc string) error {
	web := "http://" + address
	plain, err := remote.New(web, remote.Options{})
	if err != nil {
		return err
	}
	gzip, err := remote.New(web, remote.Options{HTTP: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		return err
	}
	flown, err := remote.New(web, remote.Options{Flight: rpc})
	if err != nil {
		return err
	}
	defer flown.Close()
	next := 0 // question
	for _, k := range []struct {
		name, framework string
		client          *remote.Client
	}{
		{"HTTP, any stack", "", plain},
		{"HTTP, FSDP", "FSDP", plain},
		{"HTTP, gzip", "", gzip},
		{"Flight, any stack", "", flown},
		{"Flight, FSDP", "FSDP", flown},
	} {
		cost, err := costOf(address, batches, func() error {
			qs := questionBatch(next, k.framework)
			next += batchQuestions
			return predict(k.client, qs)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		fmt.Printf("%-18s %6.2f us of the server per question\n", k.name, cost.Seconds()*1e6/(batches*batchQuestions))
	}
	if _, err := flown.PutRows(context.Background(), exportedRows); err != nil {
		return err
	}
	conn, err := grpc.NewClient(rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := flight.NewClientFromConn(conn, nil)
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

// questionBatch returns distinct questions from number first on.
func questionBatch(first int, framework string) []remote.Question {
	out := make([]remote.Question, batchQuestions)
	for i := range out {
		k := first + i
		next := func(m int) int { j := k % m; k /= m; return j }
		out[i] = remote.Question{Model: models[next(4)], Accelerator: accelerators[next(2)], Plan: degrees[next(6)], Framework: framework, SeqLen: 1024 + k}
	}
	return out
}

// predict checks that each question has a prediction.
func predict(c *remote.Client, qs []remote.Question) error {
	answers, err := c.PredictAll(context.Background(), qs)
	for i := range answers {
		if a := &answers[i]; a.Err != nil || a.StepSec <= 0 {
			return fmt.Errorf("%+v: %g s, %w", qs[i], a.StepSec, a.Err)
		}
	}
	return err
}

// exportedRows yields the exportRows distinct rows of the export.
func exportedRows(yield func(spec.Measurement, error) bool) {
	for i := range exportRows {
		if !yield(exportRow(i)) {
			return
		}
	}
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
