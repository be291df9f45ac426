package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// content returns all keys and values of a store, as text.
func content(t testing.TB, db *DB) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := db.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			v, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			out[fmt.Sprintf("%q", it.Item().Key())] = fmt.Sprintf("%s %d %d", v, it.Item().UserMeta(), it.Item().ExpiresAt())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// writeRandomly makes one write of any kind.
func writeRandomly(t testing.TB, db *DB, random *rand.Rand) {
	t.Helper()
	some := records(t, db, Filter{})
	random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	some = some[:min(len(some), 1+random.IntN(4))]
	var err error
	switch random.IntN(6) {
	case 0, 1:
		rows := make([]spec.Measurement, 1+random.IntN(5))
		for i := range rows {
			rows[i] = rowfiletest.Invented(random.IntN(60))
		}
		_, err = db.PutOnce(t.Context(), "client", fmt.Sprint(random.IntN(9)), [32]byte{}, rows...)
	case 2:
		_, err = db.Forget(t.Context(), some, "worse")
	case 3:
		_, err = db.Quarantine(t.Context(), some, repeated("odd", len(some)))
	case 4:
		_, err = db.Release(t.Context(), some)
	case 5:
		err = db.Compact() // drops deleted keys that no transaction can see
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A store that applies the changes of another has its keys and values after each step, deletions included. One that
// becomes its backup has them too, whatever it had before.
func TestChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	from, to := openTest(t, filepath.Join(dir, "from"), Options{}), openTest(t, filepath.Join(dir, "to"), Options{})
	changes, err := from.Changes()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { changes.Close() }()
	for step := range 60 {
		for range random.IntN(4) {
			writeRandomly(t, from, random)
		}
		var list bytes.Buffer
		keys, seen, err := changes.Next(&list)
		if err != nil {
			t.Fatal(err)
		}
		if random.IntN(4) == 0 { // it was lost on the way, and is read again with the next
			continue
		}
		seen()
		touched, err := to.Apply(&list)
		if err != nil {
			t.Fatal(err)
		}
		if len(touched.Keys) > keys {
			t.Errorf("step %d: %d keys changed, of %d models", step, keys, len(touched.Keys))
		}
		if diff := cmp.Diff(content(t, from), content(t, to)); diff != "" {
			t.Fatalf("step %d: %s", step, diff)
		}
		summary, err := to.Summary(t.Context())
		want, errFrom := from.Summary(t.Context())
		if diff := cmp.Diff(want, summary); diff != "" || err != nil || errFrom != nil {
			t.Fatalf("step %d: %v %v %s", step, err, errFrom, diff)
		}
	}
	path := filepath.Join(dir, "backup")
	for range 3 {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(from.Backup(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		want := content(t, from)
		for range 5 {
			writeRandomly(t, to, random)
		}
		if _, err := to.Become(path); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, content(t, to)); diff != "" {
			t.Fatal(diff)
		}
		for range 5 {
			writeRandomly(t, from, random)
		}
	}
}

// More changes than a transaction of the engine holds are applied too.
func TestChangesOfManyRows(t *testing.T) {
	dir := t.TempDir()
	from, to := openTest(t, filepath.Join(dir, "from"), Options{}), openTest(t, filepath.Join(dir, "to"), Options{})
	changes, err := from.Changes()
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	rows := rowfiletest.InventedRows(3000)
	for i := range rows {
		rows[i].Reason = strings.Repeat("x", 1000)
	}
	if err := from.Put(t.Context(), rows...); err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	if _, _, err := changes.Next(&list); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Apply(&list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content(t, from), content(t, to)); diff != "" {
		t.Error(diff)
	}
}

// Changes that are truncated, or of another kind, change nothing.
func TestDamagedChanges(t *testing.T) {
	dir := t.TempDir()
	from, to := openTest(t, filepath.Join(dir, "from"), Options{}), openTest(t, filepath.Join(dir, "to"), Options{})
	changes, err := from.Changes()
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	if err := from.Put(t.Context(), rowfiletest.InventedRows(3)...); err != nil {
		t.Fatal(err)
	}
	var list bytes.Buffer
	if _, _, err := changes.Next(&list); err != nil {
		t.Fatal(err)
	}
	before := content(t, to)
	newer := strings.Replace(list.String(), fmt.Sprintf("format %d", FormatVersion), fmt.Sprintf("format %d", FormatVersion+1), 1)
	if _, err := to.Apply(strings.NewReader(newer)); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer format: %v", err)
	}
	whole := list.String()
	bad := []string{whole[:len(whole)-1], changesHeader + "\xff\xff\xff\xff\xff\xff\xff\xff", changesHeader + "\x02\x00\x00\x00\x00\x00\x00\x00??"}
	for n := range len(changesHeader) {
		bad = append(bad, whole[:n])
	}
	for _, key := range []string{"", formatKey, "z", "rmodel"} {
		message, err := proto.Marshal(&pb.KVList{Kv: []*pb.KV{{Key: []byte(key), Value: []byte("1")}}})
		if err != nil {
			t.Fatal(err)
		}
		bad = append(bad, changesHeader+string(binary.LittleEndian.AppendUint64(nil, uint64(len(message))))+string(message))
	}
	for _, text := range bad {
		if _, err := to.Apply(strings.NewReader(text)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	if diff := cmp.Diff(before, content(t, to)); diff != "" {
		t.Error(diff)
	}
}
