package limits

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Connections bounds the open connections, since the store needs file descriptors too. At the bound, a new connection
// takes the place of the one that is idle longest. If none is idle, it waits until one becomes idle or is closed.
type Connections struct {
	most   int
	accept net.Listener

	idleSeq atomic.Int64 // counts the times that a connection became idle
	waiting atomic.Bool  // Accept waits for an idle connection; set under mu

	mu    sync.Mutex
	freed *sync.Cond
	ended bool
	open  map[*counted]bool
	idle  []idleSince // those that are idle longest, in order; some may have a request by now
}

// idleSince is a connection with its idleSeq at that time.
type idleSince struct {
	conn *counted
	seq  int64
}

// mostConnections bounds the open connections where file descriptors do not: each needs some 20 KiB.
const mostConnections = 16384

// mostListed bounds the idle connections that a scan lists: one scan is enough for so many new connections.
const mostListed = 64

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
		if closing {
			continue
		}
		if oldest := c.takeIdle(); oldest != nil {
			closing = true
			go oldest.outer.Close() // of TLS, it writes
		}
	}
	c.waiting.Store(false)
	out := &counted{Conn: conn, in: c}
	c.open[out] = true
	return out, nil
}

// takeIdle returns the connection that is idle longest, which then counts as idle no longer. If none is, it returns
// nil, and Changed lists those that become idle.
func (c *Connections) takeIdle() *counted {
	for {
		for len(c.idle) > 0 {
			first := c.idle[0]
			c.idle = c.idle[1:]
			if first.conn.idleSeq.CompareAndSwap(first.seq, 0) {
				c.waiting.Store(false)
				return first.conn
			}
		}
		if c.waiting.Load() {
			return nil // Changed has listed all others since the scan
		}
		c.waiting.Store(true) // before the scan, so that no connection is missed
		c.idle = c.longestIdle()
	}
}

// longestIdle returns up to mostListed connections that are idle longest, in order.
func (c *Connections) longestIdle() (all []idleSince) {
	for conn := range c.open {
		if seq := conn.idleSeq.Load(); seq > 0 {
			all = append(all, idleSince{conn, seq})
		}
	}
	slices.SortFunc(all, func(a, b idleSince) int { return cmp.Compare(a.seq, b.seq) })
	return slices.Clone(all[:min(len(all), mostListed)])
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
		of.idleSeq.Store(0)
		return
	}
	seq := c.idleSeq.Add(1)
	of.idleSeq.Store(seq)
	if !c.waiting.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting.Load() { // still
		c.idle = append(c.idle, idleSince{of, seq})
		c.freed.Signal()
	}
}

// counted is an open connection.
type counted struct {
	net.Conn
	in      *Connections
	outer   net.Conn     // the connection of the server, with TLS if it has any
	idleSeq atomic.Int64 // of Connections when it became idle, 0 if it is not idle
	writeBy atomic.Int64 // the deadline that writes have, nanoseconds of Unix time; 0 = none
	lifted  atomic.Bool  // the next write has no deadline
}

// slack is by how much the deadline of writes may be early.
const slack = time.Second

// SetWriteDeadline implements net.Conn. A deadline that is less than slack after the present one changes nothing, and one
// is removed by the next write: net/http removes that of each response.
func (c *counted) SetWriteDeadline(t time.Time) error {
	by := c.writeBy.Load()
	if t.IsZero() {
		c.lifted.Store(by != 0)
		return nil
	}
	at := t.UnixNano()
	c.lifted.Store(false)
	if by <= at && at-by < int64(slack) && by > time.Now().UnixNano() {
		return nil
	}
	c.writeBy.Store(at)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *counted) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Write implements net.Conn.
func (c *counted) Write(b []byte) (int, error) {
	if c.lifted.Swap(false) {
		c.writeBy.Store(0)
		if err := c.Conn.SetWriteDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	delete(c.in.open, c)
	c.in.freed.Signal()
	return err
}
