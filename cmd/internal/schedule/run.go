package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
)

// preempted is the exit code of a job that was stopped (EX_TEMPFAIL): it is to run again.
const preempted = 75

// RunCommand is pacer run.
func RunCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run the command of a training job with the plan that pacer schedule chose",
		ArgsUsage: "-- COMMAND [ARGUMENT...]",
		Description: `In the script of a Slurm job: reads the plan of this start from Slurm, or from
$` + child.PlanVariable + ` if pacer advise set it, and starts a task for each device with srun.
Elsewhere: reads it from $` + child.PlanVariable + `, and starts the command once.

   sbatch --hold --requeue --gres=gpu:2 \
       --comment="pacer:model=GPT2-small,batch=64,steps=20000" job.sh
   # in job.sh: pacer run -- python train.py

The command finds the plan in PACER_PLAN, its parts in PACER_DP, PACER_TP, PACER_PP,
PACER_CP, PACER_MICRO_BATCH, PACER_ACCUM_STEPS, PACER_ZERO and PACER_RECOMPUTE, and
RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torch reads them. On
SIGTERM it should write a checkpoint and end. Steps completed go into the file
PACER_PROGRESS as {"step": N}, if --steps-file or the job's comment names one.

Exit codes: that of the command, or ` + strconv.Itoa(preempted) + ` if it was stopped by SIGTERM.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tasks", Value: "device", Usage: "under Slurm start the command once per `UNIT`: device or node (for torchrun)"},
			&cli.StringFlag{Name: "steps-file", Usage: "let the command write its steps into `FILE`", DefaultText: "progress=FILE of the job's comment"},
			&cli.BoolFlag{Name: "as-task", Hidden: true, Usage: "run the command as a task of srun"},
		},
		Action: runJob,
	}
}

func runJob(c *cli.Context) error {
	command := c.Args().Slice()
	if len(command) == 0 {
		return fail.Usagef("run: no command, want pacer run -- COMMAND")
	}
	if c.Bool("as-task") {
		return execTask(command)
	}
	if unit := c.String("tasks"); unit != "device" && unit != "node" {
		return fail.Usagef("run: --tasks %q, want device or node", unit)
	}
	id := os.Getenv("SLURM_JOB_ID")
	if id == "" {
		plan, err := parsePlan(os.Getenv(child.PlanVariable))
		if err != nil {
			return fmt.Errorf("run: $%s: %w", child.PlanVariable, err)
		}
		return runChild(exec.Command(command[0], command[1:]...), planEnv(plan, c.String("steps-file")))
	}
	r, steps, err := slurm.ReadRecord(c.Context, id)
	text, nodes := r.RunPlan, len(r.RunSlots)
	if advised := os.Getenv(child.PlanVariable); errors.Is(err, slurm.ErrNoRecord) && advised != "" {
		text, nodes, err = advised, leadingNumber(os.Getenv("SLURM_JOB_NUM_NODES")), nil
	}
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	steps = cmp.Or(c.String("steps-file"), steps)
	plan, err := parsePlan(text)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	args, err := srunArgs(c, max(nodes, 1), plan.Devices(), command)
	if err != nil {
		return err
	}
	env := planEnv(plan, steps)
	if steps != "" {
		restarts, _ := strconv.Atoi(os.Getenv("SLURM_RESTART_COUNT"))
		ended := slurm.EndedFile(steps, restarts)
		env = append(env, endedVariable+"="+ended)
		defer os.Remove(ended)
	}
	return runChild(exec.Command("srun", args...), env)
}

func parsePlan(text string) (spec.Plan, error) {
	p, err := spec.ParsePlan(text)
	return p.Normal(), err
}

// srunArgs returns the arguments of srun for a start with a task for each device.
func srunArgs(c *cli.Context, nodes, tasks int, command []string) ([]string, error) {
	self, err := exec.LookPath(os.Args[0])
	if err == nil {
		self, err = filepath.Abs(self)
	}
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if c.String("tasks") == "node" {
		tasks = nodes
	}
	args := []string{"--kill-on-bad-exit=1", fmt.Sprintf("--nodes=%d", nodes), fmt.Sprintf("--ntasks=%d", tasks), fmt.Sprintf("--ntasks-per-node=%d", tasks/nodes)}
	if cpus := leadingNumber(os.Getenv("SLURM_JOB_CPUS_PER_NODE")) / (tasks / nodes); cpus > 0 {
		args = append(args, fmt.Sprintf("--cpus-per-task=%d", cpus))
	}
	return append(append(args, self, "run", "--as-task", "--"), command...), nil
}

// leadingNumber returns the number that a text such as "4(x2)" begins with, 0 if none.
func leadingNumber(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	n, _ := strconv.Atoi(text[:end])
	return n
}

// planEnv returns the environment of the command of a job.
func planEnv(p spec.Plan, stepsFile string) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name { // those of the submission, which srun would take for the present size
		case "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_TRES_PER_TASK":
		default:
			env = append(env, v)
		}
	}
	set := func(name string, value any) { env = append(env, fmt.Sprintf("%s=%v", name, value)) }
	set(child.PlanVariable, p)
	set("PACER_DP", p.DP)
	set("PACER_TP", p.TP)
	set("PACER_PP", p.PP)
	set("PACER_CP", p.CP)
	set("PACER_MICRO_BATCH", p.MicroBatch)
	set("PACER_ACCUM_STEPS", p.AccumSteps)
	set("PACER_ZERO", int(p.ZeRO))
	set("PACER_RECOMPUTE", p.Recompute)
	if stepsFile != "" {
		set("PACER_PROGRESS", stepsFile)
	}
	return env
}

// runChild runs a command until it ends, passes signals on, and returns its exit code as an error: preempted if it was
// stopped.
func runChild(cmd *exec.Cmd, env []string) error {
	cmd.Env = env
	stopped, err := child.Run(cmd)
	return childError(err, stopped)
}

func childError(err error, stopped bool) error {
	var exit *exec.ExitError
	switch {
	case stopped:
		return fail.WithCode(preempted, errors.New("run: stopped, and to run again"))
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return fail.WithCode(exit.ExitCode(), fmt.Errorf("run: the command failed with exit code %d", exit.ExitCode()))
	}
	return fmt.Errorf("run: %w", err)
}

// execTask becomes the command, as a task of srun, with the variables that torch reads.
func execTask(command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	job, _ := strconv.Atoi(os.Getenv("SLURM_JOB_ID"))
	restarts, _ := strconv.Atoi(os.Getenv("SLURM_RESTART_COUNT"))
	env := append(os.Environ(), "RANK="+os.Getenv("SLURM_PROCID"), "LOCAL_RANK="+os.Getenv("SLURM_LOCALID"), "WORLD_SIZE="+os.Getenv("SLURM_NTASKS"),
		"MASTER_ADDR="+os.Getenv("SLURM_LAUNCH_NODE_IPADDR"), fmt.Sprintf("MASTER_PORT=%d", 20000+(17*job+restarts)%10000))
	if ended := os.Getenv(endedVariable); ended != "" {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
		return runRank(cmd, ended)
	}
	return fmt.Errorf("run: %s: %w", path, syscall.Exec(path, command, env))
}

// endedVariable names the slurm.EndedFile of a run.
const endedVariable = "PACER_ENDED_FILE"

// runRank runs the command of a rank until it ends, and writes the rank into a file if it ended well. Slurm sends signals to
// all processes of a task, so they are not passed on.
func runRank(cmd *exec.Cmd, ended string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, jobSignals...)
	if err := cmd.Run(); err != nil {
		return fail.WithCode(child.Code(err), fmt.Errorf("run: rank %s: %w", os.Getenv("SLURM_PROCID"), err))
	}
	f, err := os.OpenFile(ended, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getenv("SLURM_PROCID"))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run: warning:", err)
	}
	return nil
}
