package console

import (
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// Console is the standard output and the standard error of a run. It quotes control bytes of
// user data and shows the progress of a long run.
type Console struct {
	mu     sync.Mutex
	out    *stream // standard output
	err    *stream // standard error
	stderr io.Writer
	json   bool // quote as in JSON

	status func() string // text of the progress line; nil = no line
	began  time.Time
	redraw bool // stderr is a terminal: one line is redrawn, else lines are printed
	drawn  bool // the line is on the terminal
	stop   chan struct{}
	wait   sync.WaitGroup
}

// progressAfter is the time before the first progress line, and between two lines without a
// terminal.
const progressAfter = 2 * time.Second

// New returns the console of a run. With json, control bytes are quoted as in JSON.
func New(stdout, stderr io.Writer, json bool) *Console {
	o := &Console{stderr: stderr, json: json, redraw: IsTerminal(stderr), stop: make(chan struct{})}
	o.out, o.err = &stream{Console: o, to: stdout}, &stream{Console: o, to: stderr}
	return o
}

// Out is the standard output.
func (c *Console) Out() io.Writer { return c.out }

// Err is the standard error.
func (c *Console) Err() io.Writer { return c.err }

// Start shows the progress of a verb from now on: on a terminal, or as lines.
func (c *Console) Start(verb string, lines bool) {
	if !c.redraw && !lines {
		return
	}
	c.began = time.Now()
	c.status = func() string { return verb }
	c.wait.Go(c.run)
}

// Show replaces the text of the progress line; nil ends it.
func (c *Console) Show(status func() string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clear(); c.status != nil {
		c.status = status
	}
}

// Finish ends the display.
func (c *Console) Finish() {
	close(c.stop)
	c.wait.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	for _, s := range []*stream{c.out, c.err} {
		_, _ = io.WriteString(s.to, quote(string(s.rest), c.json)) // the run is over
	}
}

func (c *Console) run() {
	every := progressAfter
	if c.redraw {
		every = time.Second
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			if time.Since(c.began) >= progressAfter {
				c.draw()
			}
		}
	}
}

// draw prints the progress line, on a terminal over the previous one. The text is made without
// the lock, so that its maker may write to the console.
func (c *Console) draw() {
	c.mu.Lock()
	status := c.status
	c.mu.Unlock()
	if status == nil {
		return
	}
	text := fmt.Sprintf("%s, %.0f s", status(), time.Since(c.began).Seconds())
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.status == nil: // ended in the meantime
	case c.redraw:
		redraw(c.stderr, text)
		c.drawn = true
	default:
		fmt.Fprintln(c.stderr, "progress: "+Quote(text))
	}
}

// clear removes the line from the terminal. The caller holds mu.
func (c *Console) clear() {
	if c.drawn {
		fmt.Fprint(c.stderr, clearLine)
		c.drawn = false
	}
}

// stream is one of the streams of a console.
type stream struct {
	*Console
	to   io.Writer
	rest []byte // the first bytes of an incomplete character
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if len(s.rest) == 0 && !hasControls(p) {
		return s.to.Write(p)
	}
	text := append(s.rest, p...)
	end := len(text)
	for i := 1; i < utf8.UTFMax && i <= end; i++ {
		if utf8.RuneStart(text[end-i]) {
			if !utf8.FullRune(text[end-i:]) {
				end -= i
			}
			break
		}
	}
	s.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(s.to, quote(string(text[:end]), s.json)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap returns the writer behind the stream.
func (s *stream) Unwrap() io.Writer { return s.to }
