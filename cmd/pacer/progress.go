package main

import (
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far long work is: a bar on a terminal, else one plain
// line per acknowledged batch. A nil bar is allowed.
type progress struct {
	w     io.Writer
	title string
	total int
	bar   *progressbar.ProgressBar
}

// newProgress starts a progress display; total 0 = unknown.
func newProgress(w io.Writer, title string, total int) *progress {
	p := &progress{w: w, title: title, total: total}
	if isTerminal(w) {
		w = ownDisplay(w)
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

// set says that n units of work are done.
func (p *progress) set(n int) {
	if p.bar != nil {
		_ = p.bar.Set(n) // a display error must not stop the work
	}
}

// acknowledge says that n rows in all are stored durably.
func (p *progress) acknowledge(n int) {
	switch {
	case p.bar != nil:
	case p.total > 0:
		fmt.Fprintf(p.w, "%s: stored %d of %d rows\n", p.title, n, p.total)
	default:
		fmt.Fprintf(p.w, "%s: stored %d rows\n", p.title, n)
	}
}

// counted says that n rows are done of who knows how many.
func (p *progress) counted(n int) {
	if p.set(n); p.bar == nil && n%countedEvery == 0 {
		fmt.Fprintf(p.w, "%s: %d rows\n", p.title, n)
	}
}

// countedEvery is after how many rows a line says so where there is no bar.
const countedEvery = 1 << 17

// println prints a line without disturbing the bar.
func (p *progress) println(line string) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(p.w, line)
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
