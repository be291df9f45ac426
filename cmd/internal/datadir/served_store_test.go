package datadir

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// TestServedRows: the rows of a server are selected by outcome as those of a store are.
func TestServedRows(t *testing.T) {
	rows := rowfiletest.InventedRows(10)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page struct {
			Rows []map[string]any `json:"rows"`
		}
		for _, m := range rows {
			if source := r.URL.Query().Get("source"); source == "" || source == m.Source {
				page.Rows = append(page.Rows, map[string]any{"measurement": m})
			}
		}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	defer web.Close()
	here := &Dir{Given: t.TempDir(), Log: t.Output()}
	db, err := here.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Put(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filter store.Filter
		want   int
	}{
		{store.Filter{}, 10},
		{store.Filter{Outcomes: []spec.Outcome{"oom"}}, 1},
		{store.Filter{Outcomes: []spec.Outcome{"ok", "oom"}, Sources: []string{"invented/1"}}, 2},
		{store.Filter{Outcomes: []spec.Outcome{"failed"}}, 0},
	} {
		for _, d := range []*Dir{here, {Remote: web.URL}} {
			var got []string
			err := d.ReadServed(func(s reader.Store) error {
				found, err := query.RowsOf(t.Context(), s, c.filter)
				for _, m := range found {
					got = append(got, m.Origin)
				}
				return err
			})
			if err != nil || len(got) != c.want {
				t.Errorf("%+v of %q: %v, %v, want %d rows", c.filter, d.Remote, got, err, c.want)
			}
		}
	}
}

// TestServedHint: the hint beside a server is a command that curl accepts, also where it listens on a socket file.
func TestServedHint(t *testing.T) {
	d := &Dir{Given: t.TempDir()}
	for url, want := range map[string]string{
		"http://127.0.0.1:8470": "curl -s http://127.0.0.1:8470/v1/measurements;",
		"unix:/run/pacer.sock":  "curl -s --unix-socket /run/pacer.sock http://localhost/v1/measurements;",
	} {
		withdraw, err := Announce(d.Given, url)
		if err != nil {
			t.Fatal(err)
		}
		locked := &store.LockedError{PID: os.Getpid()}
		for verb, want := range map[string]string{"measurements": want, "store": strings.Replace(want, "v1/measurements", "openapi.json", 1)} {
			d.Verb = verb
			if err := d.addServer(d.Given, locked); !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		if err := withdraw(); err != nil {
			t.Error(err)
		}
	}
}
