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
func (o *Console) Out() io.Writer { return o.out }

// Err is the standard error.
func (o *Console) Err() io.Writer { return o.err }

// Start shows the progress of a verb from now on: on a terminal, or as lines.
func (o *Console) Start(verb string, lines bool) {
	if !o.redraw && !lines {
		return
	}
	o.began = time.Now()
	o.status = func() string { return verb }
	o.wait.Go(o.run)
}

// Show replaces the text of the progress line; nil ends it.
func (o *Console) Show(status func() string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.clear(); o.status != nil {
		o.status = status
	}
}

// Finish ends the display.
func (o *Console) Finish() {
	close(o.stop)
	o.wait.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clear()
	for _, s := range []*stream{o.out, o.err} {
		_, _ = io.WriteString(s.to, quote(string(s.rest), o.json)) // the run is over
	}
}

func (o *Console) run() {
	every := progressAfter
	if o.redraw {
		every = time.Second
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-o.stop:
			return
		case <-t.C:
			if time.Since(o.began) >= progressAfter {
				o.draw()
			}
		}
	}
}

// draw prints the progress line, on a terminal over the previous one. The text is made without
// the lock, so that its maker may write to the console.
func (o *Console) draw() {
	o.mu.Lock()
	status := o.status
	o.mu.Unlock()
	if status == nil {
		return
	}
	text := fmt.Sprintf("%s, %.0f s", status(), time.Since(o.began).Seconds())
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.status == nil: // ended in the meantime
	case o.redraw:
		redraw(o.stderr, text)
		o.drawn = true
	default:
		fmt.Fprintln(o.stderr, "progress: "+Quote(text))
	}
}

// clear removes the line from the terminal. The caller holds mu.
func (o *Console) clear() {
	if o.drawn {
		fmt.Fprint(o.stderr, clearLine)
		o.drawn = false
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
