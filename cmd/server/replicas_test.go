package server

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/cmd/server/snapshot"
	"github.com/pacer-ml/pacer/profiler/store"
)

// newWriterAndReplica returns two servers with a bucket between them.
func newWriterAndReplica(t *testing.T) (writer, replica *Server) {
	t.Helper()
	b := snapshot.NewBucket(memblob.OpenBucket(nil), "mem://")
	db, reg := querytest.Open(t)
	w, err := snapshot.NewWriter(t.Context(), b, filepath.Dir(db.Dir()), db, func() (*store.DB, error) { panic("the store is set aside") }, reg,
		snapshot.WriterOptions{URL: "http://the-writer:8470"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	if writer, err = New(db, reg, Options{Writer: w}); err != nil {
		t.Fatal(err)
	}
	copied, models := querytest.Open(t)
	r, err := snapshot.NewReplica(t.Context(), b, filepath.Dir(copied.Dir()), copied, models, snapshot.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if replica, err = New(copied, models, Options{Replica: r}); err != nil {
		t.Fatal(err)
	}
	return writer, replica
}

// A replica answers as its writer does, also after a question was answered before; it refuses all that changes the store.
func TestReplica(t *testing.T) {
	writer, replica := newWriterAndReplica(t)
	if w := do(replica, http.MethodGet, "/readyz", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "not loaded") {
		t.Errorf("before the first snapshot: %d %s", w.Code, w.Body)
	}
	poll := func() { replica.o.Replica.Poll(t.Context(), replica.applied) }
	poll()
	if w := do(replica, http.MethodGet, "/readyz", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	const question = requestOfMeasured
	rows := bodyOf(t, map[string]any{"measurements": measured(t, writer, 1.5)})
	before := post[query.Plans](t, replica, "/v1/predict", question).Plans[0]
	post[Stored](t, writer, "/v1/measurements", rows)
	post[FitResponse](t, writer, "/v1/fit", `{"rows":0}`)
	poll()
	after, want := post[query.Plans](t, replica, "/v1/predict", question).Plans[0], post[query.Plans](t, writer, "/v1/predict", question).Plans[0]
	if after.By != want.By || after.StepTimeSec != want.StepTimeSec || after.By == before.By {
		t.Errorf("%g s by %s, then %g s by %s; the writer answers %g s by %s", before.StepTimeSec, before.By, after.StepTimeSec, after.By, want.StepTimeSec, want.By)
	}
	for _, path := range []string{"/v1/measurements", "/v1/cards", "/v1/measurements/rows", "/v1/sources", "/v1/models"} {
		if a, b := do(writer, http.MethodGet, path, ""), do(replica, http.MethodGet, path, ""); a.Code != http.StatusOK || a.Body.String() != b.Body.String() {
			t.Errorf("%s: %d %s, the writer %d %s", path, b.Code, b.Body, a.Code, a.Body)
		}
	}
	for _, request := range [][3]string{
		{http.MethodPost, "/v1/measurements", rows}, {http.MethodPost, "/v1/fit", `{}`}, {http.MethodDelete, "/v1/measurements?source=test", ""},
		{http.MethodPost, "/v1/campaigns", bodyOf(t, campaign.Progress{Name: "x"})},
	} {
		w := do(replica, request[0], request[1], request[2])
		if w.Code != http.StatusMisdirectedRequest || !strings.Contains(w.Body.String(), "http://the-writer:8470") || !strings.Contains(w.Body.String(), typeReplica) {
			t.Errorf("%s %s: %d %s", request[0], request[1], w.Code, w.Body)
		}
	}
	if w := do(replica, http.MethodDelete, "/v1/measurements?source=test&dry_run=true", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(writer, http.MethodDelete, "/v1/measurements?source=test", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	poll()
	if w := do(replica, http.MethodGet, "/v1/measurements", ""); !strings.Contains(w.Body.String(), `"measurements":[]`) {
		t.Errorf("deleted rows are left: %s", w.Body)
	}
	text := do(replica, http.MethodGet, "/metrics", "").Body.String()
	for _, want := range []string{`pacer_replica_objects_total{kind="full"} 1`, `pacer_replica_objects_total{kind="changes"} 3`, `pacer_replica_failures_total{reason="damaged"} 0`, "pacer_replica_age_seconds 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if text := do(writer, http.MethodGet, "/metrics", "").Body.String(); !strings.Contains(text, `pacer_snapshot_objects_total{result="put"} 4`) || !strings.Contains(text, "pacer_lease_seconds ") {
		t.Error("no lease and objects in the metrics")
	}
}

// A writer without a lease acknowledges nothing, and says what to do.
func TestWriterWithoutLease(t *testing.T) {
	writer, _ := newWriterAndReplica(t)
	if err := writer.o.Writer.Lease().Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := bodyOf(t, map[string]any{"measurements": measured(t, writer, 1.5)})
	for _, request := range [][3]string{{http.MethodPost, "/v1/measurements", rows}, {http.MethodPost, "/v1/fit", `{}`}, {http.MethodDelete, "/v1/measurements?source=test", ""}} {
		w := do(writer, request[0], request[1], request[2])
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), typeLease) || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %s", request[0], request[1], w.Code, w.Body)
		}
	}
	if w := do(writer, http.MethodGet, "/v1/measurements", ""); !strings.Contains(w.Body.String(), `"measurements":[]`) {
		t.Errorf("stored: %s", w.Body)
	}
}
