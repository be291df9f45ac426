package snapshot

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// row returns the i-th of many invented rows.
func row(i int) spec.Measurement {
	dp := 1 << (i % 3)
	return spec.Measurement{
		Config: spec.Config{
			Model:       spec.Model{Name: fmt.Sprint("model-", i%2), Kind: spec.Opaque, ParamCount: 1e8, FLOPsPerSample: 1e10},
			Accelerator: spec.Accelerator{Name: "x", FP32: 1e13, MemBytes: 16 << 30, MemBps: 5e11},
			Plan:        spec.Plan{DP: dp, MicroBatch: 64 / dp}.Normal(), Shape: spec.NewShape(dp),
		},
		Outcome: spec.OK, Source: "test", Origin: fmt.Sprint(i), StepSec: []float64{1 / float64(dp)},
	}
}

func rows(from, to int) (out []spec.Measurement) {
	for i := from; i < to; i++ {
		out = append(out, row(i))
	}
	return out
}

// site is a data directory.
type site struct {
	dir    string
	db     *store.DB
	models *registry.Registry
}

func (s *site) open() (*store.DB, error) {
	return store.Open(filepath.Join(s.dir, "store"), store.Options{})
}

func newSite(t testing.TB, dir string) *site {
	t.Helper()
	s := &site{dir: dir}
	var err error
	if s.db, err = s.open(); err == nil {
		s.models, err = registry.Open(filepath.Join(dir, "models"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	return s
}

// write makes s the writer of b; end closes both.
func (s *site) write(t testing.TB, b *Bucket) *Writer {
	t.Helper()
	w, err := NewWriter(t.Context(), b, s.dir, s.db, s.open, s.models, WriterOptions{URL: "http://writer", Release: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	s.db = w.DB()
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

func (s *site) replica(t testing.TB, b *Bucket) *Replica {
	t.Helper()
	r, err := NewReplica(t.Context(), b, s.dir, s.db, s.models, ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *site) put(t testing.TB, ms ...spec.Measurement) {
	t.Helper()
	if err := s.db.Put(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
}

// fit fits a model to three rows.
func (s *site) fit(t testing.TB, model string, sec float64) {
	t.Helper()
	fam, err := family.Lookup("rubick")
	if err != nil {
		t.Fatal(err)
	}
	three := rows(0, 3)
	for i := range three {
		three[i].Config.Model.Name, three[i].StepSec = model, []float64{sec / float64(i+1)}
	}
	fitted, card, err := perfmodel.FitKey(t.Context(), fam, three, perfmodel.FitOptions{})
	if err == nil {
		err = s.models.Put(card, fitted)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// content is all that a site answers from, as text.
func (s *site) content(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	records, err := s.db.Records(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		out[fmt.Sprint(r.Row.Config.Model.Name, r.Row.Origin, r.Forgotten != nil)] = fmt.Sprint(r.Row, r.Provenance, r.Quarantined, r.Forgotten)
	}
	files, err := s.models.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		out[name] = registry.Sum(b)
	}
	return out
}

func acknowledge(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// poll looks for objects, which must succeed or fail for a reason.
func poll(t testing.TB, r *Replica, reason string) (done Applied) {
	t.Helper()
	before := r.Counts().Failed
	r.Poll(t.Context(), func(a Applied) { done = a })
	for _, name := range FailureReasons {
		if n := r.Counts().Failed[name] - before[name]; (n == 1) != (name == reason) {
			t.Fatalf("%d polls failed because %s, want only %q: %s", n, name, reason, r.failure)
		}
	}
	return done
}

func directory(t testing.TB) *Bucket {
	t.Helper()
	b, err := OpenBucket(t.Context(), "file://"+filepath.Join(t.TempDir(), "shared"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A replica has what its writer acknowledged, through rows, deletions, fits and full snapshots. So does one that begins
// later, and one that was away for long.
func TestReplica(t *testing.T) { testReplica(t, directory(t)) }

func testReplica(t *testing.T, b *Bucket) {
	t.Helper()
	first, second := newSite(t, t.TempDir()), newSite(t, t.TempDir())
	first.put(t, rows(0, 20)...)
	first.fit(t, "a", 1)
	w := first.write(t, b)
	follower, late := second.replica(t, b), newSite(t, t.TempDir())
	if err := follower.Ready(); err == nil {
		t.Error("ready before the first snapshot")
	}
	if done := poll(t, follower, ""); done.Full != 1 || len(done.Rows.Keys) != 2 || len(done.Models) != 1 {
		t.Errorf("the first poll: %+v", done)
	}
	for step := range maxChanges + 10 {
		switch step % 10 {
		case 3:
			some, err := first.db.Records(t.Context(), store.Filter{})
			if err == nil {
				_, err = first.db.Forget(t.Context(), some[:2], "worse")
			}
			if err != nil {
				t.Fatal(err)
			}
		case 5:
			first.fit(t, fmt.Sprint("m", step%3), float64(step))
			w.Fitted()
		case 7:
			cards, err := first.models.List()
			if err == nil {
				err = first.models.Remove(cards[0].Key, cards[0].Family)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.Fitted()
		default:
			first.put(t, rows(20+3*step, 23+3*step)...)
		}
		acknowledge(t, w)
		if err := w.putFullIfDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if done := poll(t, follower, ""); done.Changes != 1 || done.Full != 0 {
			t.Fatalf("step %d: %+v", step, done)
		}
		if diff := cmp.Diff(first.content(t), second.content(t)); diff != "" {
			t.Fatalf("step %d: %s", step, diff)
		}
	}
	if done := poll(t, late.replica(t, b), ""); done.Full != 1 || done.Changes == 0 || done.Changes > maxChanges {
		t.Errorf("one that begins later: %+v", done)
	}
	if diff := cmp.Diff(first.content(t), late.content(t)); diff != "" {
		t.Error(diff)
	}
	if follower.Ready() != nil || follower.Writer() != "http://writer" {
		t.Errorf("%v, writer %q", follower.Ready(), follower.Writer())
	}
	for range 2 {
		if err := w.putFull(t.Context(), w.number, w.files); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			first.put(t, row(10000+i+int(w.number)))
			acknowledge(t, w)
		}
	}
	all, err := b.list(t.Context(), snapshotDir)
	if err != nil || len(all) > 2+6 {
		t.Errorf("%d objects are kept: %v", len(all), err)
	}
}

// The next writer begins with everything that was acknowledged, in its own directory or in another.
func TestWriterIsReplaced(t *testing.T) {
	b := directory(t)
	first := newSite(t, t.TempDir())
	w := first.write(t, b)
	first.put(t, rows(0, 5)...)
	acknowledge(t, w)
	want := first.content(t)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(t.Context()); err == nil {
		t.Error("a writer without a lease acknowledges")
	}

	second := newSite(t, t.TempDir())
	w = second.write(t, b)
	if diff := cmp.Diff(want, second.content(t)); diff != "" || !w.TookOver() {
		t.Fatalf("took over %v: %s", w.TookOver(), diff)
	}
	second.put(t, rows(5, 8)...)
	acknowledge(t, w)
	want = second.content(t)
	if err := errors.Join(w.Close(t.Context()), second.db.Close()); err != nil {
		t.Fatal(err)
	}
	second = newSite(t, second.dir) // the same directory again: nothing is loaded
	w = second.write(t, b)
	if diff := cmp.Diff(want, second.content(t)); diff != "" || w.TookOver() {
		t.Fatalf("took over %v: %s", w.TookOver(), diff)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	first.put(t, row(99)) // was not acknowledged
	w = first.write(t, b)
	if diff := cmp.Diff(want, first.content(t)); diff != "" {
		t.Fatal(diff)
	}
	if aside, err := filepath.Glob(filepath.Join(first.dir, "store-before-*")); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %q, %v", aside, err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	other := newSite(t, t.TempDir())
	other.put(t, row(3))
	if _, err := NewWriter(t.Context(), b, other.dir, other.db, other.open, other.models, WriterOptions{}); err == nil || !strings.Contains(err.Error(), other.dir) {
		t.Errorf("a store of its own: %v", err)
	}
	other = newSite(t, other.dir)
	if _, err := NewReplica(t.Context(), b, other.dir, other.db, other.models, ReplicaOptions{}); err == nil || !strings.Contains(err.Error(), other.dir) {
		t.Errorf("a replica with a store of its own: %v", err)
	}
}

// An older copy of the writer's directory does not become the newest state.
func TestWriterFromAnOlderCopy(t *testing.T) {
	b := directory(t)
	site := newSite(t, t.TempDir())
	w := site.write(t, b)
	site.put(t, rows(0, 3)...)
	acknowledge(t, w)
	close := func() {
		if err := errors.Join(w.Close(t.Context()), site.db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	close()
	site = newSite(t, site.dir)
	w = site.write(t, b)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(site.dir)); err != nil { // as of a volume snapshot
		t.Fatal(err)
	}
	site.put(t, rows(3, 6)...)
	acknowledge(t, w)
	want := site.content(t)
	close()
	old := newSite(t, copied)
	if cmp.Equal(want, old.content(t)) {
		t.Fatal("the copy has everything")
	}
	old.write(t, b)
	if diff := cmp.Diff(want, old.content(t)); diff != "" {
		t.Error(diff)
	}
}

// Damaged, missing and newer objects, and a store that is away, are named and counted. They change nothing.
func TestReplicaOfBadObjects(t *testing.T) {
	b := directory(t)
	first, second := newSite(t, t.TempDir()), newSite(t, t.TempDir())
	first.put(t, rows(0, 5)...)
	first.fit(t, "a", 1)
	w, r := first.write(t, b), second.replica(t, b)
	poll(t, r, "")
	before := second.content(t)
	first.put(t, rows(5, 9)...)
	first.fit(t, "b", 1)
	w.Fitted()
	acknowledge(t, w)
	path := filepath.Join(b.dir, place{w.lease.Term(), 1}.changes())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, reason string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		poll(t, r, reason)
		if diff := cmp.Diff(before, second.content(t)); diff != "" {
			t.Fatalf("%s: %s", what, diff)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		flipped := slices.Clone(whole)
		at := random.IntN(len(whole))
		flipped[at] ^= 1 << random.IntN(8)
		check(fmt.Sprint("flipped ", at), "damaged", flipped)
		check("truncated", "damaged", whole[:random.IntN(len(whole))])
	}
	h := Header{Term: w.lease.Term(), Number: 1, StoreFormat: store.FormatVersion, Release: "v9"}
	for what, change := range map[string]func(*Header){
		"another term": func(h *Header) { h.Term++ }, "another number": func(h *Header) { h.Number++ }, "full": func(h *Header) { h.Full = true },
	} {
		h := h
		change(&h)
		content, err := encode(h, func(io.Writer) error { return nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(what, "damaged", content)
	}
	for what, change := range map[string]func(*Header){
		"newer rows": func(h *Header) { h.StoreFormat++ }, "older rows": func(h *Header) { h.StoreFormat = store.OldestCopy - 1 }, "newer": func(*Header) {},
	} {
		h := h
		change(&h)
		content, err := encode(h, func(io.Writer) error { return nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if what == "newer" {
			content = resealed(t, content, fmt.Sprintf(`"version":%d`, objectVersion), fmt.Sprintf(`"version":%d`, objectVersion+1))
		}
		check(what, "release", content)
		if !strings.Contains(r.failure, "pacer v9") || !strings.Contains(r.failure, "upgrade") {
			t.Errorf("%s: it does not name the release: %s", what, r.failure)
		}
	}

	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	away := b.dir + ".away"
	if err := os.Rename(b.dir, away); err != nil {
		t.Fatal(err)
	}
	poll(t, r, "unreachable")
	if age, ok := r.Age(); !ok || age <= 0 || r.Ready() != nil {
		t.Errorf("age %v, %v, %v: want the state before", age, ok, r.Ready())
	}
	if err := os.Rename(away, b.dir); err != nil {
		t.Fatal(err)
	}
	first.put(t, rows(9, 12)...)
	acknowledge(t, w)
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	poll(t, r, "missing")
	if err := os.Rename(path+".aside", path); err != nil {
		t.Fatal(err)
	}
	if done := poll(t, r, ""); done.Changes != 2 {
		t.Errorf("at last: %+v", done)
	}
	if diff := cmp.Diff(first.content(t), second.content(t)); diff != "" {
		t.Error(diff)
	}
}

// resealed returns an object with another text in its header, and a right checksum.
func resealed(t *testing.T, content []byte, old, new string) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(content[:len(content)-sha256.Size]), int64(len(content)-sha256.Size))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	to := zip.NewWriter(&out)
	for _, f := range z.File {
		text, err := readFile(f, maxHeader)
		if err != nil {
			t.Fatal(err)
		}
		w, err := to.Create(f.Name)
		if err == nil {
			_, err = w.Write(bytes.Replace(text, []byte(old), []byte(new), 1))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(out.Bytes())
	return append(out.Bytes(), sum[:]...)
}

// A replica that is older than its bound is not ready.
func TestReplicaAge(t *testing.T) {
	b := memory()
	first, second := newSite(t, t.TempDir()), newSite(t, t.TempDir())
	first.write(t, b)
	r := second.replica(t, b)
	poll(t, r, "")
	synctest.Test(t, func(t *testing.T) {
		r.current = time.Now()
		time.Sleep(DefaultMaxAge)
		if err := r.Ready(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := r.Ready(); err == nil || !strings.Contains(err.Error(), "1m1s") {
			t.Errorf("%v", err)
		}
	})
}

// What a former writer still puts reaches no replica, and it acknowledges nothing.
func TestFormerWriter(t *testing.T) {
	b := directory(t)
	first, second, third := newSite(t, t.TempDir()), newSite(t, t.TempDir()), newSite(t, t.TempDir())
	old := first.write(t, b)
	first.put(t, rows(0, 3)...)
	acknowledge(t, old)
	r := third.replica(t, b)
	poll(t, r, "")
	if err := old.lease.Release(t.Context()); err != nil { // as if its time had ended
		t.Fatal(err)
	}
	second.write(t, b)
	first.put(t, row(9))
	old.lease.lost = nil
	if err := old.Sync(t.Context()); err != nil { // its clock would have to be wrong
		t.Fatal(err)
	}
	poll(t, r, "")
	if diff := cmp.Diff(second.content(t), third.content(t)); diff != "" {
		t.Error(diff)
	}
	if err := old.lease.renew(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("renewed: %v", err)
	}
	if err := old.Sync(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("acknowledged: %v", err)
	}
}

// Objects of this and of every release before are read. The file was written by the first release with replicas.
func TestObjectOfTheFirstRelease(t *testing.T) {
	content, err := os.ReadFile("testdata/version1.full")
	if err != nil {
		t.Fatal(err)
	}
	b, site := memory(), newSite(t, t.TempDir())
	p := place{1, 0}
	if err := b.create(t.Context(), p.full(), content); err != nil {
		t.Fatal(err)
	}
	poll(t, site.replica(t, b), "")
	n, err := site.db.Len(t.Context(), store.Filter{})
	cards, errCards := site.models.List()
	if err != nil || errCards != nil || n != 5 || len(cards) != 1 {
		t.Errorf("%d rows, %d models: %v %v", n, len(cards), err, errCards)
	}
}
