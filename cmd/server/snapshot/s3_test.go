package snapshot

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/cmd/server/snapshot/s3test"
)

// A replica has what its writer acknowledged through a real S3 server, which creates objects once and may be away.
func TestS3(t *testing.T) {
	s := s3test.Start(t)
	open := func(prefix string) *Bucket {
		b, err := OpenBucket(t.Context(), s.URL(prefix))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	t.Run("once", func(t *testing.T) { testCreatedOnce(t, open("once")) })
	t.Run("replica", func(t *testing.T) { testReplica(t, open("deep/prefix")) })
	t.Run("large", func(t *testing.T) { // in parts
		b, content := open("large"), make([]byte, 20<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(content)
		if err := b.create(t.Context(), "x", content); err != nil {
			t.Fatal(err)
		}
		if err := b.create(t.Context(), "x", content[1:]); !errors.Is(err, errExists) {
			t.Errorf("again: %v", err)
		}
		got, err := b.read(t.Context(), "x")
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes are read: %v", len(got), err)
		}
		if _, err := b.read(t.Context(), "y"); !errors.Is(err, errMissing) {
			t.Errorf("one that is not there: %v", err)
		}
	})
	t.Run("away", func(t *testing.T) {
		b, first, second := open("away"), newSite(t, t.TempDir()), newSite(t, t.TempDir())
		w, r := first.write(t, b), second.replica(t, b)
		poll(t, r, "")
		s.Stop()
		first.put(t, rows(0, 3)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Sync(ctx); err == nil {
			t.Error("acknowledged without an object store")
		}
		poll(t, r, "unreachable")
		s.Restart(t)
		acknowledge(t, w)
		poll(t, r, "")
		if diff := cmp.Diff(first.content(t), second.content(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// URLs of other kinds are refused by name.
func TestOpenBucket(t *testing.T) {
	for _, text := range []string{"", "gs://x", "file://relative/x", "file:///x?y=z", "s3:///x", "/tmp/x", "s3://x?unknown=1", "%"} {
		if b, err := OpenBucket(t.Context(), text); err == nil || text != "s3://x?unknown=1" && !strings.Contains(err.Error(), "file:///DIR") {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
}

// Requests fail, and answers are lost: what a writer acknowledges is on the replica, and in the end it has everything.
func TestWriterWithoutAnswers(t *testing.T) {
	b := memory()
	first, second := newSite(t, t.TempDir()), newSite(t, t.TempDir())
	w, r := first.write(t, b), second.replica(t, b)
	random := rand.New(rand.NewPCG(3, 3))
	fail := func() error {
		if random.IntN(4) == 0 {
			return errors.New("the network is down")
		}
		return nil
	}
	acknowledged := 0
	for i := range 60 {
		first.put(t, row(i))
		if i%9 == 0 {
			first.fit(t, "a", float64(i+1))
			w.Fitted()
		}
		b.disturb = fail
		err := w.Sync(t.Context())
		b.disturb = nil
		poll(t, r, "")
		diff := cmp.Diff(first.content(t), second.content(t))
		if err == nil {
			acknowledged++
		}
		if err == nil && diff != "" {
			t.Fatalf("row %d was acknowledged: %s", i, diff)
		}
	}
	if acknowledged == 0 || acknowledged == 60 {
		t.Errorf("%d of 60 were acknowledged: the test does nothing", acknowledged)
	}
	acknowledge(t, w)
	poll(t, r, "")
	if diff := cmp.Diff(first.content(t), second.content(t)); diff != "" {
		t.Error(diff)
	}
}

// A writer that cannot renew its lease acknowledges nothing, and goes on when the object store is back.
func TestWriterIsCutOff(t *testing.T) {
	b, site := memory(), newSite(t, t.TempDir())
	w := site.write(t, b)
	synctest.Test(t, func(t *testing.T) {
		w.lease.start, w.lease.o.Now = time.Now(), time.Now
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.lease.Run(ctx) }()
		time.Sleep(time.Minute)
		if err := w.Valid(); err != nil {
			t.Error(err)
		}
		b.disturb = func() error { return errors.New("the network is down") }
		time.Sleep(leaseTTL)
		synctest.Wait()
		if err := w.Valid(); !errors.Is(err, ErrExpired) {
			t.Errorf("cut off: %v", err)
		}
		b.disturb = nil
		time.Sleep(leaseTTL / 2)
		synctest.Wait()
		if err := w.Valid(); err != nil {
			t.Errorf("back: %v", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
