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
	}{{syscall.SIGUSR1, false}, {syscall.SIGUSR2, false}, {syscall.SIGQUIT, true}, {syscall.SIGTERM, true}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", `trap "exit 5" USR1 USR2 QUIT TERM; echo ready; while :; do sleep 0.02; done`)
		cmd.Stdout = w
		var stopped bool
		ended := make(chan error, 1)
		go func() { stopped, err = Run(cmd); ended <- err }()
		if _, err := r.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), c.signal)
		select {
		case err := <-ended:
			if Code(err) != 5 || stopped != c.stopped {
				t.Errorf("%s: %v, stopped %v", c.signal, err, stopped)
			}
		case <-time.After(spectest.Patience(10 * time.Second)):
			t.Errorf("%s does not reach the command", c.signal)
			_ = cmd.Process.Kill()
			<-ended
		}
		r.Close()
		w.Close()
	}
}
