package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"google.golang.org/protobuf/proto"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// changesHeader begins a list of changes; messages of the engine's backups follow.
const changesText = "pacer measurement changes, format %d\n"

var changesHeader = fmt.Sprintf(changesText, FormatVersion)

const (
	deletedBit       = 1        // in pb.KV.Meta: the key was deleted, as in a backup of the engine
	maxChangeMessage = 64 << 20 // bytes of one message
)

// Changes reads what is written to a store, step by step. It keeps a read transaction open, so that the engine keeps
// deleted keys until their deletion is read. It is not safe for concurrent use.
type Changes struct {
	db   *DB
	seen *badger.Txn // what was written before its start is read
}

// Changes begins with what is written from now on. The caller calls Close before that of db.
func (db *DB) Changes() (*Changes, error) {
	if err := db.use(); err != nil {
		return nil, err
	}
	defer db.done()
	db.writing.Lock()
	defer db.writing.Unlock()
	return &Changes{db, db.bdb.NewTransaction(false)}, nil
}

// Close ends the reading.
func (c *Changes) Close() { c.seen.Discard() }

// Next writes to w the changes since the last call of seen, for DB.Apply, and returns the number of changed keys. The
// caller calls seen when these changes need not be read again.
func (c *Changes) Next(w io.Writer) (keys int, seen func(), err error) {
	if err := c.db.use(); err != nil {
		return 0, nil, err
	}
	defer c.db.done()
	c.db.writing.Lock() // no call of PutAll is half stored
	txn := c.db.bdb.NewTransaction(false)
	c.db.writing.Unlock()
	out := bufio.NewWriter(w)
	_, err = out.WriteString(changesHeader)
	if err == nil {
		keys, err = writeChanges(out, txn, c.seen.ReadTs())
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		txn.Discard()
		return 0, nil, fmt.Errorf("store: changes of %s: %w", c.db.dir, err)
	}
	return keys, func() { c.seen.Discard(); c.seen = txn }, nil
}

// writeChanges writes the last value of each key that changed after a version, one message each.
func writeChanges(w io.Writer, txn *badger.Txn, since uint64) (keys int, err error) {
	o := badger.DefaultIteratorOptions
	o.AllVersions, o.SinceTs = true, since // also deletions
	it := txn.NewIterator(o)
	defer it.Close()
	var last []byte
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if keys > 0 && bytes.Equal(item.Key(), last) {
			continue // an older version
		}
		last = item.KeyCopy(last)
		kv := &pb.KV{Key: last, UserMeta: []byte{item.UserMeta()}, ExpiresAt: item.ExpiresAt()}
		if item.IsDeletedOrExpired() {
			kv.Meta = []byte{deletedBit}
		} else if kv.Value, err = item.ValueCopy(nil); err != nil {
			return keys, err
		}
		message, err := proto.Marshal(&pb.KVList{Kv: []*pb.KV{kv}})
		if err == nil {
			_, err = w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(message))), message...))
		}
		if err != nil {
			return keys, err
		}
		keys++
	}
	return keys, nil
}

