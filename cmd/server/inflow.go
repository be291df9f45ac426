package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/pacer-ml/pacer/cmd/server/problem"
)

// inflow is the body of a request of gRPC: messages of a client. gRPC reads ahead without bounds, so Read waits once a
// message of the largest size has arrived that the handler has not finished. All bytes count in the budget of
// memory until then.
type inflow struct {
	body    io.ReadCloser
	control *http.ResponseController
	most    int64 // bytes that may wait
	s       *Server

	mu       sync.Mutex
	freed    *sync.Cond // memory is given back, or a handler has ended
	lease    lease
	message  int64 // bytes of the message that the handler works on
	awaiting bool  // the handler waits for a message
	running  int   // handlers
	finished bool  // no handler may begin
	err      error // why the rest is not read
}

type inflowKey struct{}

// inflowOf returns the messages of the client of a handler's context, nil for a call that is no request.
func inflowOf(ctx context.Context) *inflow {
	f, _ := ctx.Value(inflowKey{}).(*inflow)
	return f
}

func newInflow(s *Server, w http.ResponseWriter, r *http.Request) *inflow {
	f := &inflow{body: r.Body, control: http.NewResponseController(w), most: s.o.MaxBody + 1<<10, s: s, lease: lease{budget: s.memory}}
	f.freed = sync.NewCond(&f.mu)
	return f
}

// Read implements io.Reader.
func (f *inflow) Read(b []byte) (int, error) {
	f.mu.Lock()
	for f.lease.held >= f.most && f.err == nil {
		f.freed.Wait()
	}
	err := f.err
	f.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := f.body.Read(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 && !f.lease.take(n) {
		f.err = http2.StreamError{Code: http2.ErrCodeEnhanceYourCalm, Cause: f.s.noMemory()} // gRPC knows its code
		return 0, f.err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// Close implements io.Closer. Read then fails.
func (f *inflow) Close() error {
	f.mu.Lock()
	if f.err == nil {
		f.err = http.ErrBodyReadAfterClose
	}
	f.freed.Broadcast()
	f.mu.Unlock()
	return f.body.Close()
}

// next ends the work on a message; the handler waits for the next one. It returns an error if none may come.
func (f *inflow) next() error {
	if f.s.draining.Err() != nil {
		return shuttingDown()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lease.give(f.message)
	f.message, f.awaiting = 0, true
	f.freed.Broadcast()
	f.wait(streamIdle)
	return nil
}

// arrived notes that the handler has the message that it waited for.
func (f *inflow) arrived() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.awaiting = false
	f.wait(0)
}

// wait bounds the time until more arrives; 0 = no bound.
func (f *inflow) wait(most time.Duration) {
	var until time.Time
	if most != 0 {
		until = time.Now().Add(most)
	}
	_ = f.control.SetReadDeadline(until) // a body that has ended has no deadline
}

// drain ends the wait for a message that has not begun to arrive.
func (f *inflow) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.awaiting && f.lease.held == 0 {
		f.wait(-time.Second)
	}
}

// failure returns why no message could be read, err if only that says so.
func (f *inflow) failure(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if short, ok := f.err.(http2.StreamError); ok && short.Cause != nil { //nolint:errorlint // of Read, not wrapped
		return short.Cause
	}
	if f.s.draining.Err() != nil {
		return shuttingDown()
	}
	return err
}

// begin notes that a handler works; it calls done at its end. It returns false if the request has ended.
func (f *inflow) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.finished {
		return false
	}
	f.running++
	return true
}

func (f *inflow) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	f.freed.Broadcast()
}

// end waits for the handler, which gRPC does not where the client disconnects, and gives back all memory.
func (f *inflow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finished = true
	for f.running > 0 {
		f.freed.Wait()
	}
	f.lease.end()
}

// shuttingDown is the problem that ends a stream of messages at shutdown. Each is new, since answers shorten problems.
func shuttingDown() error {
	return problem.New(http.StatusServiceUnavailable, "", "the server is shutting down")
}

// consumption is a stats.Handler that tells an inflow the size of its messages.
type consumption struct{}

// HandleRPC implements stats.Handler.
func (consumption) HandleRPC(ctx context.Context, event stats.RPCStats) {
	in, ok := event.(*stats.InPayload)
	f := inflowOf(ctx)
	if !ok || f == nil {
		return
	}
	const header = 5 // of a message
	f.mu.Lock()
	defer f.mu.Unlock()
	f.message += min(int64(in.CompressedLength)+header, f.lease.held-f.message)
}

// TagRPC implements stats.Handler.
func (consumption) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (consumption) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (consumption) HandleConn(context.Context, stats.ConnStats) {}

// rpcStream is a stream with an inflow.
type rpcStream struct {
	grpc.ServerStream
	ctx context.Context
	f   *inflow
}

// Context implements grpc.ServerStream.
func (s *rpcStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *rpcStream) RecvMsg(m any) error {
	if err := s.f.next(); err != nil {
		return err
	}
	defer s.f.arrived()
	err := s.ServerStream.RecvMsg(m)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s.f.failure(err)
}
