package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strconv"
	"sync"
	"time"
)

// Lease is the right of one process to write, until a time that renewals move on.
//
// It is a sequence of numbered objects, each created only if there is none of its number. To take or to renew the lease
// is to create the number after the greatest. An object names the process that holds the lease, and says for how long (TTL).
//
// Two processes never hold it at the same time, provided that their clocks run at rates that differ by less than a
// quarter, and that listings are consistent:
//
//   - A holder counts its time from before it sends the request that creates its object, on its own clock.
//   - Another process takes the lease when it has seen the same greatest number for 5/4 TTL of its own clock, counted from
//     after the listing. The object was created before, so the time of the holder has ended by then.
//   - A holder that renewed in between created the next number. The number that the other would create exists then, and
//     its attempt fails.
//   - A holder that is late, because it was paused or cut off, finds the number that it would create taken. Numbers are
//     deleted only pruneAge after their successors were created. After its time has ended, a holder lists the numbers before it
//     creates one, and counts from before that.
//
// What a holder puts counts only if the lease is valid after the object store has confirmed it. So it was in the store
// before the lease of the next holder began, which reads all objects before it puts one.
//
// Elapsed time is the greater of that of the monotonic and that of the wall clock: the former stops while a machine is
// suspended, the latter may be set back.
type Lease struct {
	bucket *Bucket
	o      LeaseOptions
	nonce  string // of this process
	term   int64

	mu     sync.Mutex
	number int64     // the greatest of this process
	start  time.Time // of its validity, leaseTTL long
	lost   error     // another process took it
}

// LeaseOptions describe the process that takes a lease.
type LeaseOptions struct {
	// Holder identifies a data directory. A process takes a lease of its own holder at once: the caller guarantees that no
	// other process has that directory open.
	Holder string
	// URL is the address of the holder, for messages of others.
	URL string
	// Log receives what others hold; nil drops it.
	Log *slog.Logger
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// leaseTTL is how long a lease is valid without renewal. Another writer waits 5/4 of it for one that has ended without
// releasing the lease.
const leaseTTL = 12 * time.Second

const (
	maxTTL   = time.Minute // of the leases of other releases
	pruneAge = 10 * maxTTL // of lease objects
	leaseDir = "lease/"

	acquireRetries = 5
)

// ErrLost means that another process has taken the lease.
var ErrLost = errors.New("another writer has taken the lease")

// ErrExpired means that the lease could not be renewed in time. It may still be.
var ErrExpired = errors.New("the lease has expired, and the object store does not answer")

// leaseRecord is the content of a lease object.
type leaseRecord struct {
	Format   int    `json:"format"` // leaseFormat
	Holder   string `json:"holder"`
	Nonce    string `json:"nonce"`
	URL      string `json:"url"`
	Term     int64  `json:"term"`
	TTLMs    int64  `json:"ttl_ms"`
	Released bool   `json:"released,omitempty"`
}

const leaseFormat = 1

func (r *leaseRecord) ttl() time.Duration {
	if d := time.Duration(r.TTLMs) * time.Millisecond; d > 0 && d <= maxTTL {
		return d
	}
	return maxTTL
}

func leaseName(n int64) string { return fmt.Sprintf("%s%012d", leaseDir, n) }

// newestLease returns the greatest number and its content; 0 = there is none. An object that cannot be read has a zero
// record: it counts as held for maxTTL.
func newestLease(ctx context.Context, b *Bucket) (n int64, r leaseRecord, err error) {
	all, err := b.list(ctx, leaseDir)
	for _, o := range all {
		if k, err := strconv.ParseInt(path.Base(o.name), 10, 64); err == nil && k > n {
			n = k
		}
	}
	if err != nil || n == 0 {
		return 0, r, err
	}
	text, err := b.read(ctx, leaseName(n))
	if err != nil {
		return 0, r, err
	}
	if json.Unmarshal(text, &r) != nil {
		return n, leaseRecord{}, nil
	}
	if r.Format > leaseFormat {
		return n, r, fmt.Errorf("snapshot: %s of %s has format %d, this release reads %d: a newer release writes there", leaseName(n), b, r.Format, leaseFormat)
	}
	return n, r, nil
}

// Acquire takes the lease of b, and waits while another process holds it. Run renews it.
func Acquire(ctx context.Context, b *Bucket, o LeaseOptions) (*Lease, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Lease{bucket: b, o: o, nonce: rand.Text()}
	var seen int64
	var since time.Time
	for failures := 0; ; {
		start := o.Now()
		n, r, err := newestLease(ctx, b)
		if err != nil {
			return nil, err
		}
		if n != seen {
			seen, since = n, o.Now()
			if n > 0 && !r.Released && r.Holder != o.Holder {
				o.Log.Warn("another writer holds the lease: waiting", "writer", r.URL, "lease", leaseName(n), "longest", r.ttl()*5/4)
			}
		}
		left := r.ttl()*5/4 - elapsed(since, o.Now())
		if n > 0 && !r.Released && r.Holder != o.Holder && left > 0 {
			if err := pause(ctx, min(left, r.ttl()/8)); err != nil {
				return nil, err
			}
			continue
		}
		l.term = n + 1
		switch err := l.put(ctx, n+1, false); {
		case errors.Is(err, errExists):
			continue
		case err != nil && failures < acquireRetries && pause(ctx, leaseTTL/24) == nil:
			failures++ // the object may exist nevertheless: it has this holder then
			continue
		case err != nil:
			return nil, err
		}
		l.number, l.start = n+1, start
		return l, nil
	}
}

// put creates a lease object.
func (l *Lease) put(ctx context.Context, n int64, released bool) error {
	text, err := json.Marshal(leaseRecord{leaseFormat, l.o.Holder, l.nonce, l.o.URL, l.term, leaseTTL.Milliseconds(), released})
	if err != nil {
		return err
	}
	return l.bucket.create(ctx, leaseName(n), text)
}

// Term returns the number that began the lease. Later leases have greater terms.
func (l *Lease) Term() int64 { return l.term }

// Valid returns nil while the lease is valid, else an error that wraps ErrLost or ErrExpired.
func (l *Lease) Valid() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.valid()
}