// readChanges checks and returns the changes that Next wrote.
func readChanges(r io.Reader) (out []*pb.KV, err error) {
	in := bufio.NewReader(r)
	head := make([]byte, len(changesHeader))
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err := checkHeader(head, changesText); err != nil {
		return nil, err
	}
	for {
		var size uint64
		err := binary.Read(in, binary.LittleEndian, &size)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil && size > maxChangeMessage {
			err = fmt.Errorf("a message of %d bytes", size)
		}
		message := make([]byte, min(size, maxChangeMessage))
		if err == nil {
			_, err = io.ReadFull(in, message)
		}
		var list pb.KVList
		if err == nil {
			err = proto.Unmarshal(message, &list)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		for _, kv := range list.Kv {
			if err := checkChange(kv); err != nil {
				return nil, err
			}
		}
		out = append(out, list.Kv...)
	}
}

// checkChange reports a change that a store of this format cannot have.
func checkChange(kv *pb.KV) error {
	if len(kv.GetKey()) == 0 || !bytes.ContainsRune(ourPrefixes, rune(kv.Key[0])) || len(kv.GetUserMeta()) > 1 || len(kv.GetMeta()) > 1 {
		return fmt.Errorf("%w: key %q is not that of a store", ErrCorrupt, kv.GetKey())
	}
	if _, ok := parseKey(kv.Key); !ok && !slices.Contains([]byte{microPrefix, answeredPrefix}, kv.Key[0]) {
		return fmt.Errorf("%w: key %q is not that of a row", ErrCorrupt, kv.Key)
	}
	return nil
}

// Touched is what changed in a store.
type Touched struct {
	Keys         map[spec.Key]bool // of the rows that were stored, marked or deleted
	Accelerators bool              // micro-benchmarks changed
}

// Add adds other to t.
func (t *Touched) Add(other Touched) {
	for k := range other.Keys {
		t.key(k)
	}
	t.Accelerators = t.Accelerators || other.Accelerators
}

func (t *Touched) key(k spec.Key) {
	if t.Keys == nil {
		t.Keys = map[spec.Key]bool{}
	}
	t.Keys[k] = true
}

// change is a key with its new value; a nil entry deletes it.
type change struct {
	key   []byte
	entry *badger.Entry
}

// Apply makes the changes that Next of another store wrote, which are then on disk. It checks all before it makes any.
// Readers see them at once, unless they are more than fit in one transaction of the engine: then row by row.
func (db *DB) Apply(r io.Reader) (Touched, error) {
	kvs, err := readChanges(r)
	if err != nil {
		return Touched{}, fmt.Errorf("store: changes: %w", err)
	}
	changes := make([]change, len(kvs))
	for i, kv := range kvs {
		changes[i] = change{key: kv.Key}
		if len(kv.Meta) == 0 || kv.Meta[0]&deletedBit == 0 {
			changes[i].entry = entryOf(kv.Key, kv.Value, kv.UserMeta, kv.ExpiresAt)
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { // what is beside a row goes with it, and before it
		return cmp.Or(bytes.Compare(a.key[1:], b.key[1:]), cmp.Compare(a.rank(), b.rank()))
	})
	return db.makeChanges(func(make func(change) error) error {
		for _, c := range changes {
			if err := make(c); err != nil {
				return err
			}
		}
		return nil
	})
}

// rank orders the changes of one row: a row becomes visible last, and goes first.
func (c *change) rank() int {
	switch {
	case c.key[0] != rowPrefix:
		return 1
	case c.entry == nil:
		return 0
	}
	return 2
}

func entryOf(key, value, meta []byte, expires uint64) *badger.Entry {
	e := badger.NewEntry(key, value)
	e.ExpiresAt = expires
	if len(meta) == 1 {
		e.UserMeta = meta[0]
	}
	return e
}

// Become makes the content of the store that of the backup at path. It checks the whole backup first. Only what
// differs is written. Readers see all differences at once, unless they are more than fit in one transaction.
func (db *DB) Become(path string) (t Touched, err error) {
	dir := db.dir + ".next"
	if err := os.RemoveAll(dir); err != nil { // of a process that was killed
		return t, fmt.Errorf("store: %w", err)
	}
	if err := Restore(path, dir); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	next, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, next.Close()) }()
	return db.makeChanges(func(make func(change) error) error {
		return next.view(func(new *badger.Txn) error {
			return db.view(func(old *badger.Txn) error { return differences(old, new, make) })
		})
	})
}

