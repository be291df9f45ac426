package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// A symbolic link in place of the lock file is not followed.
func TestLockFollowsNoLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	spectest.WriteFile(t, victim, []byte("precious"), 0o600)
	if err := os.Symlink(victim, filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	if db, err := Open(dir, Options{}); err == nil {
		t.Error("a link was followed", db.Close())
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

// Only its owner reads a new store.
func TestStoreIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	openTest(t, dir, Options{})
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Summary stays right while rows are added, replaced, forgotten and released.
func TestSummaryIsKept(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "store"), Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		switch rng.IntN(4) {
		case 0, 1:
			var ms []spec.Measurement
			for range 1 + rng.IntN(20) {
				m := rowfiletest.Invented(rng.IntN(200))
				m.Doubt = fmt.Sprint(rng.IntN(2)) // not part of the identity: replaces the row
				ms = append(ms, m)
			}
			if _, err := db.PutAll(t.Context(), ms...); err != nil {
				t.Fatal(err)
			}
		case 2:
			if all := records(t, db, Filter{}); len(all) > 5 {
				if _, err := db.Forget(t.Context(), all[:3], ""); err != nil {
					t.Fatal(err)
				}
			}
		case 3:
			if _, err := db.Release(t.Context(), records(t, db, Filter{})); err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := map[Tally]int{}
		for m, err := range db.Query(t.Context(), Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			n[Tally{Model: m.Config.Model.Name, Accelerator: m.Config.Accelerator.Name, Source: m.Source, Outcome: m.Outcome}]++
		}
		for _, c := range got {
			rows := c.Rows
			if c.Rows = 0; n[c] != rows {
				t.Fatalf("%+v: %d rows counted, %d are stored", c, rows, n[c])
			}
		}
		if len(got) != len(n) {
			t.Fatalf("%d groups counted, %d are stored", len(got), len(n))
		}
	}
}

// smallDisk mounts a file system of n MiB.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		spectest.Lacks(t, "cannot mount a tmpfs: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// On a disk with just enough space another program takes up to 128 MiB during each call, and all of it when a call has
// caused a table: reads are answered, a call stores all of its rows or none, and rows are stored again once there is space.
func TestStoreOnFullDisk(t *testing.T) {
	disk := smallDisk(t, 1024)
	db := mustOpen(t, filepath.Join(disk, "store"), Options{Reserve: 96 << 20})
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	tables := 12
	if testing.Short() {
		tables = 6
	}
	rest := fileOn(t, disk, "rest") // all but the space that the store needs and 32 MiB
	other := fileOn(t, disk, "other")
	rng := rand.New(rand.NewPCG(3, 4))
	next, refused, calls, most := 0, 0, 0, 128
	for refused < tables {
		leaveFree(t, rest, minFreeSpace>>20+32)
		log := newestLog(t, db)
		for newestLog(t, db) == log {
			var ms []spec.Measurement
			for i := range 500 {
				m := numbered(next + i)
				m.StepSec = m.StepSec[:1]
				ms = append(ms, m)
			}
			taken := make(chan error, 1)
			mib := rng.IntN(most)
			go func() { taken <- grow(other, mib) }()
			c, err := db.PutAll(t.Context(), ms...)
			switch {
			case err == nil:
				next, calls, most = next+len(ms), calls+1, 128
			case !errors.Is(err, ErrNoSpace) || c.Total() > 0 || most == 1:
				t.Fatalf("%d rows stored, %v, %+v", next, err, c)
			default:
				most /= 2 // the space was gone before the call looked: less is taken, until the call comes first
			}
			if err := <-taken; err != nil {
				t.Fatal(err)
			}
			if newestLog(t, db) == log {
				empty(t, other)
				leaveFree(t, rest, minFreeSpace>>20+32) // compactions may have taken space
			}
		}
		if err := grow(other, 1024); err != nil {
			t.Fatal(err)
		}
		if err := db.CheckSpace(); !errors.Is(err, ErrNoSpace) {
			t.Errorf("a full disk: %v", err)
		}
		if c, err := db.PutAll(t.Context(), numbered(next)); !errors.Is(err, ErrNoSpace) || c.Total() > 0 {
			t.Errorf("a full disk: %v, %+v", err, c)
		}
		refused++
		if n, err := db.Len(t.Context(), Filter{}); err != nil || n != next {
			t.Fatalf("%d rows, want %d, %v", n, next, err)
		}
		empty(t, other)
		empty(t, rest)
		if err := errors.Join(db.CheckSpace(), db.Put(t.Context(), numbered(next))); err != nil {
			t.Fatalf("space is back: %v", err)
		}
		next++
	}
	t.Logf("%d rows stored, the disk was full %d times, and lost space during %d calls", next, refused, calls)
	if calls < 100 && !testing.Short() {
		t.Errorf("%d calls, want at least 100", calls)
	}
}

// newestLog returns the log of the memtable that is written.
func newestLog(t *testing.T, db *DB) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(db.dir, "*.mem"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	return slices.Max(logs)
}

func fileOn(t *testing.T, disk, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(disk, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// leaveFree makes f as large as leaves mib MiB of its disk free.
func leaveFree(t *testing.T, f *os.File, mib int) {
	t.Helper()
	free, err := freeSpace(filepath.Dir(f.Name()))
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	more := int(free>>20) - mib
	if more < 0 {
		err = f.Truncate(max(0, info.Size()+int64(more)<<20))
	}
	if err := errors.Join(err, grow(f, more)); err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
}

// grow appends n MiB to f, or what the disk has room for.
func grow(f *os.File, n int) error {
	block := make([]byte, 1<<20)
	for range n {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// A store that a killed program left on a full disk opens for reading: its reserved space pays for the recovery.
func TestOpenOnFullDisk(t *testing.T) {
	disk := smallDisk(t, 640)
	dir := filepath.Join(disk, "store")
	db := mustOpen(t, dir, Options{Reserve: 96 << 20})
	mustPut(t, db, rowfiletest.InventedRows(10)...)
	// The directory of a killed program, with its reserve and unsealed.
	killed := filepath.Join(disk, "killed")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, db)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := grow(fileOn(t, disk, "other"), 640); err != nil {
		t.Fatal(err)
	}
	read := mustOpen(t, killed, Options{ReadOnly: true})
	defer read.Close()
	if n, err := read.Len(t.Context(), Filter{}); err != nil || n != 10 {
		t.Errorf("%d rows, %v", n, err)
	}
}
