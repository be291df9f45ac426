package slurm

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/live"
)

// adminComment matches a record in the output of scontrol; records have no spaces.
var adminComment = regexp.MustCompile(`(?:^| )AdminComment=(\{\S*\})`)

// progressKey matches the file of key progress in the comment of a job.
var progressKey = regexp.MustCompile(`(?:^| )Comment=pacer:(?:\S*,)?progress=([^\s,]+)`)

// ReadRecord returns the record of a job, and the file that it is to report its steps in, ""
// if there is none; for the job's own script. It needs no rights but to see the job.
func ReadRecord(ctx context.Context, id string) (r live.Record, progress string, err error) {
	out, err := exec.CommandContext(ctx, "scontrol", "-o", "show", "job", id).Output()
	if err != nil {
		return r, "", fmt.Errorf("slurm: scontrol show job %s: %w", id, err)
	}
	if found := progressKey.FindSubmatch(out); found != nil {
		progress = progressPath(string(found[1]), id)
	}
	r, err = findRecord(string(out), id)
	return r, progress, err
}

// progressPath replaces %j by the ID of the job, as sbatch does in names of files.
func progressPath(path, id string) string { return strings.ReplaceAll(path, "%j", id) }

func findRecord(shown, id string) (live.Record, error) {
	found := adminComment.FindStringSubmatch(shown)
	if found == nil {
		return live.Record{}, fmt.Errorf("slurm: job %s has no record of pacer: it was not started by pacer schedule", id)
	}
	r, err := live.ParseRecord(found[1])
	if err == nil && r.RunPlan == "" {
		err = fmt.Errorf("slurm: the record of job %s has no plan: it was not started by pacer schedule", id)
	}
	return r, err
}