// differences calls each with the changes that make the keys of old those of new.
func differences(old, new *badger.Txn, each func(change) error) error {
	a, b := old.NewIterator(badger.DefaultIteratorOptions), new.NewIterator(badger.DefaultIteratorOptions)
	defer a.Close()
	defer b.Close()
	a.Rewind()
	for b.Rewind(); a.Valid() || b.Valid(); {
		order := 0
		switch {
		case !b.Valid():
			order = -1
		case !a.Valid():
			order = 1
		default:
			order = bytes.Compare(a.Item().Key(), b.Item().Key())
		}
		if order < 0 {
			if err := each(change{key: a.Item().KeyCopy(nil)}); err != nil {
				return err
			}
			a.Next()
			continue
		}
		value, err := b.Item().ValueCopy(nil)
		if err != nil {
			return err
		}
		same := false
		if order == 0 {
			if same, err = equalItem(a.Item(), b.Item(), value); err != nil {
				return err
			}
			a.Next()
		}
		if !same {
			key := b.Item().KeyCopy(nil)
			if err := each(change{key, entryOf(key, value, []byte{b.Item().UserMeta()}, b.Item().ExpiresAt())}); err != nil {
				return err
			}
		}
		b.Next()
	}
	return nil
}

// equalItem reports whether a has the value, which is that of b.
func equalItem(a, b *badger.Item, value []byte) (same bool, err error) {
	if a.UserMeta() != b.UserMeta() || a.ExpiresAt() != b.ExpiresAt() {
		return false, nil
	}
	err = a.Value(func(v []byte) error { same = bytes.Equal(v, value); return nil })
	return same, err
}

// makeChanges calls list with what makes a change, in as few transactions as the engine allows, and waits until all are on
// disk.
func (db *DB) makeChanges(list func(make func(change) error) error) (t Touched, err error) {
	if err := db.use(); err != nil {
		return t, err
	}
	defer db.done()
	if db.opt.ReadOnly {
		return t, fmt.Errorf("store: change %s: %w", db.dir, ErrReadOnly)
	}
	if err := db.lockWriting(); err != nil {
		return t, fmt.Errorf("store: %w", err)
	}
	defer db.writing.Unlock()
	defer func() {
		db.tallies.forget()
		if t.Accelerators {
			db.measured.Store(nil)
		}
		if err != nil {
			err = fmt.Errorf("store: change %s: %w", db.dir, err)
		}
	}()
	if err := checkSpace(db.dir, minFreeSpace); err != nil {
		return t, err
	}
	defer recoverPanic(&err)
	txn := db.bdb.NewTransaction(true)
	defer func() { txn.Discard() }()
	err = list(func(c change) error {
		err := c.set(txn)
		if errors.Is(err, badger.ErrTxnTooBig) {
			if err = txn.Commit(); err == nil {
				err = checkSpace(db.dir, minFreeSpace)
			}
			if err != nil {
				return err
			}
			txn = db.bdb.NewTransaction(true)
			err = c.set(txn)
		}
		t.note(c.key)
		return err
	})
	if err == nil {
		err = txn.Commit()
	}
	if err != nil {
		return t, err
	}
	return t, errors.Join(db.settle(), atomicfile.SyncDir(db.dir))
}

func (c *change) set(txn *badger.Txn) error {
	if c.entry == nil {
		return txn.Delete(c.key)
	}
	return txn.SetEntry(c.entry)
}

// note adds what a key is about.
func (t *Touched) note(key []byte) {
	if key[0] == microPrefix {
		t.Accelerators = true
	} else if g, ok := parseKey(key); ok {
		t.key(spec.Key{Model: g.model, Accelerator: g.accelerator})
	}
}

// Version returns a number that rises with every write.
func (db *DB) Version() uint64 { return db.bdb.MaxVersion() }

// Empty reports whether the store has no row, mark or tombstone.
func (db *DB) Empty(ctx context.Context) (bool, error) {
	empty := true
	err := db.view(func(txn *badger.Txn) error {
		for _, prefix := range []byte{rowPrefix, forgottenPrefix, microPrefix} {
			empty = empty && !holds(txn, prefix)
		}
		return ctx.Err()
	})
	return empty, err
}
