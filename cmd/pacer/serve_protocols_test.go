package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/flight"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/pacer-ml/pacer/cmd/server/pacerpb"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// TestE2EServerKills kills a server with SIGKILL at random moments, again and again over the same directory, while rows
// come over HTTP one by one and over Arrow Flight in record batches, and questions over gRPC: no row that it acknowledged is
// lost, and it holds all rows of a record batch or none. 5 kills, 1000 with PACER_SOAK set.
func TestE2EServerKills(t *testing.T) {
	kills := 5
	if inSoak {
		kills = 1000
	}
	const fresh, each = 25, 300 // kills of one directory; rows over HTTP between kills
	pacer, rng := selfAs(t, "pacer"), rand.New(rand.NewPCG(5, 6))
	var data string
	var acked []spec.Measurement // of data
	posted, put, whole, answered := 0, 0, 0, int64(0)
	for k := range kills {
		if k%fresh == 0 {
			if data != "" { // thousands of directories would fill the disk
				if err := os.RemoveAll(data); err != nil {
					t.Fatal(err)
				}
			}
			data, acked = t.TempDir(), nil
		}
		s := startServing(t, pacer, data, "--grpc-listen", "127.0.0.1:0")
		wait := time.Duration(rng.IntN(int(150 * time.Millisecond)))
		var both sync.WaitGroup // has acknowledged rows over both protocols
		both.Add(2)
		go func() { both.Wait(); time.Sleep(wait); _ = s.cmd.Process.Kill() }()
		conn, err := grpc.NewClient(s.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var flown []spec.Measurement
		var last []spec.Measurement // sent and not acknowledged
		wg.Go(func() { flown, last = putUntilKilled(conn, k, sync.OnceFunc(both.Done)) })
		wg.Go(func() { answered += askUntilKilled(t, conn) })
		rows := numberedRows(fmt.Sprintf("kill %d", k), each)
		got := postRows(t, s.url, rows, sync.OnceFunc(both.Done))
		wg.Wait() // the flights end with the server
		<-s.done
		_ = s.cmd.Wait()
		_ = conn.Close()
		acked = append(append(acked, got...), flown...)
		posted, put = posted+len(got), put+len(flown)
		if err := holdsFirst(filepath.Join(data, "store"), acked, len(acked)); err != nil {
			t.Fatalf("kill %d: %v", k+1, err)
		}
		n, err := countOf(filepath.Join(data, "store"), last)
		if err != nil || n != 0 && n != len(last) {
			t.Fatalf("kill %d: %d of %d rows of a record batch are stored, %v", k+1, n, len(last), err)
		}
		if n > 0 {
			whole++
		}
	}
	t.Logf("%d kills; acknowledged: %d rows over HTTP, %d over Flight; %d record batches stored and not acknowledged; %d answers over gRPC", kills, posted, put, whole, answered)
	if min(posted, put) < kills || answered == 0 {
		t.Errorf("%d and %d rows acknowledged and %d answers in %d rounds", posted, put, answered, kills)
	}
}

// numberedRows returns n rows with origins that begin with a name.
func numberedRows(name string, n int) []spec.Measurement {
	rows := inventedRows(n)
	for i := range rows {
		rows[i].Origin = fmt.Sprintf("%s, row %d", name, i)
	}
	return rows
}

// batchSizes are the rows of record batches. The largest needs several transactions of the store.
var batchSizes = []int{1, 40, 1500}

// putUntilKilled stores record batches until the server ends. It returns the rows of those that the server acknowledged, and
// those of the one sent last. It calls first when the first one is acknowledged.
func putUntilKilled(conn *grpc.ClientConn, kill int, first func()) (acked, last []spec.Measurement) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := flight.NewClientFromConn(conn, nil).DoPut(ctx)
	if err != nil {
		return nil, nil
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rowfile.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"measurements"}})
	for i := 0; ; i++ {
		rows := numberedRows(fmt.Sprintf("kill %d, batch %d", kill, i), batchSizes[i%len(batchSizes)])
		_, err := rowfile.Batches(func(rec arrow.Record) error { return w.Write(rec) }, len(rows), func(yield func(spec.Measurement, error) bool) {
			for _, m := range rows {
				if !yield(m, nil) {
					return
				}
			}
		})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			return acked, rows
		}
		acked = append(acked, rows...)
		first()
	}
}

// askUntilKilled asks questions over one stream of gRPC until the server ends, and returns the number of answers.
func askUntilKilled(t *testing.T, conn *grpc.ClientConn) (answers int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := pacerpb.NewPacerClient(conn).Predict(ctx)
	if err != nil {
		return 0
	}
	for seq := int32(512); ; seq++ {
		err := stream.Send(&pacerpb.PredictRequest{Model: proto.String("llama3-8b"), Accelerator: proto.String("h100"), Plan: proto.String("dp=8,zero=3"), Seq: proto.Int32(seq)})
		if err != nil {
			return answers
		}
		out, err := stream.Recv()
		if err != nil {
			return answers
		}
		if out.GetPlans() == nil {
			t.Errorf("no plan in %v", out)
		}
		answers++
	}
}

// countOf returns how many of rows the store in dir has.
func countOf(dir string, rows []spec.Measurement) (n int, err error) {
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	origins := map[string]bool{}
	for _, m := range rows {
		origins[m.Origin] = true
	}
	for m, err := range db.Query(context.Background(), store.Filter{}) {
		if err != nil {
			return n, err
		}
		if origins[m.Origin] {
			n++
		}
	}
	return n, nil
}
