package store

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// killedRows is the number of rows of a call in these tests: they need several transactions.
const killedRows = 2 * maxTxnRows

func rowsFrom(first, n int) []spec.Measurement {
	out := make([]spec.Measurement, n)
	for i := range out {
		out[i] = numbered(first + i)
	}
	return out
}

func stored(t *testing.T, db *DB) int {
	t.Helper()
	n, err := db.Len(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// halfStored makes a store as of a program that was killed in the midst of a call.
func halfStored(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	db := mustOpen(t, dir, Options{})
	rows, err := db.encodeRows(rowsFrom(0, killedRows))
	if err == nil {
		err = saveBatch(dir, rows)
	}
	if err == nil {
		_, err = db.commit(rows[:batchLen(rows)], func(*badger.Txn, Counts) error { return nil })
	}
	if n := stored(t, db); n == 0 || n == killedRows {
		t.Fatalf("%d rows are stored, want a part of %d", n, killedRows)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOpenFinishesBatch: a store opens with all rows of a call that a killed program has stored in part.
func TestOpenFinishesBatch(t *testing.T) {
	half := halfStored(t)
	for _, readOnly := range []bool{false, true} {
		dir := copyDir(t, half)
		db := mustOpen(t, dir, Options{ReadOnly: readOnly})
		if n := stored(t, db); n != killedRows || hasBatch(dir) {
			t.Errorf("%d rows, want %d; the rest is kept: %v", n, killedRows, hasBatch(dir))
		}
		mustClose(t, db)
		if n := checkAcked(t, dir, killedRows, true); n != killedRows {
			t.Errorf("%d rows", n)
		}
	}
}

// TestDamagedBatch: a store with a damaged rest of a call does not open, and the error names the file.
func TestDamagedBatch(t *testing.T) {
	dir := halfStored(t)
	path := filepath.Join(dir, batchFile)
	good := spectest.ReadFile(t, path)
	rows, err := savedBatch(dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(bad []byte) {
		spectest.WriteFile(t, path, bad, 0o600)
	}
	rng, refused, flips := rand.New(rand.NewPCG(9, 1)), []byte(nil), 100
	for range flips {
		bad := slices.Clone(good)
		at := rng.IntN(len(bad))
		bad[at] ^= 1 << rng.IntN(8)
		write(bad)
		switch got, err := savedBatch(dir); {
		case errors.Is(err, ErrCorrupt):
			refused = bad
		case err != nil || !reflect.DeepEqual(got, rows): // a copy of other bytes that are equal is no damage
			t.Errorf("a bit of byte %d of %d is flipped: %d rows of %d, %v", at, len(bad), len(got), len(rows), err)
		}
	}
	var ends bytes.Buffer // gob ends at an empty message
	z, err := zstd.NewWriter(&ends)
	if err != nil {
		t.Fatal(err)
	}
	out := gob.NewEncoder(z)
	for i, r := range rows {
		if i == len(rows)/2 {
			_, err = z.Write([]byte{0})
		}
		err = errors.Join(err, out.Encode(savedRow{r.key, r.value, r.outcome, r.provenance, r.mark}))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": good[:len(good)-1], "flipped": refused, "with an end midway": ends.Bytes()} {
		write(bad)
		if _, err := Open(dir, Options{}); !errors.Is(err, ErrCorrupt) || !strings.Contains(fmt.Sprint(err), batchFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPutAfterFailure: the write after one that failed midway stores the rest first.
func TestPutAfterFailure(t *testing.T) {
	db := mustOpen(t, t.TempDir(), Options{})
	defer db.Close()
	full := errors.New("the disk has failed")
	c, err := db.putAll(t.Context(), rowsFrom(0, killedRows), func(*badger.Txn, Counts) error { return full })
	if n := stored(t, db); !errors.Is(err, full) || c.Total() != n || n == 0 || n == killedRows {
		t.Fatalf("%d rows are counted, %d stored, %v", c.Total(), n, err)
	}
	if c, err := db.PutAll(t.Context(), numbered(killedRows)); err != nil || c.Added != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if n := stored(t, db); n != killedRows+1 || hasBatch(db.dir) {
		t.Errorf("%d rows, want %d; the rest is kept: %v", n, killedRows+1, hasBatch(db.dir))
	}
}

// TestKillBatches kills a process that stores rows in calls of several transactions, at random moments: the store holds all
// rows of a call or none. It runs 6 rounds, or 100 if PACER_SOAK is set.
func TestKillBatches(t *testing.T) {
	if testing.Short() {
		t.Skip("kills 6 writers")
	}
	rounds := 6
	if os.Getenv("PACER_SOAK") != "" {
		rounds = 100
	}
	rng := rand.New(rand.NewPCG(7, uint64(rounds)))
	left, dir := 0, ""
	for round := range rounds {
		if round%10 == 0 {
			dir = t.TempDir()
		}
		cmd, out, _ := helper(t, "write batches", dir)
		acked := 0
		for out.Scan() {
			n, err := strconv.Atoi(out.Text())
			if err != nil {
				t.Fatalf("writer printed %q", out.Text())
			}
			if acked == 0 { // it has opened the store
				time.AfterFunc(time.Duration(rng.IntN(300))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
			acked = n
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("writer ended by itself: %v", err)
		}
		if hasBatch(dir) {
			left++
		}
		if n := checkAcked(t, dir, acked, round%2 == 0); n%killedRows != 0 || hasBatch(dir) || t.Failed() {
			t.Fatalf("round %d: %d rows are stored, want whole calls of %d", round, n, killedRows)
		}
	}
	t.Logf("%d of %d kills in the midst of a call", left, rounds)
}

func writeBatchesUntilKilled(dir string) error {
	db, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	next, err := db.Len(ctx, Filter{})
	for ; err == nil; next += killedRows {
		if err = db.Put(ctx, rowsFrom(next, killedRows)...); err == nil {
			fmt.Println(next + killedRows)
		}
	}
	return err
}
