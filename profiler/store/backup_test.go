package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// A restored store has the rows, marks and tombstones of the backup, also of one that was taken while rows arrived.
func TestBackup(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "store"), Options{})
	mustPut(t, db, rowfiletest.InventedRows(500)...)
	all := records(t, db, Filter{})
	if _, err := db.Forget(t.Context(), all[:20], "spoilt"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Quarantine(t.Context(), all[20:22], []string{"slow", "hot"}); err != nil {
		t.Fatal(err)
	}
	want := records(t, db, Filter{})

	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for i := 500; err == nil; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
				err = db.Put(t.Context(), rowfiletest.Invented(i))
			}
		}
		stopped <- err
	}()
	path := filepath.Join(t.TempDir(), "copy")
	var buf bytes.Buffer
	if err := db.Backup(&buf); err != nil {
		t.Fatal(err)
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	spectest.WriteFile(t, path, buf.Bytes(), 0o600)
	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(path, dir); err != nil {
		t.Fatal(err)
	}
	copied := openTest(t, dir, Options{})
	got := records(t, copied, Filter{})
	now := map[string]Record{}
	for _, r := range records(t, db, Filter{}) {
		now[string(r.key)] = r
	}
	found := map[string]bool{}
	for _, r := range got {
		found[string(r.key)] = true
		if d := cmp.Diff(now[string(r.key)], r, cmp.AllowUnexported(Record{})); d != "" {
			t.Fatalf("a row differs: %s", d)
		}
	}
	for _, r := range want {
		if !found[string(r.key)] {
			t.Errorf("row %s, stored before the backup, is not in it", r.Row.Origin)
		}
	}
	if err := copied.Put(t.Context(), numbered(10000)); err != nil {
		t.Errorf("a restored store cannot be written: %v", err)
	}
	if err := Restore(path, dir); err == nil {
		t.Error("a store was overwritten")
	}
}

// A backup with any byte changed, or cut, is refused, and no store remains.
func TestDamagedBackup(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "store"), Options{})
	mustPut(t, db, rowfiletest.InventedRows(20)...)
	var buf bytes.Buffer
	if err := db.Backup(&buf); err != nil {
		t.Fatal(err)
	}
	good := buf.Bytes()
	path, dir := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
	try := func(b []byte) error {
		spectest.WriteFile(t, path, b, 0o600)
		err := Restore(path, dir)
		if _, stat := os.Stat(dir); !errors.Is(stat, os.ErrNotExist) {
			t.Fatal("a store remains")
		}
		return err
	}
	for at := 0; at < len(good); at += 1 + len(good)/200 {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		if err := try(bad); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewer) {
			t.Errorf("byte %d changed: %v", at, err)
		}
		if err := try(good[:at]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", at, err)
		}
	}
	newer := bytes.Replace(good, []byte("format 4"), []byte("format 9"), 1)
	if err := try(newer); !errors.Is(err, ErrNewer) {
		t.Errorf("a later format: %v", err)
	}
}

// TestBackupOfFormat3: a backup of the release before format 4 is restored.
func TestBackupOfFormat3(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	db := openTest(t, dir, Options{})
	want := frozenWant(5)
	if _, err := db.PutAll(context.Background(), want...); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := db.Backup(&b); err != nil {
		t.Fatal(err)
	}
	body := bytes.Replace(b.Bytes()[:b.Len()-sha256.Size], []byte("format 4"), []byte("format 3"), 1)
	sum := sha256.Sum256(body)
	spectest.WriteFile(t, path, append(body, sum[:]...), 0o600)
	restored := filepath.Join(t.TempDir(), "restored")
	if err := Restore(path, restored); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, collect(t, openTest(t, restored, Options{}), Filter{})); d != "" {
		t.Error(d)
	}
}

// TestCheckHeader: copies of the formats that had them are read, and later ones are said to be.
func TestCheckHeader(t *testing.T) {
	for head, want := range map[string]error{
		backupHeader:                             nil,
		fmt.Sprintf(backupText, OldestCopy):      nil,
		fmt.Sprintf(backupText, OldestCopy-1):    ErrCorrupt,
		fmt.Sprintf(backupText, FormatVersion+1): ErrNewer,
		backupHeader[:len(backupHeader)-1]:       ErrCorrupt,
		changesHeader:                            ErrCorrupt,
		"":                                       ErrCorrupt,
	} {
		if err := checkHeader([]byte(head), backupText); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", head, err, want)
		}
	}
}
