package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Writer puts what a store and its models become into a bucket. It is safe for concurrent use.
type Writer struct {
	copier
	o       WriterOptions
	lease   *Lease
	changes *store.Changes
	turn    chan struct{} // held while an object is put

	number    int64             // of the last changes
	files     map[string][]byte // of the models that were put; never changed
	fullAt    int64             // number of the last full snapshot
	bytes     int               // of the changes since
	fullBytes int               // of the last full snapshot
	fulls     []place           // of this term, oldest first
	tookOver  bool

	pending    atomic.Bool // something may not be put yet
	newModels  atomic.Bool // fitted or removed since the last put
	put, wrong atomic.Int64
}

// WriterOptions configure a Writer.
type WriterOptions struct {
	URL     string           // address, for clients that ask a replica to write
	Release string           // of pacer
	Log     *slog.Logger     // nil drops
	Now     func() time.Time // the clock of the lease; nil = time.Now
}

// A full snapshot is put after maxChanges others, or when these are larger than the last full one and minFullBytes.
const (
	maxChanges   = 64
	minFullBytes = 4 << 20
)

// NewWriter takes the lease of b, which may wait for another writer, and then puts db and models, which are those of the
// data directory dir. If another writer has put newer ones, it begins with these instead, in a store that it opens with
// open. The caller closes DB after Close; db is closed where that is another one, and after an error.
func NewWriter(ctx context.Context, b *Bucket, dir string, db *store.DB, open func() (*store.DB, error), models *registry.Registry, o WriterOptions) (*Writer, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := readState(dir)
	var holder string
	if err == nil {
		holder, err = s.holder(dir)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &Writer{o: o, turn: make(chan struct{}, 1), copier: copier{bucket: b, dir: dir, db: db, models: models, state: s}}
	if w.lease, err = Acquire(ctx, b, LeaseOptions{Holder: holder, URL: o.URL, Log: o.Log, Now: o.Now}); err == nil {
		err = w.begin(ctx, open)
	}
	if err == nil {
		return w, nil
	}
	if w.lease != nil {
		err = errors.Join(err, w.lease.Release(context.WithoutCancel(ctx)))
	}
	if w.changes != nil {
		w.changes.Close()
	}
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	return nil, err
}

// DB returns the store.
func (w *Writer) DB() *store.DB { return w.db }

// TookOver reports whether the store and models began as those of another data directory.
func (w *Writer) TookOver() bool { return w.tookOver }

// begin makes the store the newest there is, and puts the first object of the term.
func (w *Writer) begin(ctx context.Context, open func() (*store.DB, error)) error {
	renewing, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.lease.Run(renewing) }()
	defer func() { stop(); <-ended }()
	if err := w.catchUp(ctx, open); err != nil {
		return err
	}
	w.state = state{ID: w.state.ID, Term: w.lease.Term(), Writer: true}
	if err := w.state.write(w.dir); err != nil {
		return err
	}
	var err error
	if w.changes, err = w.db.Changes(); err != nil {
		return err
	}
	w.files = w.fitted()
	if err := w.putFull(ctx, 0, w.files); err != nil {
		return err
	}
	return w.lease.Valid()
}

// catchUp makes the store the newest there is.
func (w *Writer) catchUp(ctx context.Context, open func() (*store.DB, error)) error {
	found, err := w.find(ctx)
	if err != nil || found.last == (place{}) {
		return err
	}
	if w.state.Writer && w.state.Term >= found.last.term {
		behind, err := w.behind(ctx, found)
		if err != nil || !behind {
			return err
		}
	}
	empty, err := w.db.Empty(ctx)
	switch {
	case err != nil:
		return err
	case w.state.Writer && !empty:
		if err := w.setAside(open); err != nil {
			return err
		}
	case !w.state.Copy && !empty:
		return fmt.Errorf("snapshot: %s has measurements that %s lacks, which has those of another writer: want an empty data directory, or another URL", w.dir, w.bucket)
	}
	if w.state.Writer || !w.state.Copy {
		w.state = state{ID: w.state.ID, Copy: true}
		if err := w.state.write(w.dir); err != nil {
			return err
		}
	}
	_, err = w.load(ctx)
	w.tookOver = true
	return err
}

