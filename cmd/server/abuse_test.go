package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// inFull is set by make abuse: the tests of hostile clients then have all of these, and the bars of an idle machine.
var inFull = os.Getenv("PACER_ABUSE") != ""

// abuseSize returns how many clients a test has.
func abuseSize(full, usual, short int) int {
	switch {
	case inFull:
		return full
	case testing.Short():
		return short
	}
	return usual
}

// abuseLimit returns the longest time that others may have to wait.
func abuseLimit(bar time.Duration) time.Duration {
	if inFull {
		return bar
	}
	return spectest.Patience(2 * time.Second)
}

// Listings at the same time take memory for their answers, not for the rows of the store.
func TestAbuseListings(t *testing.T) {
	s := newServer(t, Options{})
	rows := make([]spec.Measurement, abuseSize(110_000, 4000, 500))
	first := measured(t, s, 1)[0]
	for i := range rows {
		rows[i] = first
		rows[i].Origin = fmt.Sprint(i)
	}
	if _, err := s.db.PutAll(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	const clients = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for i := range clients {
		path := []string{"/v1/measurements", "/v1/measurements/rows?limit=1"}[i%2]
		wg.Go(func() {
			w := do(s, http.MethodGet, path, "")
			var out struct {
				Measurements []struct{ Rows int }
				Rows         []json.RawMessage
			}
			err := json.Unmarshal(w.Body.Bytes(), &out)
			if err != nil || w.Code != http.StatusOK || len(out.Rows) != i%2 || i%2 == 0 && out.Measurements[0].Rows != len(rows) {
				t.Errorf("%s: %d %.300s, %v", path, w.Code, w.Body, err)
			}
		})
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d listings of %d rows allocate %d KiB", clients, len(rows), allocated>>10)
	if most := uint64(2 * clients); allocated>>20 > most && !testing.Short() { // the race detector adds to it
		t.Errorf("%d MiB allocated, want at most %d", allocated>>20, most)
	}
}