func (l *Lease) valid() error {
	if l.lost != nil {
		return l.lost
	}
	if elapsed(l.start, l.o.Now()) >= leaseTTL {
		return fmt.Errorf("snapshot: %s: %w", l.bucket, ErrExpired)
	}
	return nil
}

// Left returns how long the lease is valid without renewal, 0 or less when it is not.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return 0
	}
	return leaseTTL - elapsed(l.start, l.o.Now())
}

// Run renews the lease until ctx ends, and returns nil then. It returns an error that wraps ErrLost when another process
// has taken the lease.
func (l *Lease) Run(ctx context.Context) error {
	for wait := leaseTTL / 3; ; {
		if pause(ctx, wait) != nil {
			return nil
		}
		wait = leaseTTL / 3
		err := l.renew(ctx)
		switch {
		case errors.Is(err, ErrLost):
			return err
		case err != nil && ctx.Err() == nil:
			l.o.Log.Warn("the lease is not renewed: "+err.Error(), "left", l.Left())
			wait = leaseTTL / 12
		}
	}
}

// renew creates the next object of the lease.
func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTTL/3)
	defer cancel()
	start := l.o.Now()
	if l.Valid() != nil { // numbers may have been deleted meanwhile
		n, r, err := newestLease(ctx, l.bucket)
		if err != nil {
			return err
		}
		if err := l.follow(n, r); err != nil {
			return err
		}
	}
	l.mu.Lock()
	next := l.number + 1
	l.mu.Unlock()
	err := l.put(ctx, next, false)
	if errors.Is(err, errExists) { // another's, or of an attempt of this process that seemed to fail
		n, r, err := newestLease(ctx, l.bucket)
		if err == nil {
			err = l.follow(n, r)
		}
		return errors.Join(err, errIf(err == nil, "a renewal before was late"))
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.number, l.start = next, start
	l.mu.Unlock()
	l.prune(ctx)
	return nil
}

func errIf(is bool, text string) error {
	if is {
		return errors.New(text)
	}
	return nil
}

// follow makes n, the greatest number, that of l if this process put it. Else the lease is lost.
func (l *Lease) follow(n int64, r leaseRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < l.number || r.Nonce != l.nonce {
		l.lost = fmt.Errorf("snapshot: %s of %s is of %q: %w", leaseName(n), l.bucket, r.URL, ErrLost)
		return l.lost
	}
	l.number = n
	return nil
}

// prune deletes old lease objects, as far as it can.
func (l *Lease) prune(ctx context.Context) {
	all, err := l.bucket.list(ctx, leaseDir)
	if err != nil || len(all) == 0 {
		return
	}
	newest := all[len(all)-1].at
	for i, o := range all[:len(all)-1] {
		if newest.Sub(all[i+1].at) < pruneAge {
			return
		}
		_ = l.bucket.remove(ctx, o.name)
	}
}

// Release ends the lease, so that the next process need not wait. It does nothing if the lease is not valid, or another
// process has it already.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	next, invalid := l.number+1, l.valid()
	if invalid == nil {
		l.lost = fmt.Errorf("snapshot: %s: the lease is released: %w", l.bucket, ErrExpired)
	}
	l.mu.Unlock()
	if invalid != nil {
		return nil
	}
	err := l.put(ctx, next, true)
	for tries := 0; tries < acquireRetries && errors.Is(err, errExists); tries++ {
		// Another process took the lease, or a put of this one seemed to fail or was cut off.
		n, r, readErr := newestLease(ctx, l.bucket)
		switch {
		case readErr != nil:
			return readErr
		case l.follow(n, r) != nil || r.Released:
			return nil
		}
		err = l.put(ctx, n+1, true)
	}
	return err
}

// elapsed returns the time from a to b, by the clock that says more.
func elapsed(a, b time.Time) time.Duration {
	return max(b.Sub(a), b.Round(0).Sub(a.Round(0)))
}

// pause waits for d, or until ctx ends, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
