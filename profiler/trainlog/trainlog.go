package trainlog

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Format is the format of a log.
type Format string

const (
	Megatron   Format = "megatron"
	Torchtitan Format = "torchtitan"
	DeepSpeed  Format = "deepspeed"
	NeMo       Format = "nemo"
	Lightning  Format = "lightning"
	Trainer    Format = "trainer"
	MaxText    Format = "maxtext"
)

// Formats returns all formats. If a log has lines of several, the first one of these counts.
func Formats() []Format {
	return []Format{Megatron, Torchtitan, NeMo, MaxText, DeepSpeed, Trainer, Lightning}
}

// Line is what one line says about the training steps since the line before. Zero means that it does not say.
type Line struct {
	Step        int       // number of the last training step, from 1; of Lightning, of the last micro-batch
	Sec         float64   // mean seconds of a step
	Samples     float64   // samples per second of all devices
	Tokens      float64   // tokens per second of one device
	GlobalBatch int       // samples of a step
	At          time.Time // when it was printed, in an unknown zone

	bar  barRate
	mean bool // the rate is that since the start
}

// Log is what a log says. Zero means that it does not say.
type Log struct {
	Format      Format
	Lines       []Line  // in order, one for each step number
	GlobalBatch int     // samples of a step
	MicroBatch  int     // samples of a micro-batch
	SeqLen      int     // tokens of a sample
	AccumSteps  int     // micro-batches of a step
	Total       int     // steps that the program was to make
	DP, TP      int     // parallel degrees
	PP, CP      int     // as DP
	Bare        bool    // only a progress bar says that it is a log of Trainer; it may count anything
	RunSec      float64 // of the whole training, start and end included
	RunSteps    int     // its steps
	// PeakBytes is the largest peak of tensors on a device, ReservedBytes that of the allocator.
	PeakBytes, ReservedBytes float64

	begun        bool    // steps were made: later settings are of another run
	ran, elapsed float64 // seconds of a progress bar, those of its restarts together, and those since the last start
}

// maxLine is the length of the longest line that is read; of longer ones the rest is ignored.
const maxLine = 64 << 10

// maxLines bounds the memory of a Log.
const maxLines = 1_000_000

// Reader collects what is written to it. It is an io.Writer that never fails. Lines end with a newline or a carriage
// return, which progress bars use.
type Reader struct {
	// Now, if set, is the time: the output is read as it is printed, so that progress bars are timed by when they
	// change.
	Now func() time.Time

	at   time.Time // of the last bytes of rest
	rest []byte    // of an unfinished line
	logs map[Format]*Log
	bars []*Log // of Trainer's format, one for each total, in order
}

var _ io.Writer = (*Reader)(nil)

// Write implements io.Writer.
func (r *Reader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexAny(rest, "\r\n")
		if i < 0 {
			r.keep(rest)
			break
		}
		r.keep(rest[:i])
		r.line(r.rest)
		r.rest, rest = r.rest[:0], rest[i+1:]
	}
	return len(p), nil
}

func (r *Reader) keep(p []byte) {
	r.rest = append(r.rest, p[:min(len(p), maxLine-len(r.rest))]...)
	if r.Now != nil && len(p) > 0 {
		r.at = r.Now()
	}
}

// Log returns the log so far. ok is false if no line of a known format was written. format selects one of several, "" =
// the first one of Formats that the log has.
func (r *Reader) Log(format Format) (l Log, ok bool) {
	if n := len(r.rest); n > 0 && !('0' <= r.rest[n-1] && r.rest[n-1] <= '9') { // else digits may be missing
		r.line(r.rest)
		r.rest = r.rest[:0]
	}
	for _, f := range Formats() {
		if format != "" && format != f {
			continue
		}
		if f == Trainer {
			l, ok = r.trainerLog()
		} else if found := r.logs[f]; found != nil {
			l, ok = *found, len(found.Lines) > 0
		}
		if ok {
			return l, true
		}
	}
	return Log{}, false
}

