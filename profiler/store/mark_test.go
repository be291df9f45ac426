package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// atNoon are options with a fixed provenance.
var atNoon = Options{By: "ann@lab", From: "rows.csv", Now: func() time.Time { return noon }}

// records returns the records that f selects.
func records(t testing.TB, db *DB, f Filter) []Record {
	t.Helper()
	rs, err := db.Records(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// repeated returns n equal reasons.
func repeated(reason string, n int) []string { return slices.Repeat([]string{reason}, n) }

// markState is what a store should know about one row.
type markState struct {
	stored      bool
	quarantined string // reason
	forgotten   bool
}

// TestMarksProperty compares a store with a model of it, after every one of many changes in any order: quarantine and
// release restore each row exactly, a forgotten row comes back only after its release, a quarantined one stays so
// however often it is stored, and rows of an export keep the state of the store.
func TestMarksProperty(t *testing.T) {
	ctx := context.Background()
	db := openTest(t, t.TempDir(), Options{})
	sequence := 0
	rapid.Check(t, func(rt *rapid.T) {
		sequence++
		const n = 5
		source := fmt.Sprint("s", sequence)
		f := Filter{Sources: []string{source}}
		rows := make([]spec.Measurement, n)
		want := make([]markState, n)
		for i := range rows {
			rows[i] = rowfiletest.Invented(i) // row 4 is doubted by its source, too
			rows[i].Source = source
		}
		rows[4].Doubt = "warm-up counted"
		for range rapid.IntRange(1, 12).Draw(rt, "changes") {
			chosen := rapid.SliceOfN(rapid.IntRange(0, n-1), 1, n).Draw(rt, "rows")
			change := rapid.SampledFrom([]string{"put", "put quarantined", "quarantine", "release", "forget"}).Draw(rt, "change")
			var rs []Record
			for _, r := range records(t, db, f) {
				if slices.ContainsFunc(chosen, func(i int) bool { return rows[i].Origin == r.Row.Origin }) {
					rs = append(rs, r)
				}
			}
			var err error
			switch change {
			case "put", "put quarantined":
				for _, i := range chosen {
					m := rows[i]
					if change == "put quarantined" {
						m = m.Quarantine("in the file")
					}
					if _, err = db.PutAll(ctx, m); err == nil && !want[i].stored && !want[i].forgotten {
						_, reason := m.Unquarantine()
						want[i] = markState{stored: true, quarantined: reason}
					}
				}
			case "quarantine":
				_, err = db.Quarantine(ctx, rs, repeated("odd", len(rs)))
			case "release":
				_, err = db.Release(ctx, rs)
			case "forget":
				_, err = db.Forget(ctx, rs, "worse")
			}
			if err != nil {
				rt.Fatal(err)
			}
			for _, i := range chosen {
				switch s := &want[i]; {
				case change == "quarantine" && s.stored && s.quarantined == "":
					s.quarantined = "odd"
				case change == "release":
					s.quarantined, s.forgotten = "", false
				case change == "forget" && s.stored:
					*s = markState{forgotten: true}
				}
			}
			var all []spec.Measurement
			forgotten := 0
			for i, s := range want {
				m := rows[i]
				if s.quarantined != "" {
					m = m.Quarantine(s.quarantined)
				}
				if s.stored {
					all = append(all, m)
				}
				if s.forgotten {
					forgotten++
				}
			}
			byOrigin := cmpopts.SortSlices(func(a, b spec.Measurement) bool { return a.Origin < b.Origin })
			if d := cmp.Diff(all, collect(t, db, f), byOrigin, cmpopts.EquateEmpty()); d != "" {
				rt.Fatalf("after %s of %v:\n%s", change, chosen, d)
			}
			if got, err := db.Forgotten(ctx, f); err != nil || len(got) != forgotten {
				rt.Fatalf("%d rows forgotten, %v, want %d", len(got), err, forgotten)
			}
		}
	})
}

func TestMarksKept(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	db := mustOpen(t, dir, atNoon)
	if err := db.Put(ctx, rowfiletest.Invented(0), rowfiletest.Invented(1), rowfiletest.Invented(2)); err != nil {
		t.Fatal(err)
	}
	rs := records(t, db, Filter{})
	if _, err := db.Quarantine(ctx, rs[:1], []string{"odd"}); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Quarantine(ctx, rs[:2], []string{"later", "even"}); n != 1 || err != nil {
		t.Errorf("%d rows quarantined, %v, want the one that was not", n, err)
	}
	if n, err := db.Forget(ctx, rs[2:], "lost"); n != 1 || err != nil {
		t.Errorf("%d rows forgotten, %v", n, err)
	}
	if n, err := db.Release(ctx, append(rs[2:], Record{key: []byte("rnone")})); n != 1 || err != nil {
		t.Errorf("%d rows released, %v, want the forgotten one", n, err)
	}
	if err := db.Put(ctx, rowfiletest.Invented(0), rowfiletest.Invented(1), rowfiletest.Invented(2)); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Forget(ctx, rs[2:], "lost"); n != 1 || err != nil {
		t.Errorf("%d rows forgotten, %v", n, err)
	}
	if n, err := db.Forget(ctx, rs[2:], "again"); n != 0 || err != nil {
		t.Errorf("%d rows forgotten twice, %v", n, err)
	}
	mustClose(t, db)
	db = openTest(t, dir, Options{ReadOnly: true})
	got := records(t, db, Filter{})
	mark := func(reason string) *Mark { return &Mark{reason, "ann@lab", noon} }
	if len(got) != 3 {
		t.Fatalf("%d records, want 3", len(got))
	}
	if d := cmp.Diff([]*Mark{mark("odd"), mark("even"), nil}, []*Mark{got[0].Quarantined, got[1].Quarantined, got[2].Quarantined}); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(mark("lost"), got[2].Forgotten); d != "" || got[2].Row.Origin != rs[2].Row.Origin {
		t.Errorf("origin %q, want %q\n%s", got[2].Row.Origin, rs[2].Row.Origin, d)
	}
	if d := cmp.Diff(&Provenance{By: "ann@lab", From: "rows.csv", At: noon}, got[0].Provenance); d != "" {
		t.Error(d)
	}
	for _, change := range []func() (int, error){
		func() (int, error) { return db.Quarantine(ctx, rs, repeated("x", 3)) },
		func() (int, error) { return db.Forget(ctx, rs, "x") },
		func() (int, error) { return db.Release(ctx, rs) },
	} {
		if n, err := change(); n != 0 || !errors.Is(err, ErrReadOnly) {
			t.Errorf("%d rows changed in a read-only store, %v", n, err)
		}
	}
}

// A row replaced in place has the provenance of the new values; one that is stored already keeps its own.
func TestProvenance(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	for i, step := range []struct {
		change func(*spec.Measurement)
		want   string
	}{
		{func(*spec.Measurement) {}, "file 0"},
		{func(*spec.Measurement) {}, "file 0"},
		{func(m *spec.Measurement) { m.Config.Model.Vocab++ }, "file 2"},
	} {
		db := mustOpen(t, dir, Options{By: "bob@lab", From: fmt.Sprint("file ", i), Now: atNoon.Now})
		m := rowfiletest.Invented(0)
		step.change(&m)
		if err := db.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
		rs := records(t, db, Filter{})
		if len(rs) != 1 || rs[0].Provenance == nil || rs[0].Provenance.From != step.want || rs[0].Provenance.By != "bob@lab" {
			t.Errorf("step %d: %+v, want one row from %s", i, rs, step.want)
		}
		mustClose(t, db)
	}
	db := openTest(t, t.TempDir(), Options{})
	if p := db.provenance(); !strings.Contains(p.By, "@") || p.At.IsZero() {
		t.Errorf("provenance %+v, want user@host and a time", p)
	}
}

// TestMarksOfMany: more rows than a transaction can change are changed in several.
func TestMarksOfMany(t *testing.T) {
	if testing.Short() {
		t.Skip("changes thousands of rows, in one goroutine")
	}
	ctx := context.Background()
	db := openTest(t, t.TempDir(), Options{})
	const n = 9000
	rows := make([]spec.Measurement, n)
	for i := range rows {
		rows[i] = rowfiletest.Invented(i)
		rows[i].StepSec, rows[i].Outcome, rows[i].Config.Model.Name = []float64{1}, spec.OK, strings.Repeat("m", rowfile.MaxName)
	}
	if err := db.Put(ctx, rows...); err != nil {
		t.Fatal(err)
	}
	rs := records(t, db, Filter{})
	if got, err := db.Quarantine(ctx, rs, repeated(strings.Repeat("r", maxReason), n)); got != n || err != nil {
		t.Fatalf("quarantine: %d rows, %v, want %d", got, err, n)
	}
	for i, m := range collect(t, db, Filter{}) {
		if !m.Quarantined() {
			t.Fatalf("row %d is not quarantined", i)
		}
	}
	if got, err := db.Forget(ctx, rs, ""); got != n || err != nil {
		t.Fatalf("forget: %d rows, %v, want %d", got, err, n)
	}
	if left := records(t, db, Filter{}); len(left) != n || left[0].Forgotten == nil {
		t.Fatalf("%d records, want %d forgotten ones", len(left), n)
	}
	if got, err := db.Release(ctx, rs); got != n || err != nil {
		t.Fatalf("release: %d rows, %v, want %d", got, err, n)
	}
	if left := records(t, db, Filter{}); len(left) != 0 {
		t.Errorf("%d records left, want none", len(left))
	}
}

// A forgotten row is known from any folder, as a stored one is.
func TestForgottenOrigins(t *testing.T) {
	ctx := context.Background()
	db := openTest(t, t.TempDir(), atNoon)
	m := rowfiletest.Invented(1)
	m.Origin = "data/t.csv:2"
	if err := db.Put(ctx, m); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Forget(ctx, records(t, db, Filter{}), "odd"); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"t.csv:2": "data/t.csv:2", "a/data/t.csv:2": "data/t.csv:2", "t.csv:3": "t.csv:3"} {
		m.Origin = given
		got, mark, err := NewOrigins(db).Stored(ctx, m)
		if err != nil || got != want || (mark != nil) != (want == "data/t.csv:2") {
			t.Errorf("%s: %q, %+v, %v, want %q", given, got, mark, err, want)
		}
		if mark != nil && (mark.Reason != "odd" || !mark.At.Equal(noon)) {
			t.Errorf("%s: forgotten by %+v", given, mark)
		}
	}
	m.Origin = "data/t.csv:2"
	if c, err := db.PutAll(ctx, m, m); err != nil || c != (Counts{Forgotten: 2}) {
		t.Errorf("%+v, %v, want 2 forgotten", c, err)
	}
	if err := db.Put(ctx, m, rowfiletest.Invented(2)); err == nil || !strings.Contains(err.Error(), "1 of 2 rows not stored: they were forgotten before") {
		t.Errorf("Put of a forgotten row: %v", err)
	}
	if rows := collect(t, db, Filter{}); len(rows) != 1 || rows[0].Origin != rowfiletest.Invented(2).Origin {
		t.Errorf("%+v is stored, want the row that was not forgotten", rows)
	}
}

// TestQuarantinedWithoutReason: a row that comes quarantined stays so if its mark has no reason.
func TestQuarantinedWithoutReason(t *testing.T) {
	db := openTest(t, t.TempDir(), atNoon)
	mustPut(t, db, rowfiletest.Invented(0).Quarantine(""))
	rows := collect(t, db, Filter{})
	if len(rows) != 1 || !rows[0].Quarantined() {
		t.Fatalf("%+v, want a quarantined row", rows)
	}
	if rs := records(t, db, Filter{}); rs[0].Quarantined == nil || rs[0].Quarantined.By != "ann@lab" {
		t.Errorf("%+v, want a mark", rs[0])
	}
}

func TestCheckReason(t *testing.T) {
	db := filled(t, 1)
	rs := records(t, db, Filter{})
	for reason, want := range map[string]string{
		"a\nb": "one line", "\xff": "one line", strings.Repeat("x", maxReason+1): "501 bytes", "odd; besides: even": "separator",
	} {
		for what, err := range map[string]error{
			"check":      CheckReason(reason),
			"quarantine": second(db.Quarantine(t.Context(), rs, []string{reason})),
			"forget":     second(db.Forget(t.Context(), rs, reason)),
		} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store: ") {
				t.Errorf("%s with reason %q: %v, want one with %q", what, reason, err, want)
			}
		}
	}
	if err := CheckReason("throttled: 60 °C"); err != nil {
		t.Error(err)
	}
	if rs := records(t, db, Filter{}); len(rs) != 1 || rs[0].Quarantined != nil {
		t.Errorf("%+v, want one row without a mark", rs)
	}
	if _, err := db.Quarantine(t.Context(), rs, nil); err == nil || !strings.Contains(err.Error(), "0 reasons to quarantine 1 rows") {
		t.Errorf("no reasons: %v", err)
	}
}

func second(_ int, err error) error { return err }
