package simqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// TestTimeFromStart: the time of a simulation counts from its start, not while others run before it. IDs count from that of
// an earlier server.
func TestTimeFromStart(t *testing.T) {
	fitted, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		q := New(&Options{
			Resolver: &query.Resolver{Fitted: fitted, Read: func(func(reader.Store) error) error { return nil }},
			Timeout:  time.Second, After: 41,
		})
		defer q.Close()
		done, err := q.Turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		added, err := q.Add(t.Context(), &SimulationRequest{Workload: "jobs=10", Cluster: "2x8xH100", Policies: []string{"fifo"}}, Once{})
		if err != nil || added.ID != "42" {
			t.Fatalf("%+v, %v; want the ID 42", added, err)
		}
		time.Sleep(2 * time.Second)
		done()
		synctest.Wait()
		if got, err := q.Get(added.ID); err != nil || got.Status != "done" {
			t.Errorf("%s: %s, %v", got.Status, got.Error, err)
		}
	})
}

// TestKeysOfClients: the same key of another client is another simulation.
func TestKeysOfClients(t *testing.T) {
	fitted, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	q := New(&Options{Resolver: &query.Resolver{Fitted: fitted, Read: func(func(reader.Store) error) error { return nil }}, Timeout: time.Minute})
	defer q.Close()
	add := func(client string) string {
		s, err := q.Add(t.Context(), &SimulationRequest{Workload: "jobs=10", Cluster: "2x8xH100", Policies: []string{"fifo"}}, Once{Client: client, Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	if a, again, b := add("a"), add("a"), add("b"); a != again || a == b {
		t.Errorf("simulations %s, %s of one client, %s of another", a, again, b)
	}
}
