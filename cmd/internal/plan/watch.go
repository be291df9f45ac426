package plan

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/importer"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/tempdir"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/hook"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/trainlog"
)

// WatchCommand is pacer watch.
func WatchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "run a training command and measure it, unchanged",
		ArgsUsage: "-- COMMAND [ARGUMENT...]",
		Description: `Runs the command with its input, output, signals and exit code, times the optimizer steps of
PyTorch, and reads the logs that pacer import log reads. At the end it prints the measured
step, memory and MFU beside the predicted ones to standard error, and stores one row. What
the command trains is read from its launch command or the files that it names, as pacer
check reads them, or comes by --plan and flags, or by --config:

   pacer watch -m llama3-8b --plan dp=1,mb=2,ga=4 -- python train.py
   pacer watch --accelerator h100 -- bash pretrain_gpt.sh
   pacer watch --config run.yaml --every 60s -- ./train.sh
   srun pacer watch -m llama3-8b --plan dp=16 --shared DIR -- ./train.sh

On several nodes each runs it with the same --shared; the node of rank 0 prints and stores.
A run that contradicts the configuration is not stored. An error of watch itself is one line
on standard error, and the command runs on. Output to a terminal is not read.

Exit codes: that of the command, 128 and the number of the signal that ended it, or 127 if
it did not start.` + Groups.Help("network"),
		Flags: append(requestFlags(),
			&cli.StringFlag{Name: "plan", Usage: "compare with `PLAN`, such as dp=2,tp=4,mb=2,ga=8,zero=1", DefaultText: "$" + child.PlanVariable + " of pacer run, else that of the launch command", Category: command.CategoryModel},
			command.DevicesFlag("those of the plan or the launch command"),
			&cli.StringFlag{Name: "shape", Usage: "place --plan on nodes of `N+N...` devices, or 2x8", DefaultText: "as few nodes as possible", Category: command.CategoryHardware},
			&cli.StringFlag{Name: "config", Usage: "read model, accelerator and plan from the YAML `FILE` of pacer import log", DefaultText: "none", Category: command.CategoryModel},
			&cli.StringFlag{Name: "shared", Usage: "on several nodes: collect the steps of all ranks in `DIR`, which all nodes see; for this run alone, unless it is a job of Slurm", DefaultText: "none: one node", Category: command.CategoryHardware},
			datadir.ServerFlag(command.CategoryOutput),
			&cli.IntFlag{Name: "warmup-steps", Value: importer.DefaultWarmUp, Usage: "leave out the first `N` steps", Category: command.CategoryOutput},
			&cli.DurationFlag{Name: "every", Usage: "also print the step time every `TIME` during the run, such as 60s", DefaultText: "at the end only", Category: command.CategoryOutput},
		),
		Action: runWatch,
	}
}

// watch is one run that is measured.
type watch struct {
	c       *cli.Context
	ctx     context.Context // goes on when the run is interrupted
	run     importer.Run
	subject *watchSubject // nil = the run is not measured
	hook    string        // directory of hook.Out
	node    string        // of this process among those of --shared, "" without
	began   time.Time
}

func runWatch(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return fail.Usagef("watch: no command, want pacer watch -- COMMAND")
	}
	if err := command.InRange(c, "warmup-steps", c.Int("warmup-steps"), 1<<30); err != nil {
		return err
	}
	if c.Duration("every") < 0 {
		return fail.Usagef("watch: --every %s is negative", c.Duration("every"))
	}
	command.ShowProgress(c, nil) // the command has the terminal
	w := &watch{c: c, ctx: context.WithoutCancel(c.Context)}
	cmd := exec.Command(args[0], args[1:]...)
	out, end := w.begin(cmd)
	defer end()
	stop := w.repeat(c.Duration("every"))
	stopped, err := child.Run(cmd)
	stop()
	w.finish(out.wait(), err, stopped)
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		if code := child.Code(err); code != 0 {
			return fail.WithCode(code, fmt.Errorf("watch: the command failed: %s", err.Error())) // not wrapped: its type has an exit code of its own
		}
		return nil
	}
	return fail.WithCode(child.Code(err), fmt.Errorf("watch: %w", err))
}

