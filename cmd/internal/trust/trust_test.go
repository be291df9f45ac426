package trust

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

func TestHasOrigin(t *testing.T) {
	for _, tc := range []struct {
		given, origin string
		want          bool
	}{
		{"", "a", false}, {"a.csv:7", "a.csv:7", true}, {"a.csv:7", "a.csv:70", false}, {"a.csv", "a.csv:7", true}, {"a", "a.csv:7", false},
		{"data", "data/a.csv:7", true}, {"data/", "data/a.csv:7", true}, {"ata", "data/a.csv:7", false}, {"smoke#2", "smoke#2/1", true},
		{"smoke", "smoke#2/1", true}, {"smoke#2", "smoke#21/1", false}, {"a", "", false},
	} {
		s := Selection{Origins: []string{"other", tc.given}}
		if got := s.hasOrigin(tc.origin); got != tc.want {
			t.Errorf("%q chooses %q: %v, want %v", tc.given, tc.origin, got, tc.want)
		}
	}
	if s := (Selection{}); !s.hasOrigin("a") || !s.none() {
		t.Error("no origin chooses all")
	}
}

// TestExplain: of an outlier that is several repeats, the good ones are not meant, nor are rows of other configurations.
func TestExplain(t *testing.T) {
	row := func(dp int, sec float64) spec.Measurement {
		return spec.Measurement{Config: spec.Config{Model: spec.Model{Name: "m"}, Accelerator: spec.Accelerator{Name: "a"},
			Plan: spec.Plan{DP: dp, MicroBatch: 1}.Normal()}, Outcome: spec.OK, StepSec: []float64{sec}}
	}
	held := row(2, 1000).Quarantine("before")
	rows := []spec.Measurement{row(2, 10), row(2, 1000), row(4, 1000), held, row(2, 30), row(2, 200)}
	merged := row(2, 0)
	merged.StepSec = []float64{10, 1000, 30, 200} // median 115
	out := make([]string, len(rows))
	explain(out, rows, merged.Config.Key(), perfmodel.Outlier{Row: merged, Factor: 11.5})
	want := []string{"", "100 times the step time that the other rows predict", "", "", "", "20 times the step time that the other rows predict"}
	if d := cmp.Diff(want, out); d != "" {
		t.Error(d)
	}
	clear(out)
	explain(out, []spec.Measurement{row(2, 1)}, merged.Config.Key(), perfmodel.Outlier{Row: row(2, 1), Factor: 0.01})
	if out[0] != "the other rows predict 100 times this step time" {
		t.Errorf("a row too fast: %q", out[0])
	}
}

