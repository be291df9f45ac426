package executor

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A tail reads a stream to its end and keeps its last bytes.
type tail struct {
	max  int
	done chan struct{}

	mu   sync.Mutex
	kept []byte // at most 2*max
}

// keepTail starts to read r, so that writers do not block. Everything read is also written to also, unless it is nil.
func keepTail(r *os.File, limit int, also io.Writer) *tail {
	t := &tail{max: limit, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			t.add(buf[:n])
			if also != nil {
				_, _ = also.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return t
}

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) > t.max {
		b = b[len(b)-t.max:]
	}
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.max; over > t.max {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
}

// stop waits for the end of the stream and returns the kept bytes. Once all writers have ended, the stream
// ends; if something still holds the pipe, stop returns after a second.
func (t *tail) stop(r *os.File) string {
	select {
	case <-t.done:
	case <-time.After(time.Second):
		_ = r.SetReadDeadline(time.Now()) // a pipe has deadlines
		r.Close()
		<-t.done
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return validEnd(t.kept, t.max)
}

// validEnd returns at most limit bytes of the end of b as valid UTF-8, with "?" for invalid bytes.
func validEnd(b []byte, limit int) string {
	if len(b) > limit {
		b = b[len(b)-limit:]
		for i := 0; i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
			b = b[1:]
		}
	}
	return strings.ToValidUTF8(string(b), "?")
}
