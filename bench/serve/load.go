package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// failure is the latency of a request without a prediction.
const failure = time.Duration(-1)

// load sends request i at i/rate seconds over one of n connections and returns the
// latencies.
func load(ctx context.Context, address string, requests [][]byte, rate float64, n int) ([]time.Duration, error) {
	conns := make([]net.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", address); err != nil {
			return nil, err
		}
		defer conns[i].Close()
	}
	out := make([]time.Duration, len(requests))
	errs := make([]error, n)
	var wg sync.WaitGroup
	start := time.Now().Add(50 * time.Millisecond)
	for k := range n {
		wg.Go(func() { errs[k] = drive(newConn(conns[k]), requests, out, k, n, start, rate) })
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", k, err)
		}
	}
	return out, ctx.Err()
}

// drive sends every n-th request from the k-th on, each when it is due.
func drive(c *conn, requests [][]byte, out []time.Duration, k, n int, start time.Time, rate float64) error {
	for i := k; i < len(requests); i += n {
		due := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		ok, err := c.send(requests[i])
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		if out[i] = time.Since(due); !ok {
			out[i] = failure
		}
	}
	return nil
}
