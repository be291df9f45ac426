package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Replica keeps a store and models equal to those of a writer. It is safe for concurrent use.
type Replica struct {
	copier copier
	o      ReplicaOptions

	mu      sync.Mutex
	current time.Time // when the poll began that found nothing newer than what is applied; zero = none yet
	writer  string
	failure string // of the last poll
	counts  ReplicaCounts
}

// ReplicaCounts are the numbers of objects applied and of failures since the start.
type ReplicaCounts struct {
	Full, Changes int
	Failed        map[string]int // polls, by reason: see failureOf
}

// ReplicaOptions configure a Replica.
type ReplicaOptions struct {
	Poll   time.Duration // between looks for new objects; 0 = DefaultPoll
	MaxAge time.Duration // from which Ready fails; 0 = DefaultMaxAge
	Log    *slog.Logger  // nil drops
}

// Defaults of ReplicaOptions.
const (
	DefaultPoll   = 2 * time.Second
	DefaultMaxAge = time.Minute
)

// pollTimeout bounds one poll with all that it reads.
const pollTimeout = 10 * time.Minute

// NewReplica returns the Replica of what a writer puts into b. It changes db and models, which are those of the
// data directory dir; nothing else may. A store that was no replica, and is not empty, is an error.
func NewReplica(ctx context.Context, b *Bucket, dir string, db *store.DB, models *registry.Registry, o ReplicaOptions) (*Replica, error) {
	if o.Poll < 0 || o.MaxAge < 0 {
		return nil, fmt.Errorf("snapshot: poll %v, longest age %v: must not be negative", o.Poll, o.MaxAge)
	}
	if o.Poll == 0 {
		o.Poll = DefaultPoll
	}
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s, err := readState(dir)
	if err != nil {
		return nil, err
	}
	empty, err := db.Empty(ctx)
	switch {
	case err != nil:
		return nil, err
	case !s.Copy && !empty:
		return nil, fmt.Errorf("snapshot: %s has measurements of its own, which a replica would replace: want another data directory", dir)
	}
	s.Copy = true
	if err := s.write(dir); err != nil {
		return nil, err
	}
	return &Replica{copier: copier{bucket: b, dir: dir, db: db, models: models, state: s}, o: o, counts: ReplicaCounts{Failed: map[string]int{}}}, nil
}

// Run polls until ctx ends. After each poll that applied something it calls changed.
func (r *Replica) Run(ctx context.Context, changed func(Applied)) {
	for {
		r.Poll(ctx, changed)
		if pause(ctx, r.o.Poll) != nil {
			return
		}
	}
}

// Poll looks for new objects once and applies them. What fails is logged and counted, and the state before stays in use.
func (r *Replica) Poll(ctx context.Context, changed func(Applied)) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	done, err := r.copier.load(ctx)
	if done.Full+done.Changes > 0 || len(done.Rows.Keys) > 0 || len(done.Models) > 0 {
		changed(done)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Full += done.Full
	r.counts.Changes += done.Changes
	if w := r.copier.last.Writer; w != "" {
		r.writer = w
	}
	if err == nil {
		r.current = start
		if r.failure != "" {
			r.o.Log.Info("the replica is current again", "object", r.copier.state.place().changes())
		}
		r.failure = ""
		return
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	r.counts.Failed[failureOf(err)]++
	if text := err.Error(); text != r.failure { // once, not with every poll
		r.failure = text
		r.o.Log.Error("the replica is not current: "+text, "reason", failureOf(err))
	}
}

// failureOf classifies the failure of a poll.
func failureOf(err error) string {
	switch {
	case errors.Is(err, ErrRelease), errors.Is(err, store.ErrNewer):
		return "release"
	case errors.Is(err, ErrDamaged), errors.Is(err, store.ErrCorrupt):
		return "damaged"
	case errors.Is(err, errGap), errors.Is(err, errMissing):
		return "missing"
	case errors.Is(err, store.ErrNoSpace):
		return "space"
	}
	return "unreachable"
}

// FailureReasons are those of ReplicaCounts.Failed.
var FailureReasons = []string{"damaged", "missing", "release", "space", "unreachable"}

// Age returns how old the answers may be: the time since everything that the writer had acknowledged was applied here. ok
// is false before the first time.
func (r *Replica) Age() (age time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.current), !r.current.IsZero()
}

// Ready returns nil unless the replica is too old.
func (r *Replica) Ready() error {
	age, ok := r.Age()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !ok && r.failure == "":
		return errors.New("the replica has not loaded a snapshot yet")
	case !ok:
		return errors.New("the replica has not loaded a snapshot yet; the log has the reason")
	case age > r.o.MaxAge:
		return fmt.Errorf("the replica is %v old, more than %v; the log has the reason", age.Round(time.Second), r.o.MaxAge)
	}
	return nil
}

// Writer returns the address of the writer, "" before it is known.
func (r *Replica) Writer() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writer
}

// Counts returns the numbers of objects applied and of failures.
func (r *Replica) Counts() ReplicaCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.counts
	out.Failed = maps.Clone(r.counts.Failed)
	return out
}