// behind reports whether the store lacks something of the last object, which was put from this directory: the directory
// is an older copy.
func (w *Writer) behind(ctx context.Context, found places) (bool, error) {
	name, full := found.last.changes(), !found.changes[found.last]
	if full {
		name = found.last.full()
	}
	content, err := w.bucket.read(ctx, name)
	if err != nil {
		return false, err
	}
	d, err := decode(content, found.last, full)
	if err != nil {
		return false, fmt.Errorf("snapshot: %s of %s: %w", name, w.bucket, err)
	}
	return w.db.Version() < d.Store, nil
}

// setAside renames the store of a former writer. What it acknowledged is in the bucket; what was imported into it since
// is not.
func (w *Writer) setAside(open func() (*store.DB, error)) error {
	dir := w.db.Dir()
	aside := filepath.Join(w.dir, fmt.Sprintf("store-before-%d", w.lease.Term()))
	w.o.Log.Warn("another writer has newer measurements: the store here is set aside", "as", aside)
	err := w.db.Close()
	w.db = nil
	if err == nil {
		err = os.Rename(dir, aside)
	}
	if err == nil {
		w.db, err = open()
	}
	return err
}

// Sync returns nil once everything that was written before is in the bucket and the lease is valid: then a write may be
// acknowledged. It waits while other objects are put.
func (w *Writer) Sync(ctx context.Context) error {
	w.pending.Store(true)
	if err := w.lease.Valid(); err != nil {
		return err
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := w.putChanges(ctx); err != nil {
		return err
	}
	return w.lease.Valid()
}

// Fitted says that models were fitted or removed; Sync puts them, else Run does soon.
func (w *Writer) Fitted() {
	w.newModels.Store(true)
	w.pending.Store(true)
}

// Valid returns why writes cannot be acknowledged now, nil if they can.
func (w *Writer) Valid() error { return w.lease.Valid() }

// Lease returns the lease.
func (w *Writer) Lease() *Lease { return w.lease }

// Counts returns the numbers of objects put, and of those that failed.
func (w *Writer) Counts() (put, failed int64) { return w.put.Load(), w.wrong.Load() }

// putChanges puts what changed since the last object, if anything did. The caller holds turn.
func (w *Writer) putChanges(ctx context.Context) error {
	w.pending.Store(false)
	err := w.tryChanges(ctx)
	if err != nil {
		w.wrong.Add(1)
		w.pending.Store(true)
		w.newModels.Store(true)
	}
	return err
}

// tryChanges is putChanges, once.
func (w *Writer) tryChanges(ctx context.Context) error {
	h := w.header()
	files := w.files
	if w.newModels.Swap(false) {
		files = w.fitted()
	}
	h.Models = sums(files)
	changed, same := w.since(files)
	var rows bytes.Buffer
	keys, seen, err := w.changes.Next(&rows)
	if err != nil {
		return err
	}
	if keys == 0 && same {
		seen()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(w.lease.Left(), 0))
	defer cancel()
	for {
		h.Number = w.number + 1
		content, err := encode(h, func(out io.Writer) error { _, err := out.Write(rows.Bytes()); return err }, changed)
		if err != nil {
			return err
		}
		p := place{h.Term, h.Number}
		err = w.bucket.create(ctx, p.changes(), content)
		if errors.Is(err, errExists) { // of an attempt that seemed to fail: what it has is in this one too
			w.number++
			continue
		}
		if err != nil {
			return err
		}
		seen()
		w.number, w.files = h.Number, files
		w.bytes += len(content)
		w.put.Add(1)
		return nil
	}
}

// header is that of an object which has at least what is written now.
func (w *Writer) header() Header {
	return Header{Term: w.lease.Term(), Writer: w.o.URL, Release: w.o.Release, At: time.Now().UTC(), StoreFormat: store.FormatVersion, Store: w.db.Version()}
}

// fitted returns the files of the models that can be read now.
func (w *Writer) fitted() map[string][]byte {
	files, bad := w.models.Files()
	if bad != nil {
		w.o.Log.Warn(bad.Error()) // the others are put all the same
	}
	return files
}

// since returns those of files that were not put yet; same is that nothing else changed either.
func (w *Writer) since(files map[string][]byte) (changed map[string][]byte, same bool) {
	changed, same = map[string][]byte{}, len(files) == len(w.files)
	for name, b := range files {
		if !bytes.Equal(w.files[name], b) {
			changed[name], same = b, false
		}
	}
	return changed, same
}

// putFull puts a full snapshot that has at least the rows of the changes up to n, and the models as of n. It deletes what
// is older than the full snapshot before.
func (w *Writer) putFull(ctx context.Context, n int64, files map[string][]byte) error {
	h := w.header()
	h.Full, h.Number, h.Models = true, n, sums(files)
	content, err := encode(h, w.db.Backup, files)
	if err != nil {
		return err
	}
	p := place{h.Term, h.Number}
	if err := w.bucket.create(ctx, p.full(), content); err != nil && !errors.Is(err, errExists) {
		w.wrong.Add(1)
		return err
	}
	w.put.Add(1)
	w.turn <- struct{}{}
	w.fullAt, w.bytes, w.fullBytes = n, 0, len(content)
	<-w.turn
	w.fulls = append(w.fulls, p)
	w.prune(ctx)
	return nil
}

// prune deletes the objects before the last full snapshot but one, as far as it can.
func (w *Writer) prune(ctx context.Context) {
	oldest := place{w.lease.Term(), 0}
	if n := len(w.fulls); n >= 2 {
		w.fulls = w.fulls[n-2:]
		oldest = w.fulls[0]
	}
	w.bucket.sweep()
	all, err := w.bucket.list(ctx, snapshotDir)
	if err != nil {
		return
	}
	for _, o := range all {
		p, full, ok := parsePlace(o.name)
		if ok && (p.compare(oldest) < 0 || p == oldest && !full) {
			_ = w.bucket.remove(ctx, o.name)
		}
	}
}

// Run renews the lease, and puts what was not put with an answer, until ctx ends. It returns an error that wraps ErrLost
// when another writer has the lease.
func (w *Writer) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	lost := make(chan error, 1)
	go func() { lost <- w.lease.Run(ctx); stop() }()
	for pause(ctx, time.Second) == nil {
		if w.pending.Load() {
			if err := w.Sync(ctx); err != nil && ctx.Err() == nil {
				w.o.Log.Warn("not put into the object store: " + err.Error())
			}
		}
		if err := w.putFullIfDue(ctx); err != nil && ctx.Err() == nil {
			w.o.Log.Warn("no full snapshot is put: " + err.Error())
		}
	}
	return <-lost
}

// putFullIfDue puts a full snapshot if there are many changes since the last. Others are acknowledged meanwhile.
func (w *Writer) putFullIfDue(ctx context.Context) error {
	w.turn <- struct{}{}
	n, files := w.number, w.files
	due := n-w.fullAt >= maxChanges || w.bytes > max(w.fullBytes, minFullBytes)
	<-w.turn
	if !due {
		return nil
	}
	return w.putFull(ctx, n, files)
}

// Close puts what is left and releases the lease. Nothing may be written any more.
func (w *Writer) Close(ctx context.Context) error {
	err := w.lease.Valid()
	if err == nil {
		err = errors.Join(w.Sync(ctx), w.lease.Release(ctx))
	}
	w.changes.Close()
	return err
}
