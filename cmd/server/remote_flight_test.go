package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/cmd/server/access"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner/remote"
	"github.com/pacer-ml/pacer/profiler/store"
)

// remoteClients returns a Go client of s that sends record batches, and one that sends JSON.
func remoteClients(t *testing.T, s *Server, o remote.Options) (flown, plain *remote.Client) {
	t.Helper()
	conn, _ := serveRPC(t, s)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	for i, to := range []**remote.Client{&flown, &plain} {
		if i == 0 {
			o.Flight = conn.Target()
		} else {
			o.Flight = ""
		}
		c, err := remote.New(web.URL, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		*to = c
	}
	return flown, plain
}

// manyRows returns n different rows.
func manyRows(t *testing.T, s *Server, n int) (out []spec.Measurement) {
	t.Helper()
	base := measured(t, s, 1)
	for i := range n {
		m := base[i%len(base)]
		m.Config.SeqLen, m.Source = 1024+i, []string{"a", "b"}[i%2]
		out = append(out, m)
	}
	return out
}

// rowsOf returns the rows of a client by their length.
func rowsOf(t *testing.T, c *remote.Client, f remote.Filter) map[int]spec.Measurement {
	t.Helper()
	out := map[int]spec.Measurement{}
	for m, err := range c.Rows(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		out[m.Config.SeqLen] = m
	}
	return out
}

// Rows go as record batches or as JSON, and are the same.
func TestRemoteFlightRows(t *testing.T) {
	for _, over := range []string{"flight", "JSON"} {
		s := newServer(t, Options{})
		flown, plain := remoteClients(t, s, remote.Options{})
		writer := flown
		if over == "JSON" {
			writer = plain
		}
		rows := manyRows(t, s, 4100)
		if n, err := writer.PutRows(t.Context(), perfmodel.Rows(rows)); n.Added != len(rows) || err != nil {
			t.Fatalf("%s: %+v, %v", over, n, err)
		}
		for _, f := range []remote.Filter{{}, {Models: []string{"llama3-8b"}, Accelerators: []string{"h100"}, Sources: []string{"b"}}, {Sources: []string{"none"}}} {
			want := map[int]spec.Measurement{}
			for _, m := range rows {
				if f.Sources == nil || f.Sources[0] == m.Source {
					want[m.Config.SeqLen] = m
				}
			}
			for _, c := range []*remote.Client{flown, plain} {
				if d := cmp.Diff(want, rowsOf(t, c, f)); d != "" {
					t.Errorf("written over %s, %+v: %s", over, f, d)
				}
			}
		}
		for _, c := range []*remote.Client{flown, plain} {
			ctx, cancel := context.WithCancel(t.Context())
			var err error
			for _, err = range c.Rows(ctx, remote.Filter{}) {
				cancel()
			}
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("canceled after a row: %v", err)
			}
		}
		bad := slices.Concat(rows[:3], []spec.Measurement{{Source: "b"}})
		if n, err := writer.PutRows(t.Context(), perfmodel.Rows(bad)); n.Total() != 0 || err == nil {
			t.Errorf("%s: a row without a model: %+v, %v", over, n, err)
		}
		boom := errors.New("boom")
		if n, err := writer.PutRows(t.Context(), func(yield func(spec.Measurement, error) bool) { yield(spec.Measurement{}, boom) }); n.Total() != 0 || !errors.Is(err, boom) {
			t.Errorf("%s: an error of the rows: %+v, %v", over, n, err)
		}
	}
}

