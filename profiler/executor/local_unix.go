//go:build unix && !linux

package executor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// run runs cmd in its own process group. Only that group is ended and counted here: a process that moves to
// another session survives.
func (l Local) run(ctx context.Context, program string, cmd profiler.Command, out *os.File) (profiler.Exit, error) {
	defer out.Close()
	c := exec.Command(program)
	c.Args, c.Dir, c.Env = cmd.Args, cmd.Dir, append(os.Environ(), cmd.Env...)
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return profiler.Exit{}, fmt.Errorf("executor: cannot run %q: %w", cmd.Args[0], err)
	}
	group := c.Process.Pid
	if cmd.Started != nil {
		cmd.Started(group)
	}
	over := make(chan struct{})
	go func() {
		_ = c.Wait() // the state has the exit status
		close(over)
	}()
	exit := profiler.Exit{TimedOut: l.await(ctx, group, cmd.Timeout, over)}
	exit.Code = c.ProcessState.ExitCode()
	if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit.Signal = ws.Signal().String()
	}
	var err error
	exit.Stray, err = l.clear(group)
	return exit, err
}

// await waits for the command. At the timeout or the end of ctx, its group gets SIGTERM, then SIGKILL. It
// reports whether the timeout passed.
func (l Local) await(ctx context.Context, group int, timeout time.Duration, over <-chan struct{}) (timedOut bool) {
	var after <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		after = t.C
	}
	select {
	case <-over:
		return false
	case <-after:
		timedOut = true
	case <-ctx.Done():
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	_ = syscall.Kill(-group, syscall.SIGCONT)
	select {
	case <-over:
		return timedOut
	case <-l.Hurry:
	case <-time.After(l.grace()):
	}
	_ = syscall.Kill(-group, syscall.SIGKILL)
	<-over
	return timedOut
}

// clear kills the remaining processes of the group. It returns 1 if there were any.
func (l Local) clear(group int) (stray int, err error) {
	begin := time.Now()
	for ; syscall.Kill(-group, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) < l.grace() {
			continue
		}
		stray = 1
		_ = syscall.Kill(-group, syscall.SIGKILL)
		if time.Since(begin) > l.patience() {
			return stray, fmt.Errorf("executor: process group %d survives SIGKILL", group)
		}
	}
	return stray, nil
}
