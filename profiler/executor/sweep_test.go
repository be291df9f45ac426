//go:build linux

package executor

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
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
	word := "evil-" + rand.Text()
	if os.Getenv("SWEEP_TEST_WORD") != "" {
		script := `setsid sh -c 'echo $PPID >"$1"; while :; do sleep 0.1; done' "$0" "$1" & wait`
		_, _ = Local{}.Run(context.Background(), profiler.Command{
			Args: []string{"sh", "-c", script, os.Getenv("SWEEP_TEST_WORD"), os.Getenv("SWEEP_TEST_FILE")}})
		t.Fatal("came back")
	}
	up := filepath.Join(t.TempDir(), "up")
	parent := exec.Command("/proc/self/exe", "-test.run=^TestSweep$")
	parent.Env = append(os.Environ(), "SWEEP_TEST_WORD="+word, "SWEEP_TEST_FILE="+up)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, spectest.Patience(20*time.Second), "start", func() bool { b, _ := os.ReadFile(up); return len(b) > 0 })
	b, err := os.ReadFile(up)
	if err != nil {
		t.Fatal(err)
	}
	shell, err := strconv.Atoi(strings.TrimSpace(string(b)))
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
		t.Fatal("the daemon ended by itself: there is nothing to sweep")
	}
	killed, err := Sweep(context.Background())
	if err != nil || len(killed) == 0 || !strings.HasSuffix(strings.Join(killed, " "), ")") {
		t.Errorf("killed %q, %v", killed, err)
	}
	within(t, spectest.Patience(5*time.Second), "the daemon to end", func() bool { return len(withWord(word)) == 0 })
	if exit := <-stopped; exit.Code != 0 || exit.Signal != "" {
		t.Errorf("a running command ended with %+v", exit)
	}
}

// TestSweepWaits: Sweep returns once a supervisor has ended its processes after its parent was killed.
func TestSweepWaits(t *testing.T) {
	word := "evil-" + rand.Text()
	if os.Getenv("SWEEP_TEST_WAIT") != "" {
		script := `trap "" TERM; echo up >"$1"; while :; do sleep 0.1; done`
		_, _ = Local{Grace: time.Second}.Run(context.Background(), profiler.Command{
			Args: []string{"sh", "-c", script, os.Getenv("SWEEP_TEST_WAIT"), os.Getenv("SWEEP_TEST_FILE")}})
		t.Fatal("came back")
	}
	up := filepath.Join(t.TempDir(), "up")
	parent := exec.Command("/proc/self/exe", "-test.run=^TestSweepWaits$")
	parent.Env = append(os.Environ(), "SWEEP_TEST_WAIT="+word, "SWEEP_TEST_FILE="+up)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, spectest.Patience(20*time.Second), "start", func() bool { _, err := os.Stat(up); return err == nil })
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if _, err := Sweep(context.Background()); err != nil {
		t.Error(err)
	}
	if left := withWord(word); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
}
