package unfitted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Keys are the canonical keys of models that were measured since they were fitted. A file lists them. They are safe for
// concurrent use, but for Take and Done, which one goroutine calls in turn.
type Keys struct {
	// More receives a value after keys were marked.
	More chan struct{}

	file string

	mu      sync.Mutex
	marked  map[spec.Key]mark
	marks   int                    // number of the last one
	storing map[spec.Key]int       // requests that store measurements of a key
	taken   map[spec.Key]time.Time // being fitted, with the time of their first measurement
}

// mark says that a key was measured since it was fitted.
type mark struct {
	last  int       // number of its last mark
	since time.Time // when the first of its measurements arrived
}

// entry is a key in the file.
type entry struct {
	spec.Key
	Since time.Time `json:"since,omitzero"` // earlier releases wrote none
}

// New returns no keys. Load adds those of file.
func New(file string) *Keys {
	return &Keys{file: file, More: make(chan struct{}, 1), marked: map[spec.Key]mark{}, storing: map[spec.Key]int{}}
}

// Load marks the keys that an earlier process left.
func (u *Keys) Load() error {
	b, err := os.ReadFile(u.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var entries []entry
	if err == nil {
		err = json.Unmarshal(b, &entries)
	}
	if err != nil {
		return fmt.Errorf("unfitted: %s: %w: remove it; the models that it lists are then fitted by /v1/fit only", u.file, err)
	}
	since := map[spec.Key]time.Time{}
	for _, e := range entries {
		if e.Since.IsZero() {
			e.Since = time.Now()
		}
		since[query.CanonicalKey(e.Key)] = e.Since
	}
	return u.mark(since)
}

// since returns the keys that are marked or being fitted, each with the time of its first measurement. The caller holds
// mu.
func (u *Keys) since() map[spec.Key]time.Time {
	out := map[spec.Key]time.Time{}
	for k, m := range u.marked {
		out[k] = m.since
	}
	maps.Copy(out, u.taken)
	return out
}

// save writes the file. The caller holds mu.
func (u *Keys) save() error {
	since := u.since()
	for k := range u.storing {
		if _, ok := since[k]; !ok {
			since[k] = time.Now()
		}
	}
	if len(since) == 0 {
		if err := os.Remove(u.file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var entries []entry
	for _, k := range slices.SortedFunc(maps.Keys(since), perfmodel.CompareKeys) {
		entries = append(entries, entry{k, since[k].UTC()})
	}
	return atomicfile.Write(u.file, 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(entries) })
}

// Mark marks keys, which were measured now. They are on disk when it returns.
func (u *Keys) Mark(keys []spec.Key) error {
	since := map[spec.Key]time.Time{}
	for k := range query.CanonicalKeys(keys) {
		since[k] = time.Now()
	}
	return u.mark(since)
}

// mark marks canonical keys, each with the time of its first measurement that is not fitted.
func (u *Keys) mark(since map[spec.Key]time.Time) error {
	if len(since) == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	listed := true
	u.marks++
	for k, first := range since {
		listed = listed && u.listed(k)
		if m, ok := u.marked[k]; ok && m.since.Before(first) {
			first = m.since
		}
		u.marked[k] = mark{u.marks, first}
	}
	select {
	case u.More <- struct{}{}:
	default: // a signal is pending
	}
	if listed {
		return nil
	}
	return u.save()
}

// listed reports whether the file has a key. The caller holds mu.
func (u *Keys) listed(k spec.Key) bool {
	_, taken := u.taken[k]
	return taken || u.marked[k].last > 0 || u.storing[k] > 0
}

// Expect lists keys in the file before measurements of them are stored: a process that is killed meanwhile leaves none
// unfitted. Stored must be called after.
func (u *Keys) Expect(keys []spec.Key) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	listed := true
	for k := range query.CanonicalKeys(keys) {
		listed = listed && u.listed(k)
		u.storing[k]++
	}
	if listed {
		return nil
	}
	return u.save()
}

// Stored marks the keys of Expect where measurements of them have changed.
func (u *Keys) Stored(keys []spec.Key, changed bool) error {
	var err error
	if changed {
		err = u.Mark(keys)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	listed := true
	for k := range query.CanonicalKeys(keys) {
		if u.storing[k]--; u.storing[k] == 0 {
			delete(u.storing, k)
			listed = listed && u.listed(k)
		}
	}
	if !listed {
		err = errors.Join(err, u.save())
	}
	return err
}

// Waiting returns the number of keys that are marked or being fitted, and the age of the first of their measurements.
func (u *Keys) Waiting() (keys int, oldest time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.since()
	for _, since := range all {
		oldest = max(oldest, time.Since(since))
	}
	return len(all), oldest
}

// Take returns and clears the marked keys, to be fitted. They stay in the file until Done.
func (u *Keys) Take() map[spec.Key]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[spec.Key]bool{}
	u.taken = map[spec.Key]time.Time{}
	for k, m := range u.marked {
		u.taken[k], out[k] = m.since, true
	}
	clear(u.marked)
	return out
}

// Done ends the fit of the keys of Take. Where it failed they are marked again, since the time of before.
func (u *Keys) Done(fitted bool) error {
	var err error
	if !fitted {
		err = u.mark(u.taken)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.taken = nil
	return errors.Join(err, u.save())
}

// Unmark removes the marks of keys that were fitted, but for those after mark number last.
func (u *Keys) Unmark(fitted []spec.Key, last int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for k := range query.CanonicalKeys(fitted) {
		if u.marked[k].last <= last {
			delete(u.marked, k)
		}
	}
	return u.save()
}

// LastMark returns the number of the last mark.
func (u *Keys) LastMark() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.marks
}
