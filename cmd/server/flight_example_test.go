package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// measurementsOver is the program of docs/guides/serve.md that reads measurements.
func measurementsOver(ctx context.Context, address string) (rows int64, err error) {
	c, err := flight.NewClientWithMiddleware(address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	stream, err := c.DoGet(ctx, &flight.Ticket{Ticket: []byte(`{"model":["llama3-8b"],"outcome":["ok"]}`)})
	if err != nil {
		return 0, err
	}
	batches, err := flight.NewRecordReader(stream)
	if err != nil {
		return 0, err
	}
	defer batches.Release()
	for batches.Next() {
		rows += batches.Record().NumRows()
	}
	return rows, batches.Err()
}

// predictedOver is the program of docs/guides/serve.md that asks questions.
func predictedOver(ctx context.Context, c flight.Client, questions arrow.Record) (arrow.Record, error) {
	stream, err := c.DoExchange(ctx)
	if err != nil {
		return nil, err
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(questions.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"predict"}})
	if err := w.Write(questions); err != nil {
		return nil, err
	}
	batches, err := flight.NewRecordReader(stream)
	if err != nil {
		return nil, err
	}
	return batches.Read()
}

// The programs of docs/guides/serve.md are those of this file, and they work.
func TestFlightDocs(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	if _, err := s.db.PutAll(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	conn, _ := serveRPC(t, s)
	if n, err := measurementsOver(t.Context(), conn.Target()); n != int64(len(rows)) || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
	out, err := predictedOver(t.Context(), flightOf(conn), questionRecord(false, question{"llama3-8b", "h100", "dp=8,zero=3", 0, 0}))
	if err != nil || out.NumRows() != 1 || out.ColumnName(0) != "step_time_s" {
		t.Errorf("%v, %v", out, err)
	}
	source, err := os.ReadFile("flight_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/guides/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## gRPC and Arrow Flight\n")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := 0
	for i, block := range strings.Split(section, "```") {
		code, ok := strings.CutPrefix(block, "go\n")
		if i%2 == 0 || !ok {
			continue
		}
		for line := range strings.Lines(code) {
			if lines++; !strings.Contains(string(source), "\n\t"+line) {
				t.Errorf("the guide has %q, which no test runs", line)
			}
		}
	}
	if lines < 10 {
		t.Errorf("%d lines of programs", lines)
	}
	for _, c := range predictions.Fields() {
		if !strings.Contains(section, "`"+c.Name+"`") {
			t.Errorf("the guide does not name the column %s", c.Name)
		}
	}
	for _, name := range questionNames() {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("the guide does not name the column %s", name)
		}
	}
}

// Serve has no gRPC without an address for it.
func TestNoRPC(t *testing.T) {
	s := newServer(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Serve(ctx, l, nil); err != nil {
		t.Error(fmt.Errorf("without gRPC: %w", err))
	}
}
