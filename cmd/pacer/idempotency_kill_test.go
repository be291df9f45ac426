package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/server"
)

// TestE2EIdempotencyKeysSurviveKill: a request that is repeated after the server was killed gets the first answer.
func TestE2EIdempotencyKeysSurviveKill(t *testing.T) {
	pacer, data := selfAs(t, "pacer"), filepath.Join(t.TempDir(), "data")
	body, err := json.Marshal(map[string]any{"measurements": inventedRows(20)})
	if err != nil {
		t.Fatal(err)
	}
	put := func(url string) (out server.Stored) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, url+"/v1/measurements", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "once")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", res.Status, err)
		}
		return out
	}
	s := startServing(t, pacer, data)
	first := put(s.url)
	if first.Replayed || first.Added != 20 {
		t.Errorf("%+v", first)
	}
	for range 2 {
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-s.done
		s = startServing(t, pacer, data)
		again := put(s.url)
		if !again.Replayed {
			t.Errorf("stored again: %+v", again)
		}
		if again.Replayed = false; again != first {
			t.Errorf("%+v, want %+v", again, first)
		}
	}
}
