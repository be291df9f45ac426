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

// Local runs commands on this machine. Its zero value works; it is safe for concurrent use.
//
// When Run returns, the command and all its descendants have ended. On Linux this includes processes that
// changed their session or environment or were orphaned, and it holds even if this process is killed: see
// local_linux.go. On other systems it covers the process group of the command.
type Local struct {
	// Grace is the time between SIGTERM and SIGKILL at the timeout, and the time that processes may outlive the
	// command. 0 = 2 s.
	Grace time.Duration
	// Patience is the time that Run waits for processes that survive SIGKILL, such as those stuck in a
	// driver, before it returns an error that names them. 0 = 1 minute.
	Patience time.Duration
	// Hurry, once closed, skips the rest of Grace and reduces Patience to a second. It does not end a
	// running command. nil = never.
	Hurry <-chan struct{}
}

var _ profiler.Executor = Local{}

// hurriedPatience replaces Local.Patience after Local.Hurry.
const hurriedPatience = time.Second

// tailBytes is the length of profiler.Exit.Tail.
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

// Run implements profiler.Executor. If ctx ends first, all processes are ended as at the timeout; the Exit then
// says how the command ended and the error is nil, so callers must check ctx. A negative timeout is an error.
func (l Local) Run(ctx context.Context, cmd profiler.Command) (profiler.Exit, error) {
	if err := ctx.Err(); err != nil {
		return profiler.Exit{}, err
	}
	if cmd.Timeout < 0 {
		return profiler.Exit{}, fmt.Errorf("executor: timeout %s is negative", cmd.Timeout)
	}
	program, err := lookPath(cmd)
	if err != nil {
		return profiler.Exit{}, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return profiler.Exit{}, fmt.Errorf("executor: %w", err)
	}
	defer out.Close()
	tail := keepTail(out, tailBytes, cmd.Output)
	start := time.Now()
	exit, err := l.run(ctx, program, cmd, w) // closes w once the command has it
	exit.Wall = time.Since(start)
	exit.Tail = tail.stop(out)
	return exit, err
}

// lookPath finds the program of cmd.
func lookPath(cmd profiler.Command) (string, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return "", errors.New("executor: command without a program")
	}
	program, err := exec.LookPath(cmd.Args[0])
	if err != nil {
		return "", fmt.Errorf("executor: cannot run %q: %w: %w", cmd.Args[0], err, profiler.ErrSetup)
	}
	if program, err = filepath.Abs(program); err != nil { // while relative paths still refer to this directory
		return "", fmt.Errorf("executor: %w", err)
	}
	if cmd.Dir != "" {
		if info, err := os.Stat(cmd.Dir); err != nil || !info.IsDir() {
			return "", fmt.Errorf("executor: %s, to run %s in, is not a directory", cmd.Dir, cmd.Args[0])
		}
	}
	return program, nil
}
