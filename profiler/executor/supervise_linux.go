package executor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// A program that links this package acts as a guard or a supervisor, before its main function runs, if its name is
// superviseName. superviseVar has its role and the id of its parent, such as "guard 1234".
const (
	superviseName  = "pacer-supervisor"
	superviseVar   = "PACER_SUPERVISE"
	guardRole      = "guard"
	supervisorRole = "supervisor"
)

func init() {
	if os.Args[0] != superviseName {
		return
	}
	switch role, _, _ := strings.Cut(os.Getenv(superviseVar), " "); role {
	case guardRole:
		os.Exit(guard())
	case supervisorRole:
		os.Exit(supervise())
	}
}

// Descriptors of a supervisor.
const (
	controlFD = 3 // the order as one line of JSON; when the pipe closes, all processes are ended
	reportFD  = 4 // supervisorReports, one per line
)

// supervise runs one command, ends all its descendants and reports the exit.
func supervise() int {
	control, report := os.NewFile(controlFD, "control"), os.NewFile(reportFD, "report")
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(reportFD)
	_ = os.Unsetenv(superviseVar) // cannot fail: the name is valid
	enc := json.NewEncoder(report)
	in := bufio.NewReader(control)
	var order supervisorOrder
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &order)
	}
	if err != nil {
		return 1 // the parent died before sending its order
	}
	if err := becomeReaper(); err != nil {
		_ = enc.Encode(supervisorReport{Error: err.Error()})
		return 1
	}
	stop, hurry := make(chan struct{}), make(chan os.Signal, 1)
	signal.Notify(hurry, hurrySignal)
	go stopOn(in, stop)
	child, err := start(order)
	if err != nil {
		setup := errors.Is(err, syscall.ENOEXEC) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOENT)
		_ = enc.Encode(supervisorReport{Error: err.Error(), Setup: setup})
		return 1
	}
	_ = enc.Encode(supervisorReport{Pgid: child})
	exit, err := watch(child, order, stop, hurry)
	last := supervisorReport{Exit: &exit}
	if err != nil {
		last = supervisorReport{Error: err.Error()}
	}
	_ = enc.Encode(last)
	return 0
}

// hurrySignal makes a supervisor that is ending processes kill them at once.
const hurrySignal = syscall.SIGUSR1

const prSetChildSubreaper = 36 // linux/prctl.h

// becomeReaper makes orphaned descendants children of this process.
func becomeReaper() error {
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); e != 0 {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", e)
	}
	return nil
}

// stopOn closes stop when the control pipe closes or this process gets a termination signal.
func stopOn(control io.Reader, stop chan struct{}) {
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }) }
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		<-terminate
		end()
	}()
	_, _ = io.Copy(io.Discard, control)
	end()
}

// SupervisorVar is the variable with the id of the supervisor and its PID namespace, such as
// "1234 pid:[4026531836]". Python processes of a run end themselves when the supervisor has ended.
const SupervisorVar = "PACER_SUPERVISOR"

// supervisedBy returns SupervisorVar for the children of this process.
func supervisedBy() string {
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("%s=%d %s", SupervisorVar, os.Getpid(), namespace)
}

// start starts the command in its own session and process group. It returns the pid, which is also the id of
// the group.
func start(o supervisorOrder) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(o.Program, o.Args, &syscall.ProcAttr{
		Dir: o.Dir, Env: append(o.Env, supervisedBy()),
		Files: []uintptr{null.Fd(), 1, 2},
		// The kernel kills the command when the thread that started it ends. Package init functions run on the
		// main thread, which ends with the process.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, fmt.Errorf("cannot run %q: %w", o.Args[0], err)
	}
	return pid, nil
}

// A childExit is the result of wait4 for a child.
type childExit struct {
	pid    int
	status syscall.WaitStatus
}

// reap sends the exit of every child. It closes the channel when no child, and therefore no descendant, is
// left.
func reap(to chan<- childExit) {
	defer close(to)
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return
		default:
			to <- childExit{pid, ws}
		}
	}
}

// watch waits until no descendant is running. Processes that outlive the command by more than Grace are counted
// as strays and killed. When stop closes, all processes get SIGTERM, then SIGKILL; hurry kills them at once.
func watch(child int, o supervisorOrder, stop <-chan struct{}, hurry <-chan os.Signal) (exit profiler.Exit, err error) {
	deaths := make(chan childExit)
	go reap(deaths)
	var kill <-chan time.Time        // the next SIGKILL, repeated every few milliseconds
	var patienceEnd <-chan time.Time // when SIGKILL had no effect
	strays := map[int]bool{}         // running after the command ended by itself
	over := false                    // the command has ended
	for {
		select {
		case d, ok := <-deaths:
			if !ok {
				exit.Stray = len(strays)
				return exit, nil
			}
			if d.pid == child {
				exit.Code, exit.Signal = exitStatus(d.status)
				over = true
				if kill == nil {
					kill = time.After(o.Grace)
				}
			}
		case <-stop:
			stop = nil
			signalAll(syscall.SIGTERM)
			signalAll(syscall.SIGCONT) // a stopped process handles SIGTERM only after it continues
			kill = time.After(o.Grace)
		case <-hurry:
			stop, hurry = nil, nil
			kill, patienceEnd = time.After(0), time.After(hurriedPatience)
		case <-kill:
			for _, pid := range signalAll(syscall.SIGKILL) {
				if over && stop != nil {
					strays[pid] = true
				}
			}
			if patienceEnd == nil {
				patienceEnd = time.After(o.Patience)
			}
			kill = time.After(5 * time.Millisecond)
		case <-patienceEnd:
			return exit, errors.New(unkillable(descendants(os.Getpid())))
		}
	}
}

func exitStatus(ws syscall.WaitStatus) (code int, signal string) {
	if ws.Signaled() {
		return -1, ws.Signal().String()
	}
	return ws.ExitStatus(), ""
}

// signalAll signals every descendant of this process and returns their pids.
func signalAll(sig syscall.Signal) []int {
	all := descendants(os.Getpid())
	for _, pid := range all {
		_ = syscall.Kill(pid, sig) // it may have ended in the meantime
	}
	return all
}

// roleVar returns superviseVar for a child of this process.
func roleVar(role string) string { return fmt.Sprintf("%s=%s %d", superviseVar, role, os.Getpid()) }
