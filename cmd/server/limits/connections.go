package limits

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// Connections bounds the open Connections, since the store needs file descriptors too. Where all are taken, a new one takes
// the place of the one that is idle longest, else it waits until one is closed.
type Connections struct {
	most   int
	mu     sync.Mutex
	freed  *sync.Cond
	open   int
	ended  bool
	idle   *list.List                 // of net.Conn, idle longest first
	place  map[net.Conn]*list.Element // in idle
	accept net.Listener
}

// mostConnections bounds the open connections where file descriptors do not: each needs some 20 KiB.
const mostConnections = 16384

// NewConnections returns a listener of at most most connections of l.
func NewConnections(l net.Listener, most int) *Connections {
	c := &Connections{most: most, idle: list.New(), place: map[net.Conn]*list.Element{}, accept: l}
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
	for closing := false; c.open >= c.most && !c.ended; c.freed.Wait() {
		if oldest := c.idle.Front(); oldest != nil && !closing {
			conn := c.idle.Remove(oldest).(net.Conn)
			delete(c.place, conn)
			closing = true
			go conn.Close() // of TLS, it writes
		}
	}
	c.open++
	return &counted{Conn: conn, in: c}, nil
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.place[conn]; ok {
		c.idle.Remove(at)
		delete(c.place, conn)
	}
	if state == http.StateIdle {
		c.place[conn] = c.idle.PushBack(conn)
		c.freed.Signal() // one that waits takes its place
	}
}

// counted is an open connection.
type counted struct {
	net.Conn
	in   *Connections
	once sync.Once
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.in.mu.Lock()
		c.in.open--
		c.in.freed.Signal()
		c.in.mu.Unlock()
	})
	return err
}
