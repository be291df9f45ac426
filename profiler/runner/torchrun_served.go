package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/tempdir"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// server is a worker process that measures on one device, point after point.
type server struct {
	dir      *tempdir.Dir
	files    worker.Served
	pgid     atomic.Int64
	cancel   context.CancelFunc
	measured chan int      // numbers of the points that are measured
	ended    chan struct{} // closed when the process has ended; exit and err are then set
	exit     profiler.Exit
	err      error

	mu   sync.Mutex
	line []byte // the last line of the output, not yet whole
	log  []byte // the lines before it of the point
}

// maxLog is the length of the log of a point that is kept, as of profiler.Exit.Tail.
const maxLog = 8 << 10

// measureServed measures m, of one device or one rank alone, on the first device and stores the results in m.
func (t *Torchrun) measureServed(ctx context.Context, m *spec.Measurement) error {
	if t.server.hasEnded() {
		t.closeServer()
		if err := t.startServer(ctx, m.Config); err != nil {
			return fmt.Errorf("runner: torchrun: %w", err)
		}
	}
	s := t.server
	s.take() // output of the point before
	stop := t.o.Watch.Watch(t.o.Machine.Devices[:1], func() int { return int(s.pgid.Load()) })
	kills := oomKills()
	number, out, err := s.files.Write(t.request(m.Config))
	if err == nil {
		err = s.await(ctx, number, t.point.Timeout)
	}
	end := workerExit{timeout: t.point.Timeout, outOfMemoryKill: oomKills() > kills, log: s.take()}
	ended := s.hasEnded()
	if ended {
		end.exit = s.exit
	}
	end.exit.TimedOut = errors.Is(err, errPointTimeout)
	if out != "" {
		end.result, end.noResult = worker.ReadResult(out)
	}
	watched := stop(end.result.Timed())
	if end.exit.TimedOut {
		err = nil
	}
	// A device may fail all later calls of the process that had an error.
	if ended || err != nil || end.noResult != nil || end.result.Outcome == spec.Failed {
		t.closeServer()
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("runner: torchrun: %w", err)
	}
	end.setOutcome(m)
	t.describe(m, end.result)
	addObserved(m, watched)
	return nil
}

// errPointTimeout is the error of await after the timeout of a point.
var errPointTimeout = errors.New("timeout")

// await returns when the point is measured or the process has ended. After the timeout, and if ctx ends, it ends the process.
func (s *server) await(ctx context.Context, number int, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case n := <-s.measured:
			if n == number {
				return nil
			}
		case <-s.ended:
			return s.err
		case <-timer.C:
			s.cancel()
			<-s.ended
			return errPointTimeout
		case <-ctx.Done():
			s.cancel()
			<-s.ended
			return ctx.Err()
		}
	}
}

// startServer starts the process on the first device, for points with the threads of c.
func (t *Torchrun) startServer(ctx context.Context, c spec.Config) error {
	dir, err := tempdir.New("", "pacer-points-")
	if err != nil {
		return err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // await and Close end it
	s := &server{dir: dir, files: worker.Served{Dir: dir.Path("")}, cancel: cancel, measured: make(chan int, 1), ended: make(chan struct{})}
	cmd := profiler.Command{
		Args: []string{t.features.Executable, t.program, "--serve", s.files.Dir},
		Env:  environment(t.o.Machine, t.o.Machine.Devices[:1], threads(t.point, c), nil), Dir: s.files.Dir,
		Output: s, Started: func(id int) { s.pgid.Store(int64(id)) },
	}
	go func() {
		defer close(s.ended)
		s.exit, s.err = t.o.Executor.Run(own, cmd)
	}()
	t.server = s
	return nil
}

// hasEnded reports whether s is nil or its process has ended.
func (s *server) hasEnded() bool {
	if s == nil {
		return true
	}
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Close ends the process that measures ranks alone.
func (t *Torchrun) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeServer()
	return nil
}

// closeGrace is the time that a process may take to end by itself.
const closeGrace = 10 * time.Second

func (t *Torchrun) closeServer() {
	s := t.server
	if s == nil {
		return
	}
	t.server = nil
	defer s.dir.Remove()
	defer s.cancel()
	if err := s.files.End(); err == nil {
		timer := time.NewTimer(closeGrace)
		defer timer.Stop()
		select {
		case <-s.ended:
			return
		case <-timer.C:
		}
	}
	s.cancel()
	<-s.ended
}

// Write takes the output of the process: it notes which points are measured, and keeps the rest.
func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(s.line, p...)
	for {
		line, rest, whole := bytes.Cut(s.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s.line = rest
		if n, ok := worker.Measured(string(line)); ok {
			select {
			case s.measured <- n:
			default: // nothing waits for it
			}
			continue
		}
		s.log = append(append(s.log, line...), '\n')
		s.log = s.log[max(len(s.log)-maxLog, 0):]
	}
}

// take returns the output since the last call.
func (s *server) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.ToValidUTF8(string(append(s.log, s.line...)), "?")
	s.log, s.line = nil, nil
	return out
}
