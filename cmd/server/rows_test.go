package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// pageOf gets a page of rows.
func pageOf(t *testing.T, s *Server, q string) Rows {
	t.Helper()
	w := do(s, http.MethodGet, "/v1/measurements/rows?"+q, "")
	var out Rows
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", q, w.Code, w.Body)
	}
	return out
}

// Every row that is stored throughout is given once, while others are stored and deleted between the pages.
func TestRowsPageByPage(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{slices.Concat(rows, as(rows, "Llama2-7B"))}))
	others := as(rows, "GPT2-XL")
	seen := map[string]int{}
	cursor := ""
	for page := 0; ; page++ {
		got := pageOf(t, s, "limit=5&cursor="+url.QueryEscape(cursor))
		for _, r := range got.Rows {
			if r.Provenance == nil || r.Quarantined != nil {
				t.Errorf("%+v", r)
			}
			if r.Measurement.Config.Model.Name != "GPT2-XL" {
				seen[r.Measurement.Config.Model.Name+" "+r.Measurement.Origin]++
			}
		}
		if cursor = got.Next; cursor == "" {
			break
		}
		if len(got.Rows) != 5 {
			t.Errorf("page %d has %d rows", page, len(got.Rows))
		}
		post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{others[page%len(others) : page%len(others)+1]}))
		if page == 1 { // what a cursor stands at may go
			found, _, err := s.db.Page(t.Context(), store.Filter{Models: []string{"GPT2-XL"}}, nil, 1, 1)
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			if _, err := s.db.Forget(t.Context(), found, "test"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != 2*len(rows) {
		t.Errorf("%d rows, want %d", len(seen), 2*len(rows))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s was given %d times", name, n)
		}
	}
	if got := pageOf(t, s, "model=llama2-7b&limit=1000"); len(got.Rows) != len(rows) || got.Next != "" || got.Rows[0].Measurement.Config.Model.Name != "Llama2-7B" {
		t.Errorf("%d rows of one model", len(got.Rows))
	}
	if got := pageOf(t, s, "source=nobody"); len(got.Rows) != 0 || got.Next != "" {
		t.Errorf("%+v", got)
	}
	for q, says := range map[string]string{"outcome=bad": "query.outcome", "outcomes=oom": "query.outcomes", "%zz": "invalid URL escape", "cursor=***": "query.cursor", "cursor=YWJj": "query.cursor", "limit=0": "query.limit", "limit=1001": "query.limit", "limit=x": "query.limit"} {
		if w := do(s, http.MethodGet, "/v1/measurements/rows?"+q, ""); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", q, w.Code, w.Body)
		}
	}
}

// Pages select by how measurements ended.
func TestRowsByOutcome(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	full := as(rows[:2], "Llama2-7B")
	for i := range full {
		full[i].Outcome, full[i].StepSec, full[i].PhaseSec = spec.OOM, nil, nil
	}
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{slices.Concat(rows, full)}))
	for q, want := range map[string]int{"outcome=oom": 2, "outcome=oom&outcome=timeout": 2, "outcome=failed": 0, "outcome=ok": len(rows),
		"outcome=ok&outcome=oom": len(rows) + 2, "outcome=ok&model=llama2-7b": 0} {
		if got := pageOf(t, s, "limit=1000&"+q); len(got.Rows) != want {
			t.Errorf("%s: %d rows, want %d", q, len(got.Rows), want)
		}
	}
}

// A page ends where its records are large, and continues there.
func TestPageIsBounded(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	n := 0
	for after := []byte(nil); ; {
		found, next, err := s.db.Page(t.Context(), store.Filter{}, after, 1000, 1)
		if err != nil || len(found) != 1 {
			t.Fatalf("%d rows, %v", len(found), err)
		}
		n++
		if after = next; after == nil {
			break
		}
	}
	if n != len(rows) {
		t.Errorf("%d rows, want %d", n, len(rows))
	}
}

// A client that disconnects gets all rows of a source deleted, and its models refitted.
func TestForgetIsNotCut(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	before := s.models.Generation()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := s.forget(ctx, &forgetRequest{Source: rows[0].Source})
	if err != nil || got.Rows != len(rows) || len(pageOf(t, s, "").Rows) != 0 || s.models.Generation() == before {
		t.Errorf("%+v, %v", got, err)
	}
}

// A parameter with a typing error deletes nothing.
func TestForgetUnknownParameter(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	w := do(s, http.MethodDelete, "/v1/measurements?dryrun=true&source="+url.QueryEscape(rows[0].Source), "")
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "want source, reason, dry_run") || len(pageOf(t, s, "limit=1000").Rows) != len(rows) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Deleting a source deletes its rows alone, and the models that nothing is left of; its rows are not stored again.
func TestForgetSource(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	mine := as(rows, "Llama2-7B")
	for i := range mine {
		mine[i].Source = "mine"
	}
	all := bodyOf(t, rowsToPost{slices.Concat(rows, mine)})
	post[Stored](t, s, "/v1/measurements", all)
	if got := post[FitResponse](t, s, "/v1/fit", `{}`); len(got.Cards) != 2 {
		t.Fatalf("%+v", got)
	}
	forget := func(q string, code int) (out Forgotten) {
		t.Helper()
		w := do(s, http.MethodDelete, "/v1/measurements?"+q, "")
		if w.Code != code {
			t.Fatalf("%s: %d %s", q, w.Code, w.Body)
		}
		_ = json.Unmarshal(w.Body.Bytes(), &out) // a problem has other fields
		return out
	}
	forget("", http.StatusUnprocessableEntity)
	forget("source=nobody", http.StatusNotFound)
	forget("source=mine&reason="+strings.Repeat("x", 501), http.StatusUnprocessableEntity)
	if got := forget("source=mine&dry_run=true", http.StatusOK); got.Rows != len(mine) || !got.DryRun || len(pageOf(t, s, "source=mine").Rows) != len(mine) {
		t.Errorf("%+v", got)
	}
	s.fits.Take()
	if err := s.fits.Done(true); err != nil {
		t.Fatal(err)
	}
	if got := forget("source=mine&reason=a+wrong+clock", http.StatusOK); got.Rows != len(mine) || got.DryRun {
		t.Errorf("%+v", got)
	}
	if keys, _ := s.fits.Waiting(); keys != 1 {
		t.Errorf("%d models are to be refitted, want 1", keys)
	}
	if got := pageOf(t, s, "limit=1000"); len(got.Rows) != len(rows) || slices.ContainsFunc(got.Rows, func(r Row) bool { return r.Measurement.Source == "mine" }) {
		t.Errorf("%d rows are left", len(got.Rows))
	}
	if cards := s.resolver.Cards(); len(cards) != 1 || cards[0].Model != rows[0].Config.Model.Name {
		t.Errorf("%+v", cards)
	}
	if got := post[Stored](t, s, "/v1/measurements", all); got.Forgotten != len(mine) {
		t.Errorf("%+v", got)
	}
	if _, err := s.models.BestFor(spec.Key{Model: "Llama2-7B", Accelerator: rows[0].Config.Accelerator.Name}, "hybrid"); err != nil {
		t.Error(err)
	}
}
