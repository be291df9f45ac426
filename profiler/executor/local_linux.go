package executor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// How all processes are found and ended on Linux: between this process and the command run a guard and a supervisor,
// copies of this program (guard_linux.go, supervise_linux.go). Both are "child subreapers" (prctl(2),
// PR_SET_CHILD_SUBREAPER): every descendant of the command becomes a child of the supervisor when its parent dies, even
// if it moved to another session. So a supervisor without children means that all descendants have ended, and no other
// process of the caller is touched.
//
// Each process may be killed:
//
//	this process    the control pipe closes and the supervisor ends everything
//	the supervisor  its children become those of the guard, which kills them
//	the guard       the supervisor continues without it
//	both            this process kills the process group and every process with the mark of the run
//	all three       the kernel kills the command, and the Python processes of a run end themselves: see SupervisorVar
//
// What remains after the last case, such as a daemon that is no Python process, is ended by Sweep.

// markVar is set in the environment of every process of a run, to a value unique to the run.
const markVar = "PACER_RUN_MARK"

// supervisorReport is one line of JSON from the supervisor: first Pgid or Error, and at the end Exit or Error.
type supervisorReport struct {
	Pgid  int            `json:"pgid,omitempty"`
	Error string         `json:"error,omitempty"`
	Setup bool           `json:"setup,omitempty"` // the program cannot be executed
	Exit  *profiler.Exit `json:"exit,omitempty"`
}

// supervisorOrder is the command for the supervisor.
type supervisorOrder struct {
	Program         string
	Args, Env       []string
	Dir             string
	Grace, Patience time.Duration
}

func (l Local) run(ctx context.Context, program string, cmd profiler.Command, out *os.File) (profiler.Exit, error) {
	s, err := l.startSupervisor(program, cmd, out)
	out.Close()
	if err != nil {
		return profiler.Exit{}, fmt.Errorf("executor: starting a supervisor for %s: %w", cmd.Args[0], err)
	}
	defer s.close()
	timedOut, stop := make(chan struct{}), make(chan struct{})
	go s.killWhen(ctx, cmd.Timeout, l.Hurry, timedOut, stop)
	exit, err := s.awaitExit(cmd, l.patience())
	close(stop)
	select {
	case <-timedOut:
		exit.TimedOut = true
	default:
	}
	return exit, err
}

// A supervisor is the pair of processes between this one and a command.
type supervisor struct {
	cmd     *exec.Cmd // the guard
	mark    string
	control *os.File // closing it ends the command
	report  *os.File
	pgid    int // process group of the command, 0 = not known yet
}

func (l Local) startSupervisor(program string, cmd profiler.Command, out *os.File) (_ *supervisor, err error) {
	control, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r, report, err := os.Pipe()
	if err != nil {
		control.Close()
		w.Close()
		return nil, err
	}
	defer report.Close()
	s := &supervisor{mark: rand.Text(), control: w, report: r}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.cmd = exec.Command("/proc/self/exe")
	s.cmd.Args = []string{superviseName}
	s.cmd.Env = append(os.Environ(), roleVar(guardRole))
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.ExtraFiles = []*os.File{control, report} // descriptors 3 and 4
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = s.cmd.Start()
	control.Close() // at once, so that a write to a dead supervisor fails and does not block
	if err != nil {
		return nil, err
	}
	all := exec.Cmd{Env: append(append(os.Environ(), cmd.Env...), markVar+"="+s.mark)}
	order := supervisorOrder{Program: program, Args: cmd.Args, Dir: cmd.Dir, Grace: l.grace(), Patience: l.patience(),
		Env: all.Environ()} // the last value of a key applies
	// An order may be longer than the pipe's buffer, and ctx is not watched yet. awaitExit detects a supervisor
	// that does not read it.
	go func() { _ = json.NewEncoder(w).Encode(order) }()
	return s, nil
}

func (s *supervisor) close() {
	s.control.Close()
	s.report.Close()
}

// killWhen ends all processes if ctx ends or the timeout passes, and kills them on hurry from then on.
func (s *supervisor) killWhen(ctx context.Context, timeout time.Duration, hurry <-chan struct{}, timedOut, stop chan struct{}) {
	var after <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-after:
		close(timedOut)
	case <-ctx.Done():
	case <-stop:
	}
	s.control.Close()
	select {
	case <-hurry:
		_ = s.cmd.Process.Signal(hurrySignal) // it may have ended already
	case <-stop:
	}
}

// awaitExit reads the supervisor's reports until the exit.
func (s *supervisor) awaitExit(cmd profiler.Command, patience time.Duration) (profiler.Exit, error) {
	dec := json.NewDecoder(s.report)
	for {
		var r supervisorReport
		err := dec.Decode(&r)
		switch {
		case err != nil:
			return s.killRemaining(cmd, patience)
		case r.Error != "":
			_ = s.cmd.Wait()
			err := errors.New("executor: " + r.Error)
			if r.Setup {
				err = fmt.Errorf("%w: %w", err, profiler.ErrSetup)
			}
			return profiler.Exit{Code: -1}, err
		case r.Exit != nil:
			_ = s.cmd.Wait()
			return *r.Exit, nil
		}
		s.pgid = r.Pgid
		if cmd.Started != nil {
			cmd.Started(r.Pgid)
		}
	}
}

// killRemaining ends a run after its supervisor died without a report: it kills every process of the run that
// it finds.
func (s *supervisor) killRemaining(cmd profiler.Command, patience time.Duration) (profiler.Exit, error) {
	_ = s.cmd.Wait()
	exit := profiler.Exit{Code: -1, Signal: syscall.SIGKILL.String()}
	seen := map[int]bool{}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left := runProcesses(markVar+"="+s.mark, s.pgid)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return exit, fmt.Errorf("executor: %s: %s", cmd.Args[0], unkillable(left))
		}
		for _, pid := range left {
			seen[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	exit.Stray = len(seen)
	return exit, nil
}
