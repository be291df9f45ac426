package limits

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Connections bounds the open connections, since the store needs file descriptors too. Where all are taken, a new one takes
// the place of the one that is idle longest, else it waits until one is closed.
type Connections struct {
	most   int
	accept net.Listener

	turn    atomic.Int64 // of the last connection that became idle
	waiting atomic.Bool  // a new connection waits for a place

	mu    sync.Mutex
	freed *sync.Cond
	ended bool
	open  map[*counted]bool
}

// mostConnections bounds the open connections where file descriptors do not: each needs some 20 KiB.
const mostConnections = 16384

// NewConnections returns a listener of at most most connections of l.
func NewConnections(l net.Listener, most int) *Connections {
	c := &Connections{most: most, accept: l, open: map[*counted]bool{}}
	c.freed = sync.NewCond(&c.mu)
	return c
}

// Accept implements net.Listener.
func (c *Connections) Accept() (net.Conn, error) {
	conn, err := c.accept.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for closing := false; len(c.open) >= c.most && !c.ended; c.freed.Wait() {
		c.waiting.Store(true) // before it looks, so that Changed misses none
		if oldest := c.idle(); oldest != nil && !closing {
			oldest.turn.Store(0)
			closing = true
			go oldest.outer.Close() // of TLS, it writes
		}
	}
	c.waiting.Store(false)
	out := &counted{Conn: conn, in: c}
	c.open[out] = true
	return out, nil
}

// idle returns the connection that is idle longest, nil if none is.
func (c *Connections) idle() (oldest *counted) {
	least := int64(0)
	for conn := range c.open {
		if turn := conn.turn.Load(); turn > 0 && (oldest == nil || turn < least) {
			oldest, least = conn, turn
		}
	}
	return oldest
}

// Close implements net.Listener.
func (c *Connections) Close() error {
	c.mu.Lock()
	c.ended = true
	c.freed.Broadcast()
	c.mu.Unlock()
	return c.accept.Close()
}

// Addr implements net.Listener.
func (c *Connections) Addr() net.Addr { return c.accept.Addr() }

// Changed is http.Server.ConnState.
func (c *Connections) Changed(conn net.Conn, state http.ConnState) {
	outer := conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok { // of TLS
		conn = secure.NetConn()
	}
	of, ok := conn.(*counted)
	if !ok {
		return
	}
	if state == http.StateNew {
		of.outer = outer
	}
	if state != http.StateIdle {
		of.turn.Store(0)
		return
	}
	of.turn.Store(c.turn.Add(1))
	if c.waiting.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.freed.Signal() // the one that waits takes its place
	}
}

// counted is an open connection.
type counted struct {
	net.Conn
	in    *Connections
	outer net.Conn     // what the server knows it as: with TLS
	turn  atomic.Int64 // in which it became idle, 0 with a request
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	delete(c.in.open, c)
	c.in.freed.Signal()
	return err
}
