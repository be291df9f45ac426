package plan

import (
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/term"

	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// output is a stream of a command. What is written to the pipe in is passed on to a file and read as a log.
type output struct {
	to       *os.File
	from, in *os.File // the ends of a pipe
	format   trainlog.Format
	log      trainlog.Reader
	passed   chan struct{} // closed at the end of pass
}

// outputs are the streams of a command that are read.
type outputs []*output

// readOutput reads the output of cmd that is no terminal as a log. A command that sees a pipe in place of one prints
// other things.
func readOutput(cmd *exec.Cmd, format trainlog.Format) (all outputs, err error) {
	open := func(f *os.File) *os.File {
		o := &output{to: f, format: format, log: trainlog.Reader{Now: time.Now}, passed: make(chan struct{})}
		if term.IsTerminal(int(f.Fd())) || err != nil {
			return f
		}
		if o.from, o.in, err = os.Pipe(); err != nil {
			return f // as the streams after it
		}
		all = append(all, o)
		go o.pass()
		return o.in
	}
	stdout := open(os.Stdout)
	cmd.Stdout, cmd.Stderr = stdout, stdout // one pipe keeps the order
	out, outErr := os.Stdout.Stat()
	both, bothErr := os.Stderr.Stat()
	if outErr != nil || bothErr != nil || !os.SameFile(out, both) {
		cmd.Stderr = open(os.Stderr)
	}
	return all, err
}

// pass passes on what is written until the end of the stream or the deadline of from.
func (o *output) pass() {
	defer close(o.passed)
	if _, err := io.Copy(o, o.from); !os.IsTimeout(err) {
		o.from.Close()
	}
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	_, _ = o.log.Write(p[:n])
	return n, err
}

// restWait is the time that processes may have the output open after the end of the command until it is no longer read.
const restWait = 2 * time.Second

// wait returns the log of the command that ended, nil without one.
func (all outputs) wait() (most *trainlog.Log) {
	late := make(chan struct{})
	defer time.AfterFunc(restWait, func() { close(late) }).Stop()
	for _, o := range all {
		o.in.Close()
	}
	for _, o := range all {
		select {
		case <-o.passed:
		case <-late:
			o.leave()
		}
		l, ok := o.log.Log(o.format)
		// The most lines are those of a progress bar on standard error, beside a summary on standard output.
		if ok && (most == nil || len(l.Lines) > len(most.Lines)) {
			most = &l
		}
	}
	return most
}

// leave leaves the stream to cat, which ends with the processes that the command has left in the background. Without
// this process and cat, their next write would end them.
func (o *output) leave() {
	_ = o.from.SetReadDeadline(time.Now())
	<-o.passed
	cat := exec.Command("cat")
	cat.Stdin, cat.Stdout = o.from, o.to
	if cat.Start() != nil {
		_ = o.from.SetReadDeadline(time.Time{})
		_, _ = io.Copy(o.to, o.from)
	}
}
