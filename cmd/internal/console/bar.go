package console

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Bar shows the progress of a long loop: a bar on a terminal, elsewhere one line per
// acknowledged batch.
type Bar struct {
	w     io.Writer
	title string
	total int
	bar   *progressbar.ProgressBar // nil without a terminal
}

// NewBar starts a display; total 0 = unknown.
func NewBar(w io.Writer, title string, total int) *Bar {
	p := &Bar{w: w, title: title, total: total}
	if IsTerminal(w) {
		Show(w, nil)
		w = unwrap(w)
		n := int64(total)
		if total == 0 {
			n = -1
		}
		p.bar = progressbar.NewOptions64(n, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(),
			progressbar.OptionFullWidth())
	}
	return p
}

// Drawn reports whether there is a bar on a terminal.
func (b *Bar) Drawn() bool { return b.bar != nil }

// Set reports that n units of work are done.
func (b *Bar) Set(n int) {
	if b.bar != nil {
		_ = b.bar.Set(n) // a display error must not stop the work
	}
}

// Acknowledge reports that n rows in all are stored durably.
func (b *Bar) Acknowledge(n int) {
	switch {
	case b.bar != nil:
	case b.total > 0:
		fmt.Fprintf(b.w, "%s: stored %d of %d rows\n", b.title, n, b.total)
	default:
		fmt.Fprintf(b.w, "%s: stored %d rows\n", b.title, n)
	}
}

// countedEvery is the number of rows between two lines without a terminal.
const countedEvery = 1 << 17

// Counted reports that n rows are done when the total is unknown.
func (b *Bar) Counted(n int) {
	if b.Set(n); b.bar == nil && n%countedEvery == 0 {
		fmt.Fprintf(b.w, "%s: %d rows\n", b.title, n)
	}
}

// Println prints a line without disturbing the bar.
func (b *Bar) Println(line string) {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
	fmt.Fprintln(b.w, line)
}

// Finish ends the display.
func (b *Bar) Finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}

// Counting returns the text of a progress line for work that begins now and is counted: format has what is done and the
// total. It adds about how long the rest takes, at the mean rate so far.
func Counting(format string, total int, done func() int) func() string {
	began := time.Now()
	return func() string {
		n := done()
		text := fmt.Sprintf(format, n, total)
		if n > 0 && n < total {
			rest := float64(time.Since(began)) * float64(total-n) / float64(n)
			text += fmt.Sprintf(", about %v left", time.Duration(rest).Round(time.Second))
		}
		return text
	}
}
