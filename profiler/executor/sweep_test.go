//go:build linux

package executor

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// TestSweep: a daemon is ended by Sweep after its pacer, guard and supervisor were killed; a running command is not.
func TestSweep(t *testing.T) {
	for range 5 { // a Sweep of another process on this machine may come first
		if sweeps(t) {
			return
		}
	}
	t.Fatal("the daemon ended by itself each time: there is nothing to sweep")
}

// sweeps checks Sweep on a command that daemonized, after its supervisors were killed. It returns false if none is left.
func sweeps(t *testing.T) bool {
	parent, word, pid := startParent(t, Local{}, `setsid sh -c 'echo $PPID >"$1"; while :; do sleep 0.1; done' "$0" "$1" & wait`)
	shell, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	command, _ := procfs.Read("/", shell)
	supervisor, _ := procfs.Read("/", command.Parent)
	if supervisor.Parent == 0 || !isSupervisor(supervisor.PID) || !isSupervisor(supervisor.Parent) {
		t.Fatalf("the command %+v has the parent %+v, want a supervisor with a guard", command, supervisor)
	}
	stopped := make(chan profiler.Exit)
	go func() {
		exit, _ := Local{}.Run(context.Background(), profiler.Command{Args: []string{"sh", "-c", "sleep 2"}})
		stopped <- exit
	}()
	for _, pid := range []int{supervisor.Parent, supervisor.PID, parent.Process.Pid} {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = parent.Wait()
	within(t, spectest.Patience(20*time.Second), "the kernel to end the command", func() bool {
		p, ok := procfs.Read("/", shell)
		return !ok || !p.Living()
	})
	if len(withWord(word)) == 0 {
		<-stopped
		return false
	}
	killed, err := Sweep(context.Background())
	if err != nil || len(killed) == 0 || !strings.HasSuffix(strings.Join(killed, " "), ")") {
		t.Errorf("killed %q, %v", killed, err)
	}
	within(t, spectest.Patience(5*time.Second), "the daemon to end", func() bool { return len(withWord(word)) == 0 })
	if exit := <-stopped; exit.Code != 0 || exit.Signal != "" {
		t.Errorf("a running command ended with %+v", exit)
	}
	return true
}

// TestSweepWaits: Sweep returns once a supervisor has ended its processes after its parent was killed.
func TestSweepWaits(t *testing.T) {
	parent, word, _ := startParent(t, Local{Grace: time.Second}, `trap "" TERM; echo up >"$1"; while :; do sleep 0.1; done`)
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if _, err := Sweep(context.Background()); err != nil {
		t.Error(err)
	}
	if left := withWord(word); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
}
