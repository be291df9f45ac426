package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

const markedRows = 6

// changeOnRequest opens a store and makes the change of each line of its input. It prints a line before the first and
// after every change, and never closes the store.
func changeOnRequest(dir string) error {
	ctx := context.Background()
	db, err := Open(dir, atNoon)
	if err != nil {
		return err
	}
	fmt.Println("open")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		rs, err := db.Records(ctx, Filter{})
		if err != nil {
			return err
		}
		switch in.Text() {
		case "put":
			_, err = db.PutAll(ctx, rowfiletest.InventedRows(markedRows)...)
		case "quarantine":
			_, err = db.Quarantine(ctx, rs, repeated("odd", len(rs)))
		case "forget":
			_, err = db.Forget(ctx, rs, "worse")
		case "release":
			_, err = db.Release(ctx, rs)
		}
		if err != nil {
			return err
		}
		fmt.Println("done")
	}
	return nil
}

// TestMarksKilled kills a process after each of several changes, and again with its log cut at 10 bytes of those that the
// change wrote, at each of them if PACER_SOAK is set: the store opens, and all rows of the change are as before it or as
// after it. At the whole length they are as after it, since it was acknowledged.
func TestMarksKilled(t *testing.T) {
	changes := []string{"put", "quarantine", "release", "quarantine", "forget", "put", "release", "put"}
	states := []string{"", "used", "quarantined", "used", "quarantined", "forgotten", "forgotten", "", "used"}
	if testing.Short() {
		changes = changes[:2]
	}
	for i, change := range changes {
		if i > 0 && change == changes[i-1] {
			continue
		}
		t.Run(fmt.Sprint(i, change), func(t *testing.T) {
			dir := t.TempDir()
			cmd, out, in := helper(t, "mark", dir)
			out.Scan()
			for _, c := range changes[:i] {
				fmt.Fprintln(in, c)
				out.Scan()
			}
			before := len(logOf(t, dir))
			fmt.Fprintln(in, change)
			if !out.Scan() || out.Text() != "done" {
				t.Fatalf("the change ended with %q", out.Text())
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			log := logOf(t, dir)
			if len(log) <= before && states[i] != states[i+1] {
				t.Fatalf("the change wrote nothing to the log of %d bytes", before)
			}
			old, step := 0, max(1, (len(log)-before)/9)
			if os.Getenv("PACER_SOAK") != "" {
				step = 1
			}
			for cut := before; cut <= len(log); cut += max(1, min(step, len(log)-1-cut)) { // the last two are len-1 and len
				got := stateAfterCrash(t, dir, log[:cut])
				switch {
				case got == states[i+1]:
				case got == states[i] && cut < len(log):
					old++
				default:
					t.Fatalf("log cut at byte %d of %d..%d: rows are %q, want %q before the change or %q after it", cut, before, len(log), got, states[i], states[i+1])
				}
			}
			if old == 0 && states[i] != states[i+1] {
				t.Error("no cut was before the change")
			}
		})
	}
}

// logOf returns the used part of the memtable's log of an open store.
func logOf(t *testing.T, dir string) []byte {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v, %v, want one", logs, err)
	}
	b := spectest.ReadFile(t, logs[0])
	return b[:walkLog(b).end]
}

// stateAfterCrash opens a copy of a store with another log, and returns the state of its rows, which must be one.
func stateAfterCrash(t *testing.T, dir string, log []byte) string {
	t.Helper()
	dir = copyDir(t, dir)
	logs, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
	spectest.WriteFile(t, logs[0], append(log[:len(log):len(log)], make([]byte, 4096)...), 0o644)
	db := openTest(t, dir, Options{})
	rs := records(t, db, Filter{})
	for _, r := range rs {
		if r.Quarantined != nil {
			if d := cmp.Diff(&Mark{"odd", "ann@lab", noon}, r.Quarantined); d != "" {
				t.Error(d)
			}
		}
	}
	return stateOf(rs)
}

// stateOf returns the states of rows: one, unless a change was torn.
func stateOf(rs []Record) string {
	var found []string
	for _, r := range rs {
		state := "used"
		switch {
		case r.Quarantined != nil:
			state = "quarantined"
		case r.Forgotten != nil:
			state = "forgotten"
		}
		if len(found) == 0 || found[len(found)-1] != state {
			found = append(found, state)
		}
	}
	return strings.Join(found, " and ")
}

// TestFormat2 opens a store as the release before format 3 closed it: its rows are as they were, also after each of
// their changes was made and taken back. Reading alone changes no file.
func TestFormat2(t *testing.T) {
	ctx := context.Background()
	dir := thaw(t, "testdata/format2.tar.gz")
	want := frozenWant(60)
	before := snapshot(t, dir)
	db := mustOpen(t, dir, Options{ReadOnly: true})
	if d := cmp.Diff(want, collect(t, db, Filter{})); d != "" {
		t.Fatal(d)
	}
	if rs := records(t, db, Filter{}); len(rs) != 60 || rs[0].Provenance != nil {
		t.Errorf("%d records, the first from %+v, want 60 of unknown provenance", len(rs), rs[0].Provenance)
	}
	mustClose(t, db)
	if d := cmp.Diff(before, snapshot(t, dir)); d != "" {
		t.Error("reading changed files")
	}
	db = openTest(t, dir, atNoon)
	if v, err := readVersion(dir); v != FormatVersion || err != nil {
		t.Errorf("VERSION names format %d, %v", v, err)
	}
	rs := records(t, db, Filter{})
	for _, change := range []func() (int, error){
		func() (int, error) { return db.Quarantine(ctx, rs, repeated("odd", len(rs))) },
		func() (int, error) { return db.Release(ctx, rs) },
		func() (int, error) { return db.Forget(ctx, rs, "worse") },
	} {
		if n, err := change(); n != 60 || err != nil {
			t.Fatalf("%d rows changed, %v, want 60", n, err)
		}
	}
	if c, err := db.PutAll(ctx, want...); err != nil || c != (Counts{Forgotten: 60}) {
		t.Errorf("%+v, %v, want 60 forgotten", c, err)
	}
	if n, err := db.Release(ctx, rs); n != 60 || err != nil {
		t.Errorf("%d rows released, %v", n, err)
	}
	if c, err := db.PutAll(ctx, want...); err != nil || c != (Counts{Added: 60}) {
		t.Errorf("%+v, %v, want 60 added", c, err)
	}
	if d := cmp.Diff(want, collect(t, db, Filter{})); d != "" {
		t.Error(d)
	}
}
