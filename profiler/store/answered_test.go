package store

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
)

// An answer is kept for a day with the rows that it is about, of each client apart, and in backups.
func TestAnswered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db := openTest(t, dir, Options{})
	body := sha256.Sum256([]byte("body"))
	if _, ok, err := db.Answered("a", "key"); ok || err != nil {
		t.Fatal(ok, err)
	}
	rows := rowfiletest.InventedRows(maxTxnRows + 10) // several transactions
	want, err := db.PutOnce(t.Context(), "a", "key", body, rows...)
	if err != nil || want.Total() != len(rows) {
		t.Fatalf("%+v, %v", want, err)
	}
	if got, ok, err := db.Answered("a", "key"); !ok || err != nil || got != (Answered{body, want}) {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	for _, other := range [][2]string{{"b", "key"}, {"a", "key2"}, {"", "a\x00key"}} {
		if _, ok, err := db.Answered(other[0], other[1]); ok || err != nil {
			t.Errorf("%q: %v, %v", other, ok, err)
		}
	}
	err = db.view(func(txn *badger.Txn) error {
		it, err := txn.Get(answeredKey("a", "key"))
		if err != nil {
			return err
		}
		left := time.Until(time.Unix(int64(it.ExpiresAt()), 0))
		if left > answeredAge+time.Minute || left < answeredAge-time.Hour {
			t.Errorf("it is kept for %s", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if n, err := db.Len(t.Context(), Filter{}); err != nil || n != want.Added+want.Updated+want.Unchanged && n > len(rows) {
		t.Errorf("%d rows, %v", n, err)
	}
	backup, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	file, err := os.Create(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Backup(file), file.Close(), Restore(backup, restored)); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := openTest(t, restored, Options{}).Answered("a", "key"); !ok || err != nil || got.Counts != want {
		t.Errorf("of a backup: %+v, %v, %v", got, ok, err)
	}
	mustClose(t, db)
	again := openTest(t, dir, Options{})
	if got, ok, err := again.Answered("a", "key"); !ok || err != nil || got.Counts != want {
		t.Errorf("after a restart: %+v, %v, %v", got, ok, err)
	}
	bad := rowfiletest.InventedRows(2)
	bad[1].Source = ""
	if _, err := again.PutOnce(t.Context(), "a", "bad", body, bad...); err == nil {
		t.Error("a bad row was stored")
	}
	if _, ok, _ := again.Answered("a", "bad"); ok {
		t.Error("an answer was kept for rows that were not stored")
	}
}

// Rows with an answer, which expires, survive a kill as all others do.
func TestAnsweredSurvivesKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db := openTest(t, dir, Options{})
	rows := rowfiletest.InventedRows(20)
	want, err := db.PutOnce(t.Context(), "", "key", sha256.Sum256(nil), rows...)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, db, numbered(1))
	killed := filepath.Join(t.TempDir(), "killed") // the directory of a killed program
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	again := openTest(t, killed, Options{})
	if n, err := again.Len(t.Context(), Filter{}); err != nil || n != want.Total()+1 {
		t.Errorf("%d rows, %v; want %d", n, err, want.Total()+1)
	}
	if got, ok, err := again.Answered("", "key"); !ok || err != nil || got.Counts != want {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
}
