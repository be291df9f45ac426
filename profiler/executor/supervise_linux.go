package executor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// A program that links this package and is called superviseName, with
// superviseVar set to 1, is a supervisor instead of itself, before its main runs.
const (
	superviseName = "pacer-supervisor"
	superviseVar  = "PACER_SUPERVISE"
)

func init() {
	if os.Args[0] == superviseName && os.Getenv(superviseVar) == "1" {
		os.Exit(supervise())
	}
}

// Descriptors of a supervisor.
const (
	controlFD = 3 // the order as one line of JSON; its end means: kill everything
	reportFD  = 4 // supervisorReports
)

// supervise runs one command, ends everything it started and reports.
func supervise() int {
	control, report := os.NewFile(controlFD, "control"), os.NewFile(reportFD, "report")
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(reportFD)
	_ = os.Unsetenv(superviseVar) // only a bad name fails
	enc := json.NewEncoder(report)
	in := bufio.NewReader(control)
	var order supervisorOrder
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &order)
	}
	if err != nil {
		return 1 // the parent died, or never asked
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

// hurrySignal asks a supervisor that ends everything to do so at once.
const hurrySignal = syscall.SIGUSR1

const prSetChildSubreaper = 36 // linux/prctl.h

// becomeReaper makes orphaned descendants children of this process.
func becomeReaper() error {
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); e != 0 {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", e)
	}
	return nil
}

// stopOn closes stop when the control pipe ends or somebody asks this process
// to end.
func stopOn(control io.Reader, stop chan struct{}) {
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }) }
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		<-asked
		end()
	}()
	_, _ = io.Copy(io.Discard, control)
	end()
}

// start starts the command in a session and process group of its own and
// returns its pid, the group's id too.
func start(o supervisorOrder) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(o.Program, o.Args, &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env,
		Files: []uintptr{null.Fd(), 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("cannot run %q: %w", o.Args[0], err)
	}
	return pid, nil
}

// An ended child, as wait4 tells it.
type ended struct {
	pid    int
	status syscall.WaitStatus
}

// reap sends every child that ends and closes the channel when none is left,
// and with that no descendant.
func reap(to chan<- ended) {
	defer close(to)
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return
		default:
			to <- ended{pid, ws}
		}
	}
}

// watch waits until nothing is alive. What goes on for long after the command
// itself ended is left behind: it is counted and killed. When stop closes
// everything is asked to end, then killed; on hurry it is killed without delay.
func watch(child int, o supervisorOrder, stop <-chan struct{}, hurry <-chan os.Signal) (exit profiler.Exit, err error) {
	deaths := make(chan ended)
	go reap(deaths)
	var kill <-chan time.Time   // when SIGKILLs begin; again every few milliseconds
	var giveUp <-chan time.Time // when they have not helped
	strays := map[int]bool{}    // alive after the command ended by itself
	over := false               // the command has ended
	for {
		select {
		case d, ok := <-deaths:
			if !ok {
				exit.Stray = len(strays)
				return exit, nil
			}
			if d.pid == child {
				exit.Code, exit.Signal = howEnded(d.status)
				over = true
				if kill == nil {
					kill = time.After(o.Grace)
				}
			}
		case <-stop:
			stop = nil
			signalAll(syscall.SIGTERM)
			signalAll(syscall.SIGCONT) // a stopped process only dies when it goes on
			kill = time.After(o.Grace)
		case <-hurry:
			stop, hurry = nil, nil
			kill, giveUp = time.After(0), time.After(hurriedPatience)
		case <-kill:
			for _, pid := range signalAll(syscall.SIGKILL) {
				if over && stop != nil {
					strays[pid] = true
				}
			}
			if giveUp == nil {
				giveUp = time.After(o.Patience)
			}
			kill = time.After(5 * time.Millisecond)
		case <-giveUp:
			return exit, errors.New(stuck(descendants(os.Getpid())))
		}
	}
}

func howEnded(ws syscall.WaitStatus) (code int, signal string) {
	if ws.Signaled() {
		return -1, ws.Signal().String()
	}
	return ws.ExitStatus(), ""
}

// signalAll signals every descendant of this process and returns their pids.
func signalAll(sig syscall.Signal) []int {
	all := descendants(os.Getpid())
	for _, pid := range all {
		_ = syscall.Kill(pid, sig) // one that is gone meanwhile is no matter
	}
	return all
}
