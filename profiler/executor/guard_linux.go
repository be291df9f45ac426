package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// guard runs the supervisor. If the supervisor is killed, the guard inherits its children, ends them and reports the
// exit in its place.
func guard() int {
	report := os.NewFile(reportFD, "report")
	syscall.CloseOnExec(controlFD) // ForkExec gives the supervisor its own copies
	syscall.CloseOnExec(reportFD)
	forward := make(chan os.Signal, 8)
	signal.Notify(forward, hurrySignal, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	err := becomeReaper()
	child := 0
	if err == nil {
		child, err = startSupervised()
	}
	if err != nil {
		_ = json.NewEncoder(report).Encode(supervisorReport{Error: err.Error()})
		return 1
	}
	_ = syscall.Close(controlFD)
	exit, ended, err := guardOver(child, forward)
	switch {
	case ended: // the supervisor has reported
		return 0
	case err != nil:
		_ = json.NewEncoder(report).Encode(supervisorReport{Error: err.Error()})
	default:
		_ = json.NewEncoder(report).Encode(supervisorReport{Exit: &exit})
	}
	return 1
}

// startSupervised starts the supervisor with the descriptors of this process.
func startSupervised() (int, error) {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, superviseVar+"=") })
	pid, err := syscall.ForkExec("/proc/self/exe", []string{superviseName}, &syscall.ProcAttr{
		Env:   append(env, roleVar(supervisorRole)),
		Files: []uintptr{0, 1, 2, controlFD, reportFD},
	})
	if err != nil {
		return 0, fmt.Errorf("starting the supervisor: %w", err)
	}
	return pid, nil
}

// guardPatience is the time that processes may survive SIGKILL from the guard.
const guardPatience = time.Minute

// guardOver waits for the end of the supervisor, and passes signals on to it. ended means that it ended by itself. Else
// guardOver kills what the supervisor left, and exit has the number of processes.
func guardOver(supervisor int, forward <-chan os.Signal) (exit profiler.Exit, ended bool, err error) {
	deaths := make(chan childExit)
	go reap(deaths)
	var kill, patienceEnd <-chan time.Time
	strays := map[int]bool{}
	for {
		select {
		case s := <-forward:
			if kill == nil {
				_ = syscall.Kill(supervisor, s.(syscall.Signal))
			}
		case d, ok := <-deaths:
			switch {
			case !ok:
				exit.Code, exit.Signal = -1, syscall.SIGKILL.String()
				exit.Stray = len(strays)
				return exit, false, nil
			case d.pid != supervisor:
				if d.status.Signaled() {
					strays[d.pid] = true
				}
			case !d.status.Signaled():
				return exit, true, nil
			default:
				kill, patienceEnd = time.After(0), time.After(guardPatience)
			}
		case <-kill:
			for _, pid := range signalAll(syscall.SIGKILL) {
				strays[pid] = true
			}
			kill = time.After(5 * time.Millisecond)
		case <-patienceEnd:
			return exit, false, errors.New(unkillable(descendants(os.Getpid())))
		}
	}
}
