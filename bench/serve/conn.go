package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
)

// conn is a kept HTTP/1.1 connection with little overhead: it reads responses by
// Content-Length, long ones by chunks, and does not parse them.
type conn struct {
	c    net.Conn
	r    *bufio.Reader
	body []byte
}

func newConn(c net.Conn) *conn { return &conn{c: c, r: bufio.NewReader(c)} }

// send sends a request and reads the response; ok is whether that is a prediction.
func (c *conn) send(request []byte) (ok bool, err error) {
	if _, err := c.c.Write(request); err != nil {
		return false, err
	}
	status, err := c.r.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	ok = bytes.HasPrefix(status, []byte("HTTP/1.1 200"))
	n, chunked := -1, false
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		if len(line) <= 2 {
			break
		}
		chunked = chunked || bytes.HasPrefix(line, []byte("Transfer-Encoding: chunked"))
		if v, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if n, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return false, err
			}
		}
	}
	if n < 0 && chunked {
		return ok, c.chunks()
	} else if n < 0 {
		return false, fmt.Errorf("an answer without Content-Length")
	}
	if cap(c.body) < n {
		c.body = make([]byte, n)
	}
	c.body = c.body[:n]
	_, err = io.ReadFull(c.r, c.body)
	return ok && bytes.Contains(c.body, []byte(`"step_time_s":`)), err
}

// chunks reads a body in chunks, and the empty line after the last.
func (c *conn) chunks() error {
	if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(c.r)); err != nil {
		return err
	}
	_, err := c.r.ReadSlice('\n')
	return err
}
