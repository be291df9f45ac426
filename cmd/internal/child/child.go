package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"
	"mvdan.cc/sh/v3/syntax"
)

// PlanVariable has the plan that a command is to run with, in the form of spec.ParsePlan.
const PlanVariable = "PACER_PLAN"

// Run runs cmd until it ends. It has the standard streams of this process unless it has others. It gets SIGUSR1 and
// SIGUSR2 of this process, and SIGTERM, SIGINT, SIGQUIT and SIGHUP; after one of these stopped is true. A terminal
// sends SIGINT and SIGQUIT to both, so they are not sent again.
func Run(cmd *exec.Cmd) (stopped bool, err error) {
	cmd.Stdin = os.Stdin
	if cmd.Stdout == nil {
		cmd.Stdout = os.Stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	caught := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	if os.Getenv("SLURM_STEP_ID") == "" { // srun sends them to all processes of a task
		caught = append(caught, userSignals...)
	}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		caught = append(caught, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, caught...)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	terminal := term.IsTerminal(int(os.Stdin.Fd()))
	for {
		select {
		case s := <-signals:
			stopped = stopped || !slices.Contains(userSignals, s)
			if s != syscall.SIGINT && s != syscall.SIGQUIT || !terminal {
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			return stopped, err
		}
	}
}

// plainFlag matches flags that need no quotes: syntax.Quote quotes any word with =, which might assign a variable.
var plainFlag = regexp.MustCompile(`^-[\w./:=,+@%-]+$`)

// Quote writes a command for a shell. The error names a word that no shell can have.
func Quote(args []string) (string, error) {
	words := slices.Clone(args)
	for i, a := range args {
		if plainFlag.MatchString(a) {
			continue
		}
		var err error
		if words[i], err = syntax.Quote(a, syntax.LangBash); err != nil {
			return "", fmt.Errorf("word %q: %w", a, err)
		}
	}
	return strings.Join(words, " "), nil
}

// Code returns the exit code for the error of a command: its own, or as a shell 128 and the number of the signal that
// ended it, or 127 for one that did not start.
func Code(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 127
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return exit.ExitCode()
}