// begin prepares cmd to be measured. It returns its output that is read, and what is to be called last.
func (w *watch) begin(cmd *exec.Cmd) (out outputs, end func()) {
	end = func() {}
	subject, err := w.resolve(cmd.Args)
	var dir *tempdir.Dir
	if err == nil {
		dir, err = tempdir.New("", "pacer-watch-")
	}
	if err != nil {
		w.complain(fmt.Errorf("the run is not measured: %w", err))
		return nil, end
	}
	steps, vars := hook.Out(dir.Path("")), []string(nil)
	if shared := w.c.String("shared"); shared != "" {
		w.node = rand.Text()
		steps, err = runDir(shared)
	}
	if err == nil {
		vars, err = hook.Write(dir.Path(""), steps, os.Getenv("PYTHONPATH"))
	}
	if err == nil {
		out, err = readOutput(cmd, w.run.Format)
	}
	if err != nil {
		dir.Remove()
		w.complain(fmt.Errorf("the run is not measured: %w", err))
		return out, end
	}
	w.subject, w.hook, w.began = subject, steps, time.Now()
	cmd.Env = append(append(os.Environ(), vars...), hook.NodeVar+"="+w.node)
	return out, dir.Remove
}

// complain prints an error of watch itself.
func (w *watch) complain(err error) {
	text := strings.Join(strings.Fields(command.Message(err)), " ")
	fmt.Fprintf(w.c.App.ErrWriter, "pacer watch: %s\n", strings.ReplaceAll(text, "watch: ", ""))
}

// pollShare is the least time between two looks at a running command in terms of the time of a look.
const pollShare = 200

// repeat prints the step time again and again; 0 = never.
func (w *watch) repeat(every time.Duration) (stop func()) {
	if every <= 0 || w.subject == nil {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for wait := every; ; {
			select {
			case <-ended:
				return
			case <-time.After(wait):
			}
			began := time.Now()
			if !w.hasResult(0) {
				continue
			}
			m := runner.Observation{Config: w.subject.config, WarmUp: w.run.WarmUp, Hook: w.hook}.Measurement()
			if m.Outcome == spec.OK {
				fmt.Fprintln(w.c.App.ErrWriter, "pacer watch:", w.subject.line(&m))
			}
			wait = max(every, time.Since(began)*pollShare)
		}
	}()
	return func() { close(ended); <-done }
}

// finish measures the run that ended, prints the report and stores the row.
func (w *watch) finish(log *trainlog.Log, err error, stopped bool) {
	defer func() {
		if p := recover(); p != nil { // the exit code is that of the command
			w.complain(fmt.Errorf("internal error: %v", p))
		}
	}()
	if w.subject == nil {
		return
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return // it did not start
	}
	if !w.hasResult(reportWait) {
		return
	}
	o := runner.Observation{Config: w.subject.config, WarmUp: w.run.WarmUp, Hook: w.hook, Log: log}
	if exit != nil && !stopped {
		if o.Exit.Code = exit.ExitCode(); o.Exit.Code < 0 {
			o.Exit.Signal = exit.Sys().(syscall.WaitStatus).Signal().String()
		}
	}
	m := o.Measurement()
	host, _ := os.Hostname()
	m.Source, m.Origin = w.run.Source, host+" "+w.began.UTC().Format(time.RFC3339Nano)
	m.Env[profiler.EnvWall] = fmt.Sprintf("%.3f", time.Since(w.began).Seconds())
	r := w.subject.report(&m)
	switch {
	case m.Outcome != spec.OK && m.Outcome != spec.OOM:
		r.NotStored = cmp.Or(w.onlyRanks(), m.Reason)
	case m.DoubtReason() != "":
		r.NotStored = m.DoubtReason()
	default:
		if r.Stored, err = w.store(m); err != nil {
			r.NotStored = command.Message(err)
		}
	}
	if err := printWatch(w.c, r); err != nil {
		w.complain(err)
	}
}

// isScript reports whether a word of a command is a file that may say what is trained.
func isScript(word string) bool {
	kinds := []string{".sh", ".toml", ".json", ".yaml", ".yml"}
	st, err := os.Stat(word)
	return err == nil && st.Mode().IsRegular() && st.Size() <= maxRecipe && slices.Contains(kinds, strings.ToLower(filepath.Ext(word)))
}
