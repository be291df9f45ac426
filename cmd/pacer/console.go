package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// console is standard output and standard error of a run. It quotes control bytes of user
// data, and shows the progress of a run that takes long.
type console struct {
	mu     sync.Mutex
	out    *stream // standard output
	err    *stream // standard error
	stderr io.Writer
	json   bool // quote as in JSON

	status func() string // what to show; nil = nothing
	began  time.Time
	redraw bool // stderr is a terminal: one line is redrawn, else lines are printed
	drawn  bool // the line is on the terminal
	stop   chan struct{}
	wait   sync.WaitGroup
}

// progressAfter is how long a run takes before its progress is shown, and between two
// lines where there is no terminal.
const progressAfter = 2 * time.Second

// newConsole returns the console of a run.
func newConsole(stdout, stderr io.Writer, json bool) *console {
	o := &console{stderr: stderr, json: json, redraw: isTerminal(stderr), stop: make(chan struct{})}
	o.out, o.err = &stream{console: o, to: stdout}, &stream{console: o, to: stderr}
	return o
}

// start shows the progress of a verb from now on, on a terminal or if plain lines are
// wanted.
func (o *console) start(verb string, lines bool) {
	if !o.redraw && !lines {
		return
	}
	o.began = time.Now()
	o.status = func() string { return verb }
	o.wait.Go(o.run)
}

// show replaces what is shown; nil shows nothing more, for a run with a display of its own.
func (o *console) show(status func() string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.clear(); o.status != nil {
		o.status = status
	}
}

// finish ends the display.
func (o *console) finish() {
	close(o.stop)
	o.wait.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clear()
	for _, s := range []*stream{o.out, o.err} {
		_, _ = io.WriteString(s.to, quoteControls(string(s.rest), o.json)) // the run is over
	}
}

func (o *console) run() {
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

// draw shows the status: over the last line on a terminal.
func (o *console) draw() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.status == nil {
		return
	}
	text := quoteControls(fmt.Sprintf("%s, %.0f s", o.status(), time.Since(o.began).Seconds()), false)
	if !o.redraw {
		fmt.Fprintln(o.stderr, "progress: "+text)
		return
	}
	width := terminalWidth(o.stderr)
	if width == 0 {
		width = 80
	}
	fmt.Fprint(o.stderr, "\r\x1b[K"+cut(text, width-1))
	o.drawn = true
}

// clear removes the line from the terminal. The caller holds mu.
func (o *console) clear() {
	if o.drawn {
		fmt.Fprint(o.stderr, "\r\x1b[K")
		o.drawn = false
	}
}

// stream is one of the streams of a console.
type stream struct {
	*console
	to   io.Writer
	rest []byte // the start of a character whose end has not been written yet
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
	if _, err := io.WriteString(s.to, quoteControls(string(text[:end]), s.json)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap returns the stream itself, for whether it is a terminal.
func (s *stream) Unwrap() io.Writer { return s.to }

// hasControls reports whether quoteControls may change p, or p ends inside a character.
func hasControls(p []byte) bool {
	for _, b := range p {
		if b < ' ' && b != '\n' && b != '\t' || b == 0x7f || b >= 0x80 {
			return true
		}
	}
	return false
}

// quoteControls writes control characters, and bytes that are no UTF-8, as \x1b, or as
// \u001b for JSON. Line feeds and tabs stay.
func quoteControls(s string, json bool) string {
	format := `\x%02x`
	if json {
		format = `\u%04x`
	}
	var b strings.Builder
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, format, s[i])
		case r < ' ' && r != '\n' && r != '\t', r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, format, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unwrap returns the writer behind a stream.
func unwrap(w io.Writer) io.Writer {
	if s, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return s.Unwrap()
	}
	return w
}

// isTerminal reports whether w is a terminal that can redraw a line.
func isTerminal(w io.Writer) bool {
	f, ok := unwrap(w).(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// ownDisplay ends the progress of the console that w belongs to, for a display of its own,
// and returns the terminal.
func ownDisplay(w io.Writer) io.Writer {
	if s, ok := w.(*stream); ok {
		s.show(nil)
	}
	return unwrap(w)
}

// consoleKey is where the console of a run is in the metadata of its app.
const consoleKey = "console"

// showProgress replaces what is shown of a run that takes long; nil shows nothing more.
func showProgress(c *cli.Context, status func() string) {
	if o, ok := c.App.Metadata[consoleKey].(*console); ok {
		o.show(status)
	}
}
