package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// copier makes a store and models those of the newest objects of a bucket.
type copier struct {
	bucket *Bucket
	dir    string // of the data
	db     *store.DB
	models *registry.Registry
	state  state
	last   Header // of the last object that was applied
}

// Applied is what objects changed.
type Applied struct {
	Full, Changes int // objects
	Rows          store.Touched
	Models        []spec.Key
}

// errGap means that an object is missing between others.
var errGap = errors.New("object missing")

// places are the objects of the newest term that has a full snapshot.
type places struct {
	full    []place // newest first
	changes map[place]bool
	last    place // the last changes, else the newest full snapshot; zero = there is none
}

// find lists the objects that count.
func (c *copier) find(ctx context.Context) (out places, err error) {
	all, err := c.bucket.list(ctx, snapshotDir)
	if err != nil {
		return out, err
	}
	out.changes = map[place]bool{}
	for _, o := range all {
		if p, full, ok := parsePlace(o.name); ok && full {
			out.full = append(out.full, p)
		}
	}
	slices.SortFunc(out.full, func(a, b place) int { return b.compare(a) })
	if len(out.full) == 0 {
		return out, nil
	}
	out.last = out.full[0]
	out.full = slices.DeleteFunc(out.full, func(p place) bool { return p.term != out.last.term })
	for _, o := range all {
		if p, full, ok := parsePlace(o.name); ok && !full && p.term == out.last.term {
			out.changes[p] = true
			if p.number > out.last.number {
				out.last = p
			}
		}
	}
	return out, nil
}

// load applies the newest objects. Where it fails, what was applied before is in use. done is what it applied.
func (c *copier) load(ctx context.Context) (done Applied, err error) {
	found, err := c.find(ctx)
	if err != nil || found.last == (place{}) {
		return done, errors.Join(err, errIf(err == nil, fmt.Sprintf("snapshot: %s has no snapshots yet", c.bucket)))
	}
	at := c.state.place()
	if at == found.last {
		return done, nil
	}
	following := place{at.term, at.number + 1}
	if at.term != found.last.term || !found.changes[following] {
		if err := c.loadFull(ctx, found, &done); err != nil {
			return done, err
		}
	}
	for {
		at := c.state.place()
		if at.compare(found.last) >= 0 {
			return done, nil
		}
		next := place{at.term, at.number + 1}
		if !found.changes[next] {
			return done, fmt.Errorf("snapshot: %s of %s: %w", next.changes(), c.bucket, errGap)
		}
		if err := c.apply(ctx, next, false, &done); err != nil {
			return done, err
		}
	}
}

// loadFull applies the newest full snapshot of the term that is whole.
func (c *copier) loadFull(ctx context.Context, found places, done *Applied) (err error) {
	for _, p := range found.full {
		if p.term == c.state.Term && p.number < c.state.Number {
			break // the present state is newer
		}
		bad := c.apply(ctx, p, true, done)
		if bad == nil {
			return nil
		}
		if err == nil {
			err = bad
		}
		if !errors.Is(bad, ErrDamaged) && !errors.Is(bad, errMissing) {
			return err
		}
	}
	return errors.Join(err, errIf(err == nil, fmt.Sprintf("snapshot: %s has no full snapshot after %d-%d", c.bucket, c.state.Term, c.state.Number)))
}

// apply applies one object, after it has checked all of it.
func (c *copier) apply(ctx context.Context, p place, full bool, done *Applied) error {
	name := p.changes()
	if full {
		name = p.full()
	}
	content, err := c.bucket.read(ctx, name)
	if err != nil {
		return err
	}
	d, err := decode(content, p, full)
	if err != nil {
		return fmt.Errorf("snapshot: %s of %s: %w", name, c.bucket, err)
	}
	if err := c.install(d, done); err != nil {
		return fmt.Errorf("snapshot: %s of %s: %w", name, c.bucket, err)
	}
	c.last = d.Header
	c.state.Term, c.state.Number, c.state.Writer = p.term, p.number, false
	if full {
		done.Full++
	} else {
		done.Changes++
	}
	return c.state.write(c.dir)
}

// install makes the changes of d. What it changed is in done also where it fails.
func (c *copier) install(d decoded, done *Applied) error {
	rows, err := d.rows.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer rows.Close()
	var touched store.Touched
	if d.Full {
		touched, err = c.become(rows)
	} else {
		var all bytes.Buffer // the archive checks its CRC at the end
		if _, err = io.Copy(&all, rows); err == nil {
			touched, err = c.db.Apply(&all)
		}
	}
	done.Rows.Add(touched)
	if err != nil {
		return err
	}
	keys, err := c.models.Install(d.models, d.Models)
	done.Models = append(done.Models, keys...)
	if err != nil {
		c.state.Term, c.state.Number = 0, 0 // a model is missing here: a full snapshot has all
	}
	return err
}

// become makes the store that of a backup.
func (c *copier) become(backup io.Reader) (t store.Touched, err error) {
	path := filepath.Join(c.dir, "snapshot.backup")
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return t, err
	}
	_, err = io.Copy(f, backup)
	if err = errors.Join(err, f.Close()); err != nil {
		return t, err
	}
	return c.db.Become(path)
}
