package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/dgraph-io/badger/v4/options"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// Sentinel errors for callers to branch on. Errors that wrap them name the directory and say what to do.
var (
	ErrLocked   = reader.ErrLocked
	ErrCorrupt  = errors.New("store corrupt")
	ErrNewer    = errors.New("store written by a newer program")
	ErrReadOnly = errors.New("store opened read-only")
	ErrClosed   = errors.New("store closed")
	ErrNoSpace  = errors.New("disk nearly full")
)

// LockedError names the process that has the store open. It wraps ErrLocked.
type LockedError struct {
	Dir string
	PID int // id of that process, 0 = unknown
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID > 0 {
		holder += fmt.Sprintf(" (pid %d)", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: wait for it to end, or give another data directory: %v", e.Dir, holder, ErrLocked)
}

func (e *LockedError) Unwrap() error { return ErrLocked }

// Options configure Open. The zero value opens a store for reading and writing, and creates it if necessary.
type Options struct {
	// ReadOnly opens an existing store, which other readers may have open too. A store that was not closed, or
	// has rows of an older format, is recovered or migrated first, which writes to it.
	ReadOnly bool
	// By, From and Now are the Provenance of what is stored: the user, the file or command, and the clock. "" is
	// USER@HOST of the operating system, and unknown; nil is time.Now.
	By, From string
	Now      func() time.Time
	// Reserve is the disk space to hold while the store is open for writing, bytes; 0 = none. See CheckSpace.
	Reserve int64
	// Logf receives the storage engine's messages; nil discards them.
	Logf func(format string, args ...any)
}

// Sizes of the engine, in bytes. A full memtable becomes one table file; two memtables limit the memory of
// writes. Values above valueThreshold (rows with thousands of step times) go to the value log. Logs are created
// as sparse files of twice their size and truncated when the store is closed.
const (
	memTableSize   = 8 << 20
	valueThreshold = 64 << 10
	valueLogSize   = 16 << 20
	blockSize      = 16 << 10
	blockCacheSize = 8 << 20

	tableCompression = options.Snappy

	engineMagic = 0x5061 // "Pa", in the head of badger's MANIFEST
)

// DB is an open store. It is safe for concurrent use.
type DB struct {
	dir  string
	opt  Options
	bdb  *badger.DB
	lock *dirLock

	writing    sync.Mutex // serializes transactions and syncs
	unfinished bool       // a call of PutAll failed midway: batchFile has its rows
	tallies    tallies

	measured atomic.Pointer[[]spec.Accelerator] // see Measured; nil = not read yet

	mu     sync.Mutex
	users  int // active calls and iterations
	closed bool
	idle   *sync.Cond // signals users == 0
}

// Open opens the store in dir. Errors wrap ErrLocked if another process has it open, ErrCorrupt if a file is
// damaged, ErrNewer if a newer program wrote it, and fs.ErrNotExist if o.ReadOnly is set and there is no store.
// After each of these the store is unchanged. The caller must call Close.
func Open(dir string, o Options) (*DB, error) {
	db, err := open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return db, nil
}

func open(dir string, o Options) (*DB, error) {
	if o.ReadOnly {
		if _, err := os.Stat(dir); err != nil {
			return nil, noStore(dir, err)
		}
		return openReadOnly(dir, o)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir, false)
	if err != nil {
		return nil, err
	}
	db, err := openLocked(dir, o, lock)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return db, nil
}

// openLocked checks the files, opens the engine for writing and converts the store to the current format. The
// caller releases the lock on errors.
func openLocked(dir string, o Options, lock *dirLock) (*DB, error) {
	st, err := inspect(dir)
	if err != nil {
		return nil, err
	}
	if err := unreserve(dir); err != nil {
		return nil, err
	}
	if err := checkSpace(dir, openSpace); err != nil {
		return nil, err
	}
	if err := st.prepare(dir); err != nil {
		return nil, err
	}
	bdb, err := openEngine(dir, o)
	if err != nil {
		return nil, err
	}
	if err := migrate(bdb, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: converting it to format %d: %w", dir, FormatVersion, err), bdb.Close())
	}
	db := newDB(dir, o, bdb, lock)
	if err := db.finishBatch(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: storing the rows of a killed program: %w", dir, err), bdb.Close())
	}
	if err := db.reserve(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: reserving %d bytes: %w", dir, o.Reserve, err), bdb.Close())
	}
	return db, nil
}

// openReadOnly opens a store for reading. A store that needs recovery or migration is first opened and closed
// for writing.
func openReadOnly(dir string, o Options) (*DB, error) {
	lock, err := lockDir(dir, true)
	if err != nil {
		return nil, err
	}
	st, err := inspect(dir)
	if err == nil && st.empty {
		err = noStore(dir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	if !st.sealed || st.format < rowFormat || hasBatch(dir) {
		if err := errors.Join(lock.release(), recoverStore(dir, o)); err != nil {
			return nil, err
		}
		if lock, err = lockDir(dir, true); err != nil {
			return nil, err
		}
	}
	bdb, err := openEngine(dir, o)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return newDB(dir, o, bdb, lock), nil
}

func recoverStore(dir string, o Options) error {
	o.ReadOnly = false
	db, err := open(dir, o)
	if err != nil {
		return err
	}
	return db.Close()
}

func noStore(dir string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("no measurements in %s, import some first: %w", dir, fs.ErrNotExist)
}

func newDB(dir string, o Options, bdb *badger.DB, lock *dirLock) *DB {
	db := &DB{dir: dir, opt: o, bdb: bdb, lock: lock}
	db.idle = sync.NewCond(&db.mu)
	return db
}

// openEngine opens badger on checked files. Badger may still find damage that the checks miss; its panics
// become errors.
func openEngine(dir string, o Options) (bdb *badger.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			bdb, err = nil, corrupt(dir, "", fmt.Errorf("%v", r))
		}
	}()
	bdb, err = badger.Open(engineOptions(dir, o))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return bdb, nil
}

func engineOptions(dir string, o Options) badger.Options {
	opt := badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithReadOnly(o.ReadOnly).
		WithBypassLockGuard(lockHeld).
		WithExternalMagic(engineMagic).
		WithMemTableSize(memTableSize).
		WithNumMemtables(2).
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(valueLogSize).
		WithCompression(tableCompression).
		WithBlockSize(blockSize).
		WithBlockCacheSize(blockCacheSize).
		WithNumCompactors(2).
		WithCompactL0OnClose(!o.ReadOnly).
		WithDetectConflicts(false). // writes are serialized here
		WithMetricsEnabled(false).
		WithLogger(nil)
	if o.Logf != nil {
		opt = opt.WithLogger(engineLog{o.Logf})
	}
	return opt
}

// engineLog forwards badger's messages.
type engineLog struct{ logf func(string, ...any) }

func (l engineLog) Errorf(f string, a ...any)   { l.logf("error: "+f, a...) }
func (l engineLog) Warningf(f string, a ...any) { l.logf("warning: "+f, a...) }
func (l engineLog) Infof(f string, a ...any)    { l.logf("info: "+f, a...) }
func (l engineLog) Debugf(f string, a ...any)   { l.logf("debug: "+f, a...) }

// Dir returns the directory the store is in.
func (db *DB) Dir() string { return db.dir }

// use marks the start of a call or iteration; Close waits for its end.
func (db *DB) use() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return fmt.Errorf("store: %s: %w", db.dir, ErrClosed)
	}
	db.users++
	return nil
}

