//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestUserSignals: a command gets the signals that ask for a checkpoint, which do not count as a stop.
func TestUserSignals(t *testing.T) {
	for _, c := range []struct {
		signal  syscall.Signal
		stopped bool
		step    string // of Slurm, which sends SIGUSR1 to both
	}{{syscall.SIGUSR1, false, ""}, {syscall.SIGUSR2, false, ""}, {syscall.SIGQUIT, true, ""}, {syscall.SIGTERM, true, ""}, {syscall.SIGTERM, true, "0"}} {
		t.Setenv("SLURM_STEP_ID", c.step)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", `code=5; [ "$SLURM_STEP_ID" = "" ] || code=6; trap "exit 5" USR1 USR2 QUIT; trap "exit $code" TERM; echo ready; while :; do sleep 0.02; done`)
		cmd.Stdout = w
		var stopped bool
		ended := make(chan error, 1)
		go func() { stopped, err = Run(cmd); ended <- err }()
		if _, err := r.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		want := 5
		if c.step != "" {
			want = 6
			_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		}
		_ = syscall.Kill(os.Getpid(), c.signal)
		select {
		case err := <-ended:
			if Code(err) != want || stopped != c.stopped {
				t.Errorf("%s: %v, stopped %v", c.signal, err, stopped)
			}
		case <-time.After(spectest.Patience(10 * time.Second)):
			_ = cmd.Process.Kill()
			t.Errorf("%s does not reach the command: %v", c.signal, <-ended)
		}
		r.Close()
		w.Close()
	}
}