// Read reads a whole log, of text or compressed by gzip.
func Read(in io.Reader, format Format) (Log, error) {
	var r Reader
	text, err := plainText(in)
	if err == nil {
		_, err = io.Copy(&r, text)
	}
	if err != nil {
		return Log{}, fmt.Errorf("trainlog: %w", err)
	}
	l, ok := r.Log(format)
	if !ok {
		return l, fmt.Errorf("trainlog: no line with a step time; the formats are %v", Formats())
	}
	return l, nil
}

var (
	// colours matches the control sequences of terminals (ECMA-48, CSI).
	colours = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]")
	// label matches what launchers put before the lines of a rank or a container: torchrun, srun, DeepSpeed and pdsh,
	// mpirun, Ray, kubectl logs and container runtimes.
	label = regexp.MustCompile(`^(?:\[[a-zA-Z]*\d+\]:\s*|\d+: |std(?:out|err): |\[\d+,\d+\]<std(?:out|err)>: ?|\(\w+ pid=[^)]*\) ` +
		`|\[pod/[^]]*\] |\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?)+`)
)

// line reads a line. Most lines of a chatty program are of no format and have none of its words: the program waits
// while its output is read, so regular expressions are left to the others.
func (r *Reader) line(raw []byte) {
	text := ""
	for f, reader := range readers {
		if !slices.ContainsFunc(reader.words, func(w string) bool { return bytes.Contains(raw, []byte(w)) }) {
			continue
		}
		if text == "" {
			text = strings.TrimSpace(colours.ReplaceAllString(string(raw), ""))
			text = label.ReplaceAllString(text, "")
		}
		got, ok := reader.read(text)
		if !ok {
			continue
		}
		for i := range got.Lines {
			if got.Lines[i].bar.sec > 0 {
				got.Lines[i].At = r.at
			}
		}
		if f == Trainer && len(got.Lines) > 0 {
			r.bar(got.Total).add(got)
			continue
		}
		l := r.log(f)
		l.begun = f == Trainer && slices.ContainsFunc(r.bars, func(b *Log) bool { return len(b.Lines) > 1 })
		l.add(got)
	}
}

func (r *Reader) log(f Format) *Log {
	if r.logs == nil {
		r.logs = map[Format]*Log{}
	}
	if r.logs[f] == nil {
		r.logs[f] = &Log{Format: f}
	}
	return r.logs[f]
}

// add adds what a line says. Ranks may print the same line, and a restart repeats steps: the first line of a step
// counts.
func (l *Log) add(got Log) {
	for _, line := range got.Lines {
		if line.bar.elapsed < l.elapsed/2 { // else it is that of another rank
			l.elapsed = 0
		}
		l.ran, l.elapsed = l.ran+max(0, line.bar.elapsed-l.elapsed), max(l.elapsed, line.bar.elapsed)
		n := len(l.Lines)
		if n < maxLines && (n == 0 || line.Step > l.Lines[n-1].Step) {
			l.Lines = append(l.Lines, line)
		}
	}
	for _, v := range [][2]*int{{&l.GlobalBatch, &got.GlobalBatch}, {&l.MicroBatch, &got.MicroBatch}, {&l.SeqLen, &got.SeqLen}, {&l.AccumSteps, &got.AccumSteps},
		{&l.Total, &got.Total}, {&l.DP, &got.DP}, {&l.TP, &got.TP}, {&l.PP, &got.PP}, {&l.CP, &got.CP}} {
		if l.begun || len(l.Lines) > 0 {
			*v[0] = cmp.Or(*v[0], *v[1]) // else of another run
		} else {
			*v[0] = cmp.Or(*v[1], *v[0])
		}
	}
	l.RunSteps, l.RunSec = cmp.Or(l.RunSteps, got.RunSteps), cmp.Or(l.RunSec, got.RunSec)
	l.PeakBytes, l.ReservedBytes = max(l.PeakBytes, got.PeakBytes), max(l.ReservedBytes, got.ReservedBytes)
}