func (db *DB) done() {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.users--; db.users == 0 {
		db.idle.Broadcast()
	}
}

// Close waits for active calls and iterations, writes everything to table files and seals them. It must not be
// called during an iteration of Query. Further calls do nothing.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return nil
	}
	db.closed = true
	for db.users > 0 {
		db.idle.Wait()
	}
	db.mu.Unlock()

	if !db.opt.ReadOnly {
		_ = unreserve(db.dir) // Open deletes it too
	}
	err := db.bdb.Close()
	if err == nil && !db.opt.ReadOnly {
		err = writeSeal(db.dir)
	}
	if err := errors.Join(err, db.lock.release()); err != nil {
		return fmt.Errorf("store: closing %s: %w", db.dir, err)
	}
	return nil
}

// Compact merges the table files into as few as possible and drops values that no row refers to. It is
// optional; it saves space after large parts of a large store were imported again. Writes wait for its end.
func (db *DB) Compact() error {
	if err := db.use(); err != nil {
		return err
	}
	defer db.done()
	if db.opt.ReadOnly {
		return fmt.Errorf("store: compact %s: %w", db.dir, ErrReadOnly)
	}
	db.writing.Lock()
	defer db.writing.Unlock()
	size, err := sizeOf(db.dir)
	if err == nil {
		err = checkSpace(db.dir, minFreeSpace+int(size)) // every table is written anew before the old ones are deleted
	}
	if err != nil {
		return fmt.Errorf("store: compact %s: %w", db.dir, err)
	}
	if err := db.bdb.Flatten(2); err != nil {
		return fmt.Errorf("store: compact %s: %w", db.dir, err)
	}
	for {
		err := db.bdb.RunValueLogGC(0.5)
		if errors.Is(err, badger.ErrNoRewrite) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("store: compact %s: %w", db.dir, err)
		}
	}
}
