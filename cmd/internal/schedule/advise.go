package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// call is a command that submits jobs.
type call struct {
	args  []string
	stdin []byte // nil = that of pacer
	env   []string
}

// submission is what a call submits.
type submission struct {
	jobs []submitted
	// submit returns the call, with what was set.
	submit func() *call
}

// submitted is a job of a submission.
type submitted struct {
	name    string
	job     spec.Job // the request; without a model if only the launch command names one
	managed bool     // says what it trains as for pacer schedule
	by      string   // what says so
	nodes   int      // 0 = as few as possible
	// launch is the script or command that starts training.
	launch []byte
	err    error // why the job cannot be used
	// set changes devices and plan.
	set func(shape spec.Shape, plan spec.Plan) error
}

// submitters are the commands that can be read. needsStdin reports whether the submission comes from standard input.
var submitters = map[string]struct {
	needsStdin func(args []string) bool
	read       func(c *cli.Context, submit *call) (*submission, error)
}{"sbatch": {sbatchStdin, readSbatch}, "kubectl": {kubectlStdin, readKubectl}}

// AdviseCommand is pacer advise.
func AdviseCommand() *cli.Command {
	return &cli.Command{
		Name:      "advise",
		Usage:     "say what a job is worth on other numbers of devices, and submit it",
		ArgsUsage: "-- sbatch|kubectl ARGUMENT...",
		Description: `Reads what sbatch or kubectl apply is about to submit: model, batch and plan as pacer
schedule reads them, or else from the launch command as pacer check does. On standard
error it says how fast the job will run and whether it fits, which size and plan are the
best, and the least devices with nearly the highest speed per device. Then it becomes
the command, unchanged unless --set is given.

   pacer advise -a h100 -- sbatch --gres=gpu:8 train.sh
   pacer advise --set --max-devices 32 -- kubectl apply -f job.yaml

With kubectl the jobs are Jobs, JobSets, PyTorchJobs and TrainJobs of all files.

What is not understood or takes longer than --timeout gets a line on standard error, and
the unchanged command runs. The exit code is that of the command.
docs/guides/slurm.md and kubernetes.md have examples. For all users of a Slurm:

   pacer advise --spool /var/spool/pacer --lua >/etc/slurm/job_submit.lua
   pacer advise --spool /var/spool/pacer`,
		Flags: slices.Concat([]cli.Flag{
			&cli.BoolFlag{Name: "set", Usage: "submit with the best size and plan", Category: "Run"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print advice and the command, and run nothing", Category: "Run"},
			&cli.DurationFlag{Name: "timeout", Value: time.Second, Usage: "run the unchanged command after `TIME` without advice", Category: "Run"},
			&cli.StringFlag{Name: "accelerator", Aliases: []string{"a"}, Usage: "the devices are of `TYPE`, see pacer ls accelerators", DefaultText: "what the job requests", Category: "Cluster"},
			gresFlag(),
			&cli.IntFlag{Name: "per-node", Usage: "nodes have `N` devices", DefaultText: "those of a job on several nodes, else of the accelerator's usual node", Category: "Cluster"},
			&cli.IntFlag{Name: "max-devices", Usage: "consider at most `N` devices", DefaultText: "twice those requested; with --set those requested", Category: "Cluster"},
			&cli.StringFlag{Name: "spool", Usage: "answer the submissions that job_submit.lua writes into `DIR`", DefaultText: "none", Category: "Spool"},
			&cli.BoolFlag{Name: "lua", Usage: "print a job_submit.lua of the directory of --spool", Category: "Spool"},
			&cli.BoolFlag{Name: "once", Usage: "answer the submissions that are there, then end", Category: "Spool"},
		}, estimateFlags("Prediction")),
		Action: runAdvise,
	}
}

func runAdvise(c *cli.Context) error {
	args := c.Args().Slice()
	for _, flag := range []string{"per-node", "max-devices"} {
		if err := errors.Join(command.NotNegative(c, flag), command.NotZero(c, flag)); err != nil {
			return err
		}
	}
	switch spools := c.IsSet("spool"); {
	case spools && (len(args) > 0 || c.Bool("set") || c.Bool("dry-run")):
		return fail.Usagef("advise: --spool is without a command, --set and --dry-run")
	case spools:
		return runSpool(c)
	case c.Bool("lua") || c.Bool("once"):
		return fail.Usagef("advise: --lua and --once need --spool")
	case len(args) == 0:
		return fail.Usagef("advise: no command, want pacer advise -- sbatch or kubectl with its arguments")
	}
	original := &call{args: args}
	end := time.Now().Add(c.Duration("timeout"))
	submitter, ok := submitters[filepath.Base(args[0])]
	if ok && submitter.needsStdin(args[1:]) {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return fmt.Errorf("advise: standard input: %w", err)
		}
		original.stdin, end = text, time.Now().Add(c.Duration("timeout"))
	}
	out := answered{submit: original, err: fmt.Errorf("advise: %.80q is not understood, want sbatch or kubectl", args[0])}
	if ok {
		out = answerBy(c, end, original, func(ctx context.Context) answered {
			s, err := submitter.read(c, original)
			if err != nil {
				return answered{err: err}
			}
			return advise(ctx, c, s)
		})
	}
	printed := printAdvice(c, &out)
	if c.Bool("dry-run") {
		return errors.Join(out.err, printed)
	}
	if err := c.Context.Err(); err != nil { // interrupted
		return fmt.Errorf("advise: %w", err)
	}
	return out.submit.exec()
}

// answered is the advice on a call, and the call to make.
type answered struct {
	submit *call
	jobs   []advice
	err    error // why there is no advice
}

// answerBy returns the answer of do, or the original call if there is none in time or do panics.
func answerBy(c *cli.Context, end time.Time, original *call, do func(context.Context) answered) answered {
	ctx, cancel := context.WithDeadline(c.Context, end)
	defer cancel()
	answers := make(chan answered, 1)
	go func() {
		var out answered
		defer func() {
			if p := recover(); p != nil {
				out = answered{err: fmt.Errorf("advise: internal error: %v", p)}
			}
			answers <- out
		}()
		out = do(ctx)
	}()
	var out answered
	select {
	case out = <-answers:
	case <-ctx.Done():
	}
	if ctx.Err() != nil && out.submit == nil {
		out = answered{err: fmt.Errorf("advise: no advice within %v", c.Duration("timeout"))}
	}
	if out.submit == nil {
		out.submit = original
	}
	return out
}

// exec becomes the command.
func (s *call) exec() error {
	path, err := exec.LookPath(s.args[0])
	if err == nil && s.stdin != nil {
		err = s.replaceStdin()
	}
	if err != nil {
		return fail.WithCode(127, fmt.Errorf("advise: %w", err))
	}
	return fmt.Errorf("advise: %s: %w", path, syscall.Exec(path, s.args, append(os.Environ(), s.env...)))
}

// replaceStdin makes stdin the standard input of this process.
func (s *call) replaceStdin() error {
	f, err := os.CreateTemp("", "pacer-advise")
	if err != nil {
		return err
	}
	_, err = f.Write(s.stdin)
	if err = errors.Join(err, f.Close(), syscall.Close(0)); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	fd, err := syscall.Open(f.Name(), syscall.O_RDONLY, 0) // the lowest number that is free
	if err == nil && fd != 0 {
		err = errors.New("standard input cannot be replaced")
	}
	return errors.Join(err, os.Remove(f.Name()))
}
