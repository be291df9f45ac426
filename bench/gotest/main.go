package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code of go test.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	each, verbose := slices.Contains(args, "-skips"), slices.Contains(args, "-v")
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "-skips" })
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(stderr, "gotest:", err)
		return 1
	}
	r := newReport(stdout, verbose)
	readErr := r.read(events)
	_, _ = io.Copy(io.Discard, events) // so that go test can end
	err = cmd.Wait()
	r.printSkips(each)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	case err != nil || readErr != nil:
		fmt.Fprintln(stderr, "gotest:", errors.Join(err, readErr))
		return 1
	}
	return 0
}
