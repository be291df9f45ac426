package limits

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"
)

// bounded is a server of at most most connections.
type bounded struct {
	*Connections
	tls     *tls.Config   // of clients, nil without TLS
	slow    chan struct{} // gets one per request for /slow
	release chan struct{} // requests for /slow are answered once it is closed
}

func boundedServer(t *testing.T, most int, secure bool) *bounded {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bounded{Connections: NewConnections(l, most), slow: make(chan struct{}, 1), release: make(chan struct{})}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, ConnState: b.Changed, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			b.slow <- struct{}{}
			<-b.release
		}
	})}
	serve := srv.Serve
	if secure {
		of := httptest.NewTLSServer(nil) // it has a certificate
		of.Close()
		b.tls = of.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		b.tls.ServerName = "example.com"
		srv.TLSConfig = &tls.Config{Certificates: of.TLS.Certificates, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	served := make(chan error, 1)
	go func() { served <- serve(b.Connections) }()
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return b
}

// client is one connection.
type client struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, to *bounded) client {
	t.Helper()
	c, err := net.Dial("tcp", to.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if to.tls != nil {
		c = tls.Client(c, to.tls)
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
func (c client) idle(t *testing.T, s *bounded) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		last, seq := false, s.idleSeq.Load()
		for conn := range s.open {
			last = last || seq > 0 && conn.idleSeq.Load() == seq && conn.RemoteAddr().String() == c.LocalAddr().String()
		}
		s.mu.Unlock()
		if last {
			return
		}
	}
	t.Fatal("the connection is not idle")
}

// Clients that keep connections take no place of others. Idle connections are used again up to the bound. At the bound a new
// one takes the place of that which is idle longest, with TLS too.
func TestAbuseIdleConnections(t *testing.T) {
	for name, secure := range map[string]bool{"TCP": false, "TLS": true} {
		t.Run(name, func(t *testing.T) { testIdleConnections(t, boundedServer(t, 3, secure)) })
	}
}

func testIdleConnections(t *testing.T, s *bounded) {
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

// A connection with a request is never closed for another one, which waits until a place is free. The request may be the
// second one of a connection that was idle.
func TestAbuseBusyConnections(t *testing.T) {
	for name, kept := range map[string]bool{"first request": false, "second request": true} {
		t.Run(name, func(t *testing.T) { testBusyConnections(t, boundedServer(t, 1, false), kept) })
	}
}

func testBusyConnections(t *testing.T, s *bounded, kept bool) {
	busy := dial(t, s)
	if kept {
		if err := busy.ask("/"); err != nil {
			t.Fatal(err)
		}
		busy.idle(t, s)
	}
	if err := busy.send("/slow"); err != nil {
		t.Fatal(err)
	}
	<-s.slow
	next := dial(t, s)
	if err := next.send("/"); err != nil {
		t.Fatal(err)
	}
	if err := next.answered(100 * time.Millisecond); err == nil {
		t.Error("two connections are open")
	}
	close(s.release)
	if err := busy.answered(10 * time.Second); err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := next.answered(10 * time.Second); err != nil {
		t.Errorf("the one that waited: %v", err)
	}
}

// connections is a listener of connections that have no other end.
type connections struct{ net.Listener }

func (connections) Accept() (net.Conn, error) { c, _ := net.Pipe(); return c, nil }

// At the bound, connections are closed in the order in which they became idle last, however many scans that takes. None is
// noted while one is closing.
func TestOrderOfIdleConnections(t *testing.T) {
	const most = 3 * mostListed
	c := NewConnections(connections{}, most)
	accept := func() *counted {
		conn, err := c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Changed(conn, http.StateNew)
		return conn.(*counted)
	}
	var idle []*counted
	for range most {
		conn := accept()
		c.Changed(conn, http.StateIdle)
		idle = append(idle, conn)
	}
	for i := range 2 * most {
		if i%3 == 0 { // a second request
			conn := idle[1]
			c.Changed(conn, http.StateActive)
			c.Changed(conn, http.StateIdle)
			idle = append(append(idle[:1:1], idle[2:]...), conn)
		}
		conn := accept()
		if c.waiting.Load() {
			t.Fatal("a place is free, but idle connections are noted")
		}
		c.mu.Lock()
		open, listed := c.open[idle[0]], len(c.idle)
		c.mu.Unlock()
		if open || listed > mostListed {
			t.Fatalf("connection %d: the one that is idle longest is open: %v; %d are listed", i, open, listed)
		}
		c.Changed(conn, http.StateIdle)
		idle = append(idle[1:], conn)
	}
}

// deadlines is a connection that records the deadlines of writes.
type deadlines struct {
	net.Conn
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.set = append(d.set, t); return nil }
func (d *deadlines) SetReadDeadline(time.Time) error    { return nil }
func (d *deadlines) Write(b []byte) (int, error)        { return len(b), nil }

// A deadline of writes is early by less than slack, and never late. One that is removed holds for no later write.
func TestWriteDeadlines(t *testing.T) {
	inner := &deadlines{}
	conn, start := &counted{Conn: inner}, time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	write := time.Unix(1, 0) // stands for a write
	for i, step := range []struct{ of, set time.Time }{
		{of: time.Time{}}, // there is none
		{of: write},
		{at(10 * time.Second), at(10 * time.Second)},
		{of: at(10 * time.Second)},
		{of: at(10*time.Second + slack - 1)},
		{of: write},
		{of: time.Time{}}, // until the next write
		{of: at(10*time.Second + 1)},
		{of: write},
		{at(10*time.Second + slack), at(10*time.Second + slack)},
		{at(5 * time.Second), at(5 * time.Second)}, // earlier
		{of: time.Time{}},
		{of: write, set: time.Time{}.Add(1)}, // removed
		{of: write},
		{at(5*time.Second + 1), at(5*time.Second + 1)},
		{at(-time.Second / 4), at(-time.Second / 4)},
		{at(time.Second / 4), at(time.Second / 4)}, // the one before has passed
	} {
		before, err := len(inner.set), error(nil)
		if step.of.Equal(write) {
			_, err = conn.Write(nil)
		} else {
			err = conn.SetWriteDeadline(step.of)
		}
		if err != nil {
			t.Fatal(err)
		}
		var want []time.Time
		switch {
		case step.set.Equal(time.Time{}.Add(1)):
			want = []time.Time{{}}
		case !step.set.IsZero():
			want = []time.Time{step.set}
		}
		if set := inner.set[before:]; !slices.Equal(set, want) {
			t.Errorf("step %d set %v, want %v", i, set, want)
		}
	}
	if err := conn.SetDeadline(at(time.Minute)); err != nil || !inner.set[len(inner.set)-1].Equal(at(time.Minute)) {
		t.Errorf("SetDeadline: %v, set %v", err, inner.set)
	}
}
