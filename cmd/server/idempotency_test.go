package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A repeated request gets the first answer and stores nothing; a key stands for one body of one client.
func TestIdempotencyKeys(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	put := func(key, body string) (*httptest.ResponseRecorder, Stored) {
		w := request(s, http.MethodPost, "http://localhost/v1/measurements", body, "Idempotency-Key", key)
		var out Stored
		_ = json.Unmarshal(w.Body.Bytes(), &out) // a problem has other fields
		return w, out
	}
	body := bodyOf(t, rowsToPost{rows[:4]})
	if w, got := put("a", body); w.Code != http.StatusOK || got.Added != 4 || got.Rows != 4 || got.Replayed {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w, got := put("a", body); w.Code != http.StatusOK || got.Added != 4 || got.Rows != 4 || !got.Replayed {
		t.Errorf("repeated: %d %s", w.Code, w.Body)
	}
	if w, got := put("b", body); w.Code != http.StatusOK || got.Unchanged != 4 || got.Replayed {
		t.Errorf("another key: %d %s", w.Code, w.Body)
	}
	if w, _ := put("a", bodyOf(t, rowsToPost{rows[4:5]})); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "another body") {
		t.Errorf("another body: %d %s", w.Code, w.Body)
	}
	if w, _ := put(strings.Repeat("k", 256), body); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "Idempotency-Key") {
		t.Errorf("a long key: %d %s", w.Code, w.Body)
	}
	for _, key := range []string{"ü", "a\tb"} {
		if w, _ := put(key, body); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "printable ASCII") {
			t.Errorf("key %q: %d %s", key, w.Code, w.Body)
		}
	}
	// A refused request keeps no answer.
	if w, _ := put("c", `{"measurements":[{}]}`); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, got := put("c", bodyOf(t, rowsToPost{rows[5:6]})); w.Code != http.StatusOK || got.Added != 1 {
		t.Errorf("after a refused request: %d %s", w.Code, w.Body)
	}
	if !s.underWay.begin([2]string{"", "d"}) {
		t.Fatal("no request has this key")
	}
	if w, _ := put("d", body); w.Code != http.StatusConflict {
		t.Errorf("under way: %d %s", w.Code, w.Body)
	}
	s.underWay.end([2]string{"", "d"})
	if w, got := put("d", body); w.Code != http.StatusOK || got.Unchanged != 4 {
		t.Errorf("no longer under way: %d %s", w.Code, w.Body)
	}
}
