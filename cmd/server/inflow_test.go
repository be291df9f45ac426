package server

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/stats"
)

// TestInflowWaits: of a client that sends without end no more is read than the largest message, and a read, until the
// handler is done with a message.
func TestInflowWaits(t *testing.T) {
	s := newServer(t, Options{})
	synctest.Test(t, func(t *testing.T) {
		const read, sent = 100, 10000
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", sent)))
		f := newInflow(s, httptest.NewRecorder(), r)
		f.most = 1000
		got := 0
		go func() {
			for b := make([]byte, read); ; {
				n, err := f.Read(b)
				if got += n; err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if got != 1000 || f.lease.held != 1000 {
			t.Errorf("%d bytes are read and %d held before the handler has any, want 1000", got, f.lease.held)
		}
		ctx := context.WithValue(t.Context(), inflowKey{}, f)
		consumption{}.HandleRPC(ctx, &stats.InPayload{CompressedLength: 295}) // and 5 of its header
		if err := f.next(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got != 1300 || f.lease.held != 1000 {
			t.Errorf("%d bytes are read and %d held after a message of 300, want 1300 and 1000", got, f.lease.held)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := f.Read(make([]byte, 1)); err == nil || err == io.EOF || got != 1300 {
			t.Errorf("after its end: %v, %d bytes", err, got)
		}
		f.end()
	})
}

// TestInflowEnds: the end of a request waits for its handler, and none begins after it.
func TestInflowEnds(t *testing.T) {
	s := newServer(t, Options{})
	synctest.Test(t, func(t *testing.T) {
		f := newInflow(s, httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader("")))
		if !f.begin() {
			t.Fatal("no handler begins")
		}
		ended := false
		go func() { f.end(); ended = true }()
		synctest.Wait()
		if ended || f.begin() {
			t.Errorf("ended %v beside its handler, or another begins", ended)
		}
		f.done()
		synctest.Wait()
		if !ended || f.begin() {
			t.Errorf("ended %v after its handler, or another begins", ended)
		}
	})
}
