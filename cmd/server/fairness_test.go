package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve runs s on a loopback port until end or the end of the test, and returns its address.
func serve(t testing.TB, s *Server) (addr string, end func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, nil) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return l.Addr().String(), end
}

// latencies returns the sorted times of n plans of 8 devices, one after another, each
// over one connection and with another batch. None may be refused.
func latencies(t *testing.T, addr string, n int) []time.Duration {
	t.Helper()
	var out []time.Duration
	for i := range n {
		start := time.Now()
		res, err := http.Post("http://"+addr+"/v1/plan", "application/json", strings.NewReader(fmt.Sprintf(`{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":%d}`, 8*(i+1))))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("plan %d: %d %s %v", i, res.StatusCode, b, err)
		}
		out = append(out, time.Since(start))
	}
	slices.Sort(out)
	return out
}

// Clients that send or read slowly take no seat of others.
func TestAbuseSlowClients(t *testing.T) {
	s := newServer(t, Options{MaxSearches: 2, MaxRequests: 4})
	addr, _ := serve(t, s)
	each := abuseSize(1000, 200, 50)
	const curve = `{"model":"llama3-8b","accelerator":"h100","max_devices":512,"global_batch":512}`
	for i := range 2 * each {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		head := "POST /v1/curve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
		if i%2 == 0 { // never sends the rest
			fmt.Fprintf(c, head, len(curve), curve[:10])
		} else { // never reads
			_ = c.(*net.TCPConn).SetReadBuffer(1)
			fmt.Fprintf(c, head, len(curve), curve)
		}
	}
	took := latencies(t, addr, 100)
	t.Logf("median %v, p99 %v beside %d slow clients", took[50], took[98], 2*each)
	if limit := abuseLimit(100 * time.Millisecond); took[98] > limit {
		t.Errorf("p99 %v, want at most %v", took[98], limit)
	}
}

// Clients with long searches do not delay short ones.
func TestAbuseHeavyClients(t *testing.T) {
	s := newServer(t, Options{})
	addr, _ := serve(t, s)
	heavy, light := abuseSize(200, 200, 40), abuseSize(200, 200, 50)
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer wg.Wait()
	defer stop()
	var answered, busy atomic.Int64
	for i := range heavy {
		wg.Go(func() {
			client := http.Client{Transport: &http.Transport{}} // a connection of its own
			for n := 0; ctx.Err() == nil; n++ {
				body := fmt.Appendf(nil, `{"model":"llama3.1-405b","accelerator":"h100","devices":5040,"global_batch":%d,"pareto":true}`, 5040*(n*heavy+i+1))
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/plan", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/json")
				res, err := client.Do(r)
				if err != nil {
					continue
				}
				res.Body.Close()
				if res.StatusCode == http.StatusTooManyRequests {
					busy.Add(1)
					continue
				}
				answered.Add(1)
			}
		})
	}
	for n, _ := s.limit.long.Length(); n == 0; n, _ = s.limit.long.Length() {
		time.Sleep(time.Millisecond)
	}
	took := latencies(t, addr, light)
	t.Logf("median %v, p99 %v beside %d heavy clients, %d of their requests answered, %d refused", took[light/2], took[light-2], heavy, answered.Load(), busy.Load())
	if limit := abuseLimit(200 * time.Millisecond); took[light-2] > limit {
		t.Errorf("p99 %v, want at most %v", took[light-2], limit)
	}
}

// A repeated search is answered without a seat, until new measurements arrive.
func TestCachedAnswersDoNotWait(t *testing.T) {
	s := newServer(t, Options{MaxSearches: 1, Timeout: time.Second})
	const plan = `{"model":"llama3-8b","accelerator":"h100","devices":8,"global_batch":8}`
	first := do(s, http.MethodPost, "/v1/plan", plan)
	leave, err := s.limit.short.Acquire(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer leave(0)
	if w := do(s, http.MethodPost, "/v1/plan", plan); w.Code != http.StatusOK || w.Body.String() != first.Body.String() || w.Header().Get("Content-Type") != first.Header().Get("Content-Type") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, http.MethodPost, "/v1/fit-check", plan); w.Code != http.StatusTooManyRequests {
		t.Errorf("the same body to another path: %d", w.Code)
	}
	rows := measured(t, s, 1)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	if w := do(s, http.MethodPost, "/v1/plan", plan); w.Code != http.StatusTooManyRequests {
		t.Errorf("after new measurements: %d", w.Code)
	}
}

// The timeout of a plain batch includes its wait for a seat.
func TestBatchTimeoutHasItsWait(t *testing.T) {
	const timeout = 10 * time.Second
	s := newServer(t, Options{MaxSearches: 1, Timeout: timeout})
	batch := s.router.ops["POST /v1/predict/batch"]
	var deadline, admitted time.Time
	quick := batch.quick
	batch.quick = func(w http.ResponseWriter, body *bytes.Buffer) *quickAnswer {
		q := quick(w, body)
		answer := q.answer
		q.answer = func(ctx context.Context) ([]byte, error) {
			deadline, _ = ctx.Deadline()
			return answer(ctx)
		}
		return q
	}
	leave, err := s.limit.short.Acquire(t.Context(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for waiting := 0; waiting == 0; waiting, _ = s.limit.short.Length() {
			time.Sleep(time.Millisecond)
		}
		admitted = time.Now()
		leave(0)
	}()
	post[Batch](t, s, "/v1/predict/batch", `{"questions":[{"model":"llama3-8b","accelerator":"h100","plan":"dp=8"}]}`)
	if deadline.IsZero() || !deadline.Before(admitted.Add(timeout)) {
		t.Errorf("the deadline is %v after the wait, want less than %v", deadline.Sub(admitted), timeout)
	}
}
