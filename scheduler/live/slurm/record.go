package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/scheduler/live"
)

// adminComment matches a record in the output of scontrol; records have no spaces.
var adminComment = regexp.MustCompile(`(?:^| )AdminComment=(\{\S*\})`)

// progressKey matches the file of key progress in the comment of a job.
var progressKey = regexp.MustCompile(`(?:^| )Comment=pacer:(?:\S*,)?progress=([^\s,]+)`)

// ErrNoRecord is the error of a job that pacer schedule has not decided on.
var ErrNoRecord = errors.New("has no record of pacer")

// ReadRecord returns the record of a job, and the file that it is to report its steps in, ""
// if there is none; for the job's own script. It needs no rights but to see the job.
func ReadRecord(ctx context.Context, id string) (r live.Record, progress string, err error) {
	out, err := showJob(ctx, id)
	if err != nil {
		return r, "", fmt.Errorf("slurm: scontrol show job %s: %w", id, err)
	}
	if found := progressKey.FindSubmatch(out); found != nil {
		progress = progressPath(string(found[1]), id)
	}
	r, err = findRecord(string(out), id)
	return r, progress, err
}

// A job that starts while slurmctld restarts waits for it, since it is lost if its script fails.
var (
	showLimit    = 30 * time.Second // of one attempt
	showPatience = 3 * time.Minute  // until the last attempt
	showPause    = 2 * time.Second  // between two
)

// showJob returns what scontrol shows of a job. It tries again while there is no answer.
func showJob(ctx context.Context, id string) (out []byte, err error) {
	for end := time.Now().Add(showPatience); ; {
		limited, cancel := context.WithTimeout(ctx, showLimit)
		cmd := exec.CommandContext(limited, "scontrol", "-o", "show", "job", id)
		cmd.WaitDelay = time.Second
		out, err = cmd.Output()
		cancel()
		var exit *exec.ExitError
		switch {
		case err == nil, errors.Is(err, exec.ErrNotFound), time.Now().After(end):
			return out, err
		case errors.As(err, &exit) && strings.Contains(string(exit.Stderr), "Invalid job id"):
			return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(showPause):
		}
	}
}

// progressPath replaces %j by the ID of the job, as sbatch does in names of files.
func progressPath(path, id string) string { return strings.ReplaceAll(path, "%j", id) }

// EndedFile is the file beside that of key progress in which pacer run writes the ranks of a run that have ended well.
func EndedFile(progress string, restarts int) string {
	return fmt.Sprintf("%s.ended-%d", progress, restarts)
}

func findRecord(shown, id string) (live.Record, error) {
	found := adminComment.FindStringSubmatch(shown)
	if found == nil {
		return live.Record{}, fmt.Errorf("slurm: job %s %w: it was not started by pacer schedule", id, ErrNoRecord)
	}
	r, err := live.ParseRecord(found[1])
	if err == nil && r.RunPlan == "" {
		err = fmt.Errorf("slurm: the record of job %s has no plan: it was not started by pacer schedule", id)
	}
	return r, err
}