// lab returns a data directory with rows of Llama3-8B on 8 to 16 H100, 1.9 s per 8 samples of a device, from two
// sources. Two of lab/b are wrong.
func lab(t *testing.T) *datadir.Dir {
	t.Helper()
	d := &datadir.Dir{Given: t.TempDir(), Verb: "quarantine", Log: io.Discard}
	model, err := catalog.Model("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	h100, err := catalog.Accelerator("h100")
	if err != nil {
		t.Fatal(err)
	}
	var rows []spec.Measurement
	for i := range 12 {
		dp, ga := 8<<(i%2), 4<<(i%3)
		m := spec.Measurement{Config: spec.Config{Model: model, Accelerator: h100, Framework: "Megatron-LM", Shape: spec.Packed(dp, 8),
			Plan: spec.Plan{DP: dp, MicroBatch: 1, AccumSteps: ga + i/6, ZeRO: 1, Recompute: spec.RecomputeFull, Precision: spec.BF16}.Normal()},
			Outcome: spec.OK, StepSec: []float64{1.9 * float64(ga+i/6)}, Source: "lab/a", Origin: fmt.Sprintf("runs.csv:%d", i)}
		if i >= 8 {
			m.Source = "lab/b"
		}
		if i == 8 || i == 10 {
			m.StepSec[0] *= 40
		}
		rows = append(rows, m)
	}
	db, err := store.Open(filepath.Join(d.Given, "store"), store.Options{})
	if err == nil {
		err = errors.Join(db.Put(t.Context(), rows...), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func apply(t *testing.T, d *datadir.Dir, ch Change) *Changed {
	t.Helper()
	d.Verb = ch.Verb
	res, err := ch.Apply(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// states counts the rows of d by source and state.
func states(t *testing.T, d *datadir.Dir, s Selection) map[string]int {
	t.Helper()
	gs, err := List(t.Context(), d, s)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, g := range gs {
		out[g.Source+" "+g.State] += g.Rows
	}
	return out
}

// TestOutliers: outliers are found by all rows of their model and accelerator, and changed only where they are selected.
func TestOutliers(t *testing.T) {
	d := lab(t)
	find := func(ch Change) (origins, reasons []string) {
		ch.Verb, ch.Outliers, ch.DryRun = "quarantine", true, true
		for _, touched := range apply(t, d, ch).Touched {
			origins, reasons = append(origins, touched.Origin), append(reasons, touched.Reason)
		}
		slices.Sort(origins)
		return origins, reasons
	}
	both := []string{"runs.csv:10", "runs.csv:8"}
	got, reasons := find(Change{Reason: "throttled"})
	if d := cmp.Diff(both, got); d != "" || !strings.HasPrefix(reasons[0], "throttled: ") || !strings.HasSuffix(reasons[0], "times the step time that the other rows predict") {
		t.Errorf("reasons %q\n%s", reasons, d)
	}
	if got, _ := find(Change{Selection: Selection{Filter: store.Filter{Sources: []string{"LAB/B"}}, Origins: []string{"runs.csv:8"}}}); !slices.Equal(got, both[1:]) {
		t.Errorf("with a source and an origin: %q, want %q", got, both[1:])
	}
	ch := Change{Verb: "quarantine", Outliers: true, Selection: Selection{Filter: store.Filter{Sources: []string{"lab/a"}}}}
	if _, err := ch.Apply(t.Context(), d); fail.Code(err) != fail.NoAnswer || !strings.Contains(err.Error(), "contradict none") {
		t.Errorf("outliers of the good source: %v", err)
	}
	if d := cmp.Diff(map[string]int{"lab/a used": 8, "lab/b used": 4}, states(t, d, Selection{})); d != "" {
		t.Errorf("a dry run changed rows:\n%s", d)
	}
	apply(t, d, Change{Verb: "quarantine", Outliers: true})
	if d := cmp.Diff(map[string]int{"lab/a used": 8, "lab/b used": 2, "lab/b quarantined": 2}, states(t, d, Selection{})); d != "" {
		t.Error(d)
	}
	rows, err := d.Rows(t.Context(), store.Filter{})
	if n := len(slices.DeleteFunc(rows, func(m spec.Measurement) bool { return !perfmodel.Usable(m) })); n != 10 || err != nil {
		t.Errorf("%d usable rows, %v, want 10", n, err)
	}
}

// TestChanges makes each change twice: the second time nothing changes, and the counts say so.
func TestChanges(t *testing.T) {
	d := lab(t)
	all := Selection{Filter: store.Filter{Models: []string{"llama3 8b"}}}
	for _, step := range []struct {
		verb             string
		changed, of      int
		want             map[string]int
		again            string // error of the same change once more, "" = none
		againUnchanged   int
		onlyOrigin       string
		reasonOfReleased string
	}{
		{"quarantine", 1, 1, map[string]int{"lab/a used": 7, "lab/a quarantined": 1, "lab/b used": 4}, "", 1, "runs.csv:0", ""},
		{"quarantine", 11, 12, map[string]int{"lab/a quarantined": 8, "lab/b quarantined": 4}, "", 12, "", ""},
		{"forget", 1, 1, map[string]int{"lab/a quarantined": 7, "lab/a forgotten": 1, "lab/b quarantined": 4}, "all 1 selected rows are forgotten already", 0, "runs.csv:0", ""},
		{"release", 12, 12, map[string]int{"lab/a used": 7, "lab/b used": 4}, "none of the 11 selected rows is quarantined or forgotten", 0, "", "because"},
	} {
		ch := Change{Selection: all, Verb: step.verb}
		if step.verb != "release" {
			ch.Reason = "because"
		}
		if step.onlyOrigin != "" {
			ch.Origins = []string{step.onlyOrigin}
		}
		res := apply(t, d, ch)
		if res.Changed != step.changed || res.Rows != step.of || res.Unchanged != step.of-step.changed || len(res.Touched) != step.changed {
			t.Errorf("%s: %d of %d changed, %d unchanged, %d listed; want %d of %d", step.verb, res.Changed, res.Rows, res.Unchanged, len(res.Touched), step.changed, step.of)
		}
		if step.reasonOfReleased != "" && res.Touched[0].Reason != step.reasonOfReleased {
			t.Errorf("%s: reason %q, want %q", step.verb, res.Touched[0].Reason, step.reasonOfReleased)
		}
		sum := SourceCount{}
		for _, s := range res.Sources {
			sum.Rows, sum.Changed, sum.Unchanged = sum.Rows+s.Rows, sum.Changed+s.Changed, sum.Unchanged+s.Unchanged
		}
		if sum != (SourceCount{"", res.Rows, res.Changed, res.Unchanged}) {
			t.Errorf("%s: the sources add up to %+v, want %+v", step.verb, sum, res)
		}
		if d := cmp.Diff(step.want, states(t, d, Selection{})); d != "" {
			t.Errorf("%s:\n%s", step.verb, d)
		}
		again, err := ch.Apply(t.Context(), d)
		switch {
		case step.again != "":
			if fail.Code(err) != fail.NoAnswer || !strings.Contains(err.Error(), step.again) {
				t.Errorf("%s again: %v, want %q", step.verb, err, step.again)
			}
		case err != nil || again.Changed != 0 || again.Unchanged != step.againUnchanged:
			t.Errorf("%s again: %+v, %v, want %d unchanged", step.verb, again, err, step.againUnchanged)
		}
	}
}

// TestResult: the table of a dry run has the first rows and says how many there are besides.
func TestResult(t *testing.T) {
	for n, more := range map[int]string{maxTouched: "", maxTouched + 1: "\n1 more rows: --output json has all\n"} {
		res := Changed{Sources: []SourceCount{{"lab/a", n, n, 0}}}
		for i := range n {
			res.Touched = append(res.Touched, Touched{Source: "lab/a", Origin: fmt.Sprintf("runs.csv:%d", i), Reason: "odd"})
		}
		for _, rows := range []bool{false, true} {
			var b strings.Builder
			if err := res.Result(rows).Write(&b, "table"); err != nil {
				t.Fatal(err)
			}
			text := b.String()
			listed := strings.Count(text, "runs.csv:")
			if !strings.HasPrefix(text, "source") || rows && (listed != maxTouched || !strings.HasSuffix(text, more) || (more == "") == strings.Contains(text, " more ")) || !rows && listed > 0 {
				t.Errorf("%d rows, listed %v: %d are, in\n%s", n, rows, listed, text)
			}
		}
	}
}

// TestRefits: the command names the fitted models of changed rows, by family, or none if they are many.
func TestRefits(t *testing.T) {
	d := &datadir.Dir{Given: t.TempDir(), Log: io.Discard}
	reg, err := d.Fitted()
	if err != nil {
		t.Fatal(err)
	}
	fam, err := family.Lookup("hybrid")
	if err != nil {
		t.Fatal(err)
	}
	var keys []spec.Key
	for _, name := range []string{"a", "b", "c", "d"} {
		keys = append(keys, spec.Key{Model: name, Accelerator: "x"})
		if err := reg.Put(perfmodel.Card{Key: keys[len(keys)-1], Family: "hybrid", NFit: 1}, fam.Unfitted); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range map[int][]string{0: nil, 1: {`pacer fit --family hybrid --model "a"`},
		3: {`pacer fit --family hybrid --model "a" --model "b" --model "c"`}, 4: {"pacer fit --family hybrid"}} {
		got, err := (&Changed{keys: append(keys[:n:n], spec.Key{Model: "a", Accelerator: "y"})}).Refits(d)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d models: %q, %v, want %q", n, got, err, want)
		}
	}
}

// TestFormat2: every command works on a store of the format before marks.
func TestFormat2(t *testing.T) {
	d := &datadir.Dir{Given: t.TempDir(), Log: io.Discard}
	unpack(t, "../../../profiler/store/testdata/format2.tar.gz", filepath.Join(d.Given, "store"))
	if d := cmp.Diff(map[string]int{"frozen used": 54, "frozen in doubt": 6}, states(t, d, Selection{})); d != "" {
		t.Fatal(d)
	}
	gs, err := List(t.Context(), d, Selection{})
	if err != nil || gs[0].By != "" || gs[0].At != nil {
		t.Errorf("rows of an earlier release are from %+v, %v", gs[0], err)
	}
	sheet := Selection{Filter: store.Filter{Sources: []string{"frozen"}}, Origins: []string{"sheet"}}
	for _, step := range []struct {
		verb  string
		state string
		n     int
	}{{"quarantine", "frozen quarantined", 60}, {"release", "frozen used", 54}, {"forget", "frozen forgotten", 60}} {
		if res := apply(t, d, Change{Selection: sheet, Verb: step.verb, Reason: "old"}); res.Changed != 60 {
			t.Errorf("%s: %d rows changed, want 60", step.verb, res.Changed)
		}
		if got := states(t, d, sheet)[step.state]; got != step.n {
			t.Errorf("%s: %d rows %s, want %d", step.verb, got, step.state, step.n)
		}
	}
	apply(t, d, Change{Selection: sheet, Verb: "release"})
	if _, err := List(t.Context(), d, Selection{}); fail.Code(err) != fail.NoAnswer {
		t.Errorf("after all rows are gone: %v", err)
	}
}

func unpack(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	for r := tar.NewReader(gz); err == nil; {
		var h *tar.Header
		var b []byte
		if h, err = r.Next(); err == nil {
			b, err = io.ReadAll(r)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o644)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// TestGroups: rows count together if all but their times agree; the last time is shown.
func TestGroups(t *testing.T) {
	at := func(h int) time.Time { return time.Date(2026, 1, 1, h, 0, 0, 0, time.UTC) }
	from := func(file string, h int) *store.Provenance {
		return &store.Provenance{By: "ann@lab", From: file, At: at(h)}
	}
	row := spec.Measurement{Outcome: spec.OK, StepSec: []float64{1}, Source: "s"}
	doubted := row
	doubted.Doubt = "odd"
	mark := &store.Mark{Reason: "bad", By: "bob@lab", At: at(9)}
	got := Groups([]store.Record{{Row: doubted, Provenance: from("a", 1)}, {Row: row, Provenance: from("a", 3)}, {Row: row, Provenance: from("a", 2)},
		{Row: row, Provenance: from("b", 1)}, {Row: row.Quarantine("bad"), Provenance: from("a", 1), Quarantined: mark}, {Row: row, Forgotten: mark}, {Row: row}})
	when := func(h int) *time.Time { v := at(h); return &v }
	want := []Group{
		{Source: "s", State: "used", Rows: 1},
		{Source: "s", State: "used", Rows: 2, By: "ann@lab", From: "a", At: when(3)},
		{Source: "s", State: "used", Rows: 1, By: "ann@lab", From: "b", At: when(1)},
		{Source: "s", State: "in doubt", Rows: 1, Reason: "odd", By: "ann@lab", From: "a", At: when(1)},
		{Source: "s", State: "quarantined", Rows: 1, Reason: "bad", By: "bob@lab", At: when(9)},
		{Source: "s", State: "forgotten", Rows: 1, Reason: "bad", By: "bob@lab", At: when(9)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
