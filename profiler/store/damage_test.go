package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestDamagedAfterCrash damages the files of a killed writer in ways that a kill cannot.
func TestDamagedAfterCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a store of 24 damaged files")
	}
	dir := crashedStore(t)
	checkOpens(t, dir)
	sst, mem, vlog := namedTable(t, dir), biggest(t, dir, "*.mem"), biggest(t, dir, "*.vlog")
	cases := []damage{
		{sst, flip(0)}, {sst, flip(0.3)}, {sst, flip(0.7)}, {sst, flip(0.99)}, {sst, flip(1)},
		{sst, truncate(0)}, {sst, truncate(0.5)}, {sst, truncate(0.999)}, {sst, nil},
		{mem, flipUsed(0)}, {mem, flipUsed(0.1)}, {mem, flipUsed(0.5)},
		{vlog, flipUsed(0)}, {vlog, flipUsed(0.5)}, {vlog, flip(0)},
		{"MANIFEST", flip(0)}, {"MANIFEST", flip(0.5)}, {"MANIFEST", truncate(0.1)}, {"MANIFEST", nil},
		{"KEYREGISTRY", flip(1)}, {"KEYREGISTRY", truncate(0.5)},
		{"VERSION", flip(0.2)}, {"VERSION", truncate(0)}, {"VERSION", nil},
	}
	for _, c := range cases {
		checkDamage(t, dir, c.name, c.change)
	}
}

// TestLostManifestEnd cuts whole records off the MANIFEST of a crashed store. The engine would delete the
// tables that they named.
func TestLostManifestEnd(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	size := func() int {
		b := spectest.ReadFile(t, filepath.Join(dir, "MANIFEST"))
		return len(b)
	}
	before := size()
	for i := 0; size() == before; i += 100 {
		mustPut(t, db, rowsFrom(i, 100)...)
	}
	mustPut(t, db, rowfiletest.Invented(1))
	crashed := copyDir(t, dir)
	db.Close()
	checkOpens(t, crashed)
	checkDamage(t, crashed, "MANIFEST", func(b []byte) []byte { return b[:before] })
}

// checkOpens checks that a copy of the store in dir opens.
func checkOpens(t *testing.T, dir string) {
	t.Helper()
	db := mustOpen(t, copyDir(t, dir), Options{})
	mustClose(t, db)
}

// TestTornLog cuts the last transaction of a log at different places; the store opens without it.
func TestTornLog(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	for i := range 5 {
		mustPut(t, db, rowfiletest.InventedRows(10 * (i + 1))[10*i:]...)
	}
	crashed := copyDir(t, dir)
	db.Close()
	log := biggest(t, crashed, "*.mem")
	b := spectest.ReadFile(t, filepath.Join(crashed, log))
	last, end := lastTxn(b)
	for _, at := range []int{last, last + 1, last + 30, (last + end) / 2, end - 1} {
		for _, torn := range [][2]int{{at, end}, {at, at + 1}} { // all of it, or all but one byte
			dir := copyDir(t, crashed)
			c := append([]byte{}, b...)
			for k := torn[0]; k < torn[1]; k++ {
				c[k] = 0xa5
			}
			spectest.WriteFile(t, filepath.Join(dir, log), c, 0o644)
			db, err := Open(dir, Options{})
			if err != nil {
				t.Errorf("bytes %d to %d: %v", torn[0], torn[1], err)
				continue
			}
			if n, err := db.Len(context.Background(), Filter{}); n != 40 || err != nil {
				t.Errorf("bytes %d to %d: %d rows, %v, want 40", torn[0], torn[1], n, err)
			}
			db.Close()
		}
	}
}

// lastTxn returns the offsets of the beginning and the end of the last transaction in a log.
func lastTxn(b []byte) (start, end int) {
	start, end = logHead, logHead
	ended := true
	for {
		e, ok := readEntry(b[end:])
		if !ok {
			return start, end
		}
		if ended {
			start = end
		}
		ended = e.flags&logInTxn == 0
		end += e.size
	}
}

// TestEmptyLogs opens a store after its writer was killed while creating logs.
func TestEmptyLogs(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	mustPut(t, db, rowfiletest.InventedRows(10)...)
	crashed := copyDir(t, dir)
	db.Close()
	for name, size := range map[string]int{"00099.mem": 0, "00098.mem": 1 << 16, "000099.vlog": 0, "000098.vlog": 1 << 16, ".SEAL.1": 3} {
		spectest.WriteFile(t, filepath.Join(crashed, name), make([]byte, size), 0o644)
	}
	db = openTest(t, crashed, Options{})
	if n, err := db.Len(context.Background(), Filter{}); n != 10 || err != nil {
		t.Errorf("%d rows, %v, want 10", n, err)
	}
}

// TestDamagedAfterClose damages every file of a closed store, in ways that a
// crash could explain as well.
func TestDamagedAfterClose(t *testing.T) {
	dir := t.TempDir()
	db := mustOpen(t, dir, Options{})
	for i := range 300 {
		mustPut(t, db, numbered(i))
	}
	mustClose(t, db)
	checkOpens(t, dir)
	for name := range snapshot(t, dir) {
		for _, change := range []func([]byte) []byte{flip(0), flip(0.4), flip(0.9), flip(1), truncate(0.5), truncate(0.999)} {
			checkDamage(t, dir, name, change)
		}
		if name != sealFile {
			checkDamage(t, dir, name, nil)
		}
	}
	extra := copyDir(t, dir)
	spectest.WriteFile(t, filepath.Join(extra, "000777.vlog"), []byte("x"), 0o644)
	if _, err := Open(extra, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a file too many: %v", err)
	}
}
