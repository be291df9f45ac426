package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// Local runs commands on this machine. Its zero value works; it is safe for
// concurrent use.
//
// When Run returns, the command and everything it started are dead. On Linux
// that includes processes that moved to another session, dropped their
// environment or were orphaned, and it holds even if this process is killed:
// see local_linux.go. Elsewhere it is those of the command's process group.
type Local struct {
	// Grace is how long processes may take to end before they get SIGKILL: after
	// SIGTERM at the timeout, and those the command leaves behind after its own
	// end. 0 = 2 s.
	Grace time.Duration
	// Patience is how long Run waits for processes that SIGKILL does not end,
	// such as those stuck in a driver, before it returns an error naming them,
	// 0 = 1 minute.
	Patience time.Duration
	// Hurry, once closed, cuts Grace short for processes that are being ended
	// and Patience to a second. It ends no command that nothing else ends. nil =
	// never.
	Hurry <-chan struct{}
}

var _ profiler.Executor = Local{}

// hurriedPatience stands in for Local.Patience after Local.Hurry.
const hurriedPatience = time.Second

// tailBytes is how much of the end of the output is kept, profiler.Exit.Tail.
const tailBytes = 8 << 10

func (l Local) grace() time.Duration {
	if l.Grace > 0 {
		return l.Grace
	}
	return 2 * time.Second
}

func (l Local) patience() time.Duration {
	if l.Patience > 0 {
		return l.Patience
	}
	return time.Minute
}

// Run runs cmd as profiler.Executor says. When ctx ends first everything is
// killed, as at the timeout; the Exit then says how the command ended and the
// error is nil: callers look at ctx. A negative timeout is an error.
func (l Local) Run(ctx context.Context, cmd profiler.Command) (profiler.Exit, error) {
	if err := ctx.Err(); err != nil {
		return profiler.Exit{}, err
	}
	if cmd.Timeout < 0 {
		return profiler.Exit{}, fmt.Errorf("executor: timeout %s is negative", cmd.Timeout)
	}
	program, err := lookUp(cmd)
	if err != nil {
		return profiler.Exit{}, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return profiler.Exit{}, fmt.Errorf("executor: %w", err)
	}
	defer out.Close()
	tail := keepTail(out, tailBytes)
	start := time.Now()
	exit, err := l.run(ctx, program, cmd, w) // closes w once the command holds it
	exit.Wall = time.Since(start)
	exit.Tail = tail.stop(out)
	return exit, err
}

// lookUp finds the program of cmd.
func lookUp(cmd profiler.Command) (string, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return "", errors.New("executor: command without a program")
	}
	program, err := exec.LookPath(cmd.Args[0])
	if err != nil {
		return "", fmt.Errorf("executor: cannot run %q: %w: %w", cmd.Args[0], err, profiler.ErrSetup)
	}
	if program, err = filepath.Abs(program); err != nil { // cmd.Dir is not for the program
		return "", fmt.Errorf("executor: %w", err)
	}
	if cmd.Dir != "" {
		if info, err := os.Stat(cmd.Dir); err != nil || !info.IsDir() {
			return "", fmt.Errorf("executor: %s is no directory to run %s in", cmd.Dir, cmd.Args[0])
		}
	}
	return program, nil
}