// Predictions are the same over both, also why there is none.
func TestRemoteFlightPredictions(t *testing.T) {
	s := newServer(t, Options{})
	flown, plain := remoteClients(t, s, remote.Options{})
	qs := []remote.Question{
		{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8,zero=3"},
		{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8,zero=3,recompute=full", SeqLen: 2048, Framework: "FSDP", Precision: "bf16", PerNode: 4, GlobalBatch: 8},
		{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8,zero=3", Adapter: "lora:16", Packed: 512, Family: "analytic", Date: "2025-01-01"},
		{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=1"},
		{Model: "nosuch", Accelerator: "h100", Plan: "dp=8"},
		{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8,nosuch=1"},
		{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=4,tp=2", Shape: "4+4"},
	}
	for i := range 10010 { // more than a batch
		qs = append(qs, remote.Question{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8,zero=3,recompute=full", SeqLen: 512 + i})
	}
	got, err := flown.PredictAll(t.Context(), qs)
	if err != nil || len(got) != len(qs) {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	want, err := plain.PredictAll(t.Context(), qs)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range qs {
		var f, p *remote.Error
		if errors.As(want[i].Err, &p) {
			refused++
			if !errors.As(got[i].Err, &f) || f.Status != p.Status || f.Detail == "" {
				t.Errorf("%+v: %v, over HTTP %v", qs[i], got[i].Err, want[i].Err)
			}
			continue
		}
		if d := cmp.Diff(want[i], got[i], cmpopts.EquateApprox(1e-3, 0.01)); d != "" || got[i].StepSec <= 0 && got[i].Fits {
			t.Errorf("%+v: (-HTTP +Flight)\n%s", qs[i], d)
		}
	}
	if refused != 2 {
		t.Errorf("%d questions refused", refused)
	}
	if got, err := flown.PredictAll(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("no questions: %v, %v", got, err)
	}
}

// Errors of gRPC are those of HTTP.
func TestRemoteFlightErrors(t *testing.T) {
	s, secrets, _ := newScopedServer(t)
	read := func(c *remote.Client) (err error) {
		for _, err = range c.Rows(t.Context(), remote.Filter{}) { // the last one is the error
		}
		return err
	}
	for name, c := range map[string]struct {
		token  string
		status int
		try    func(*remote.Client) error
	}{
		"no token":  {"", 401, read},
		"one scope": {secrets[access.ScopeRead], 403, func(c *remote.Client) error { return second(c.PutRows(t.Context(), perfmodel.Rows(measured(t, s, 1)))) }},
		"a text": {secrets[access.ScopeIngest], 422, func(c *remote.Client) error {
			rows := measured(t, s, 1)
			rows[2].Source = "lab\u202e"
			return second(c.PutRows(t.Context(), perfmodel.Rows(rows)))
		}},
	} {
		flown, plain := remoteClients(t, s, remote.Options{Token: c.token})
		var f, p *remote.Error
		if err := c.try(plain); !errors.As(err, &p) || p.Status != c.status {
			t.Errorf("%s over HTTP: %v", name, err)
		}
		if err := c.try(flown); !errors.As(err, &f) || f.Status != c.status || f.Detail == "" || f.Type != p.Type && p.Type != "" {
			t.Errorf("%s: %v, over HTTP %v", name, err, p)
		}
	}
}

func second(_ remote.Stored, err error) error { return err }

// A client that breaks off frees its place, and one that finds no place waits for it.
func TestRemoteFlightPlaces(t *testing.T) {
	s := newServer(t, Options{})
	flown, _ := remoteClients(t, s, remote.Options{MaxWait: 10 * time.Millisecond, Retries: 1000})
	if n, err := flown.PutRows(t.Context(), perfmodel.Rows(manyRows(t, s, 100))); n.Added != 100 || err != nil {
		t.Fatal(n, err)
	}
	for range maxStreams + 2 {
		for m, err := range flown.Rows(t.Context(), remote.Filter{}) {
			if err != nil || m.Source == "" {
				t.Fatal(m, err)
			}
			break
		}
	}
	for range maxStreams {
		s.router.streams <- struct{}{}
	}
	time.AfterFunc(50*time.Millisecond, func() { <-s.router.streams })
	if rows := rowsOf(t, flown, remote.Filter{}); len(rows) != 100 {
		t.Errorf("%d rows", len(rows))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range flown.Rows(ctx, remote.Filter{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	}
}

// cutting is a proxy that breaks connections off in place of what they answer, while bad says so.
func cutting(t *testing.T, to string, bad func() bool) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var copies sync.WaitGroup
	t.Cleanup(func() { l.Close(); copies.Wait() })
	copies.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				in.Close()
				return
			}
			copies.Go(func() { _, _ = io.Copy(out, in); out.Close() })
			copies.Go(func() {
				defer in.Close()
				for b := make([]byte, 1<<16); ; {
					n, err := out.Read(b)
					if err != nil || bad() {
						return
					}
					if _, err := in.Write(b[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}

// With patience, a batch with a lost answer is sent again and stored once.
func TestRemoteFlightPatience(t *testing.T) {
	s := newServer(t, Options{})
	conn, _ := serveRPC(t, s)
	var cuts atomic.Int64
	proxy := cutting(t, conn.Target(), func() bool {
		n, err := s.db.Len(context.Background(), store.Filter{})
		return err == nil && n > 0 && cuts.Add(1) == 1
	})
	c, err := remote.New("http://127.0.0.1:1", remote.Options{Flight: proxy, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows := measured(t, s, 1)
	if n, err := c.PutRows(t.Context(), perfmodel.Rows(rows)); n.Added != len(rows) || err != nil {
		t.Fatal(n, err)
	}
	if n, err := s.db.Len(t.Context(), store.Filter{}); n != len(rows) || err != nil || cuts.Load() < 2 {
		t.Errorf("%d rows, %v, %d answers", n, err, cuts.Load())
	}
	answers := s.metrics.requests.WithLabelValues("/arrow.flight.protocol.FlightService/DoPut", "200")
	for end := time.Now().Add(spectest.Patience(10 * time.Second)); valueOf(answers) < 1; time.Sleep(time.Millisecond) { // counted after it was sent
		if time.Now().After(end) {
			t.Fatalf("%g answers", valueOf(answers))
		}
	}
}

// Timeout bounds the wait for a server that does not answer.
func TestRemoteFlightTimeout(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := remote.New("http://127.0.0.1:1", remote.Options{Flight: silent.Addr().String(), Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	check := func(what string, err error) {
		if problem := (&remote.Error{}); !errors.As(err, &problem) || problem.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, err := range c.Rows(t.Context(), remote.Filter{}) {
		check("rows", err)
		if !strings.Contains(err.Error(), "no record batch arrived in 50ms") {
			t.Error(err)
		}
	}
	s := newServer(t, Options{})
	_, err = c.PutRows(t.Context(), perfmodel.Rows(measured(t, s, 1)))
	check("put", err)
	_, err = c.PredictAll(t.Context(), []remote.Question{{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8"}})
	check("predict", err)
	if _, err := remote.New("http://127.0.0.1:1", remote.Options{Flight: "\x00"}); err == nil {
		t.Error("an address of nothing was accepted")
	}
}
