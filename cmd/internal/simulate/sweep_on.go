package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/kubejob"
	"github.com/pacer-ml/pacer/profiler/executor"
	studies "github.com/pacer-ml/pacer/scheduler/study"
)

// clusterFlags are those of runs on a cluster.
func clusterFlags() []cli.Flag {
	const category = "Cluster"
	return append(kubejob.Flags(category),
		&cli.StringFlag{Name: "on", Usage: "run as a job array of `CLUSTER`: slurm or kubernetes", DefaultText: "this machine", Category: category},
		&cli.IntFlag{Name: "tasks", Value: 8, Usage: "divide the runs among `N` tasks, each with a node or pod", Category: category},
		&cli.StringFlag{Name: "shard", Usage: "run only part `I/N` of the runs, counted from 0, and print nothing; task/N: the part of this task of an array", Category: category})
}

// clusters are those of --on.
var clusters = map[string]func(c *cli.Context) (executor.Cluster, error){
	"slurm":      func(*cli.Context) (executor.Cluster, error) { return executor.Slurm{}, nil },
	"kubernetes": kubejob.Open,
}

// parseShard reads I/N, or task/N.
func parseShard(text string) (s studies.Shard, err error) {
	index, of, _ := strings.Cut(text, "/")
	if s.Of, err = strconv.Atoi(of); err == nil && index == "task" {
		if s.Index, err = executor.TaskNumber(); err != nil {
			return s, fmt.Errorf("sweep: --shard %s: %w", text, err)
		}
	} else if err == nil {
		s.Index, err = strconv.Atoi(index)
	}
	if err != nil || s.Index < 0 || s.Index >= s.Of {
		return s, fail.Usagef("sweep: --shard %q, want I/N with 0 <= I < N, or task/N", text)
	}
	return s, nil
}

// runShard runs a part of the runs. A run that failed fails where the parts are merged, too.
func (s *sweep) runShard(c *cli.Context) (err error) {
	if c.IsSet("on") {
		return fail.Usagef("sweep: --shard is set on the cluster by --on, not with it")
	}
	if s.shard, err = parseShard(c.String("shard")); err != nil {
		return err
	}
	if err := s.run(c); err != nil {
		return err
	}
	return s.stopped
}

// runOn runs the study as a job of a cluster, or waits for one that does so already.
func (s *sweep) runOn(c *cli.Context) error {
	open, ok := clusters[c.String("on")]
	if !ok {
		return fail.Usagef("sweep: --on %q is no cluster, want slurm or kubernetes", c.String("on"))
	}
	n := min(c.Int("tasks"), len(s.Cells()))
	if n < 1 {
		return fail.Usagef("sweep: --tasks %d, want at least 1", c.Int("tasks"))
	}
	cluster, err := open(c)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	job, err := s.job(c, n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	handle, err := cluster.Submit(c.Context, job)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	fmt.Fprintf(c.App.ErrWriter, "sweep %s: job %s, %d tasks on %s\n", s.Name, job.Key, n, c.String("on"))
	began := time.Now()
	end, err := handle.Wait(c.Context, nil)
	switch {
	case err != nil:
		return fmt.Errorf("sweep: job %s runs on, and the same command waits for it: %w", job.Key, err)
	case end != executor.JobEnd{State: executor.JobEnded, Code: 0}:
		return fmt.Errorf("sweep: a task of job %s %s, exit code %d: see its log, %s.N on Slurm; the same command goes on", job.Key, end.State, end.Code, job.Output)
	}
	fmt.Fprintf(c.App.ErrWriter, "sweep %s: %d tasks ended after %.1f s\n", s.Name, n, time.Since(began).Seconds())
	return nil
}

// job returns the job of n tasks. Its key is that of the study and of the directory: the same command finds it.
func (s *sweep) job(c *cli.Context, n int) (executor.Job, error) {
	self, err := executor.Self()
	if err != nil {
		return executor.Job{}, fmt.Errorf("sweep: %w", err)
	}
	if program := c.String("program"); program != "" {
		self = program
	}
	dir, err := os.Getwd()
	if err != nil {
		return executor.Job{}, fmt.Errorf("sweep: %w", err)
	}
	data, err := datadir.Of(c).Path()
	if err != nil {
		return executor.Job{}, err
	}
	for _, path := range []*string{&s.dir, &data} {
		if *path, err = filepath.Abs(*path); err != nil {
			return executor.Job{}, fmt.Errorf("sweep: %w", err)
		}
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return executor.Job{}, fmt.Errorf("sweep: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(text, "\x00%s\x00%d\x00%d", s.dir, n, command.Seed(c)))
	return executor.Job{
		Key:  "sweep-" + hex.EncodeToString(sum[:6]),
		Args: []string{self, "--data", data, "--seed", fmt.Sprint(command.Seed(c)), "sweep", "--out", s.dir, "--shard", fmt.Sprintf("task/%d", n), s.path},
		Dir:  dir, Output: filepath.Join(s.dir, "log"), Tasks: n,
	}, nil
}
