package limits

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// boundedServer answers over at most most connections; /slow answers once release is closed.
func boundedServer(t *testing.T, most int) (c *Connections, release chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	release = make(chan struct{})
	c = NewConnections(l, most)
	srv := &http.Server{ReadHeaderTimeout: time.Minute, ConnState: c.Changed, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(c) }()
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c, release
}

// client is one connection.
type client struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, to *Connections) client {
	t.Helper()
	c, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{c, bufio.NewReader(c)}
}

func (c client) send(path string) error {
	_, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return err
}

// answered waits up to d for an answer.
func (c client) answered(d time.Duration) error {
	_ = c.SetReadDeadline(time.Now().Add(d))
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (c client) ask(path string) error { return errors.Join(c.send(path), c.answered(10*time.Second)) }

// idle waits until the server knows that c was idle last, some time after it has answered.
func (c client) idle(t *testing.T, s *Connections) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		last, turn := false, s.turn.Load()
		for conn := range s.open {
			last = last || turn > 0 && conn.turn.Load() == turn && conn.RemoteAddr().String() == c.LocalAddr().String()
		}
		s.mu.Unlock()
		if last {
			return
		}
	}
	t.Fatal("the connection is not idle")
}

// Clients that keep connections take no place of others. Idle connections are used again up to the bound. At the bound a new one takes the place of that which is idle longest.
func TestAbuseIdleConnections(t *testing.T) {
	s, _ := boundedServer(t, 3)
	var all []client
	for range 3 {
		c := dial(t, s)
		if err := c.ask("/"); err != nil {
			t.Fatal(err)
		}
		c.idle(t, s)
		all = append(all, c)
	}
	for range 3 { // the first one is then idle for the shortest time
		for _, i := range []int{1, 2, 0} {
			if err := all[i].ask("/"); err != nil {
				t.Fatalf("connection %d is not used again: %v", i, err)
			}
			all[i].idle(t, s)
		}
	}
	if err := dial(t, s).ask("/"); err != nil {
		t.Fatalf("a connection at the bound: %v", err)
	}
	if err := all[1].answered(10 * time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection that is idle longest is open: %v", err)
	}
	for _, i := range []int{2, 0} {
		if err := all[i].ask("/"); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// A connection with a request is never closed for another one, which waits until a place is free.
func TestAbuseBusyConnections(t *testing.T) {
	s, release := boundedServer(t, 1)
	busy, next := dial(t, s), dial(t, s)
	if err := errors.Join(busy.send("/slow"), next.send("/")); err != nil {
		t.Fatal(err)
	}
	if err := next.answered(100 * time.Millisecond); err == nil {
		t.Error("two connections are open")
	}
	close(release)
	if err := busy.answered(10 * time.Second); err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := next.answered(10 * time.Second); err != nil {
		t.Errorf("the one that waited: %v", err)
	}
}
