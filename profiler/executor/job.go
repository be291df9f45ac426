package executor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Job is a command on the nodes of a cluster. The nodes share a file system with this process.
type Job struct {
	// Key identifies the job, also for a later process: at most 64 letters, digits, '.', '_' and '-'.
	Key    string
	Args   []string
	Dir    string // working directory
	Output string // file for the output, both streams; a task adds "." and its number. Kubernetes keeps it as logs of pods
	Nodes  int    // of a task, 0 = 1
	// Tasks, if above 0, makes it an array: the command runs once for each number from 0 to Tasks-1, which TaskNumber returns
	// there. The job has ended once all have; it ended as the worst of them did.
	Tasks int
	GPUs  int // per node, 0 = none: the job then has its nodes for itself
	// Limit is the time after which the job is killed once it runs. Time in the queue does not count. 0 = none.
	Limit time.Duration
}

var jobKey = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Validate returns an error for the first invalid field.
func (j *Job) Validate() error {
	switch {
	case !jobKey.MatchString(j.Key):
		return fmt.Errorf("executor: key %q of a job is not 1 to 64 letters, digits, '.', '_' and '-'", j.Key)
	case len(j.Args) == 0 || j.Args[0] == "":
		return fmt.Errorf("executor: job %s has no program", j.Key)
	case j.Nodes < 0 || j.GPUs < 0 || j.Limit < 0 || j.Tasks < 0:
		return fmt.Errorf("executor: job %s has %d nodes, %d GPUs, %d tasks and the limit %s, want 0 or more", j.Key, j.Nodes, j.GPUs, j.Tasks, j.Limit)
	}
	return nil
}

// Self returns the path of this program under the name that it was started by, for a job that runs it.
func Self() (string, error) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		if path, err = os.Executable(); err != nil {
			return "", fmt.Errorf("executor: the path of this program: %w", err)
		}
	}
	return filepath.Abs(path)
}

// taskVariables have the number of a task: of an array of Slurm, of an indexed Job of Kubernetes.
var taskVariables = []string{"SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"}

// TaskNumber returns the number of the task that this process is in. The error says that it is in none.
func TaskNumber() (int, error) {
	for _, name := range taskVariables {
		text, ok := os.LookupEnv(name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("executor: $%s is %q, want the number of a task", name, text)
		}
		return n, nil
	}
	return 0, fmt.Errorf("executor: not in a task of an array: none of $%s is set", strings.Join(taskVariables, ", $"))
}

// JobState is how a job ended.
type JobState string

const (
	JobEnded    JobState = "ended"     // by itself, with an exit status
	JobTimeout  JobState = "timeout"   // Job.Limit passed
	JobPreempt  JobState = "preempted" // for other jobs
	JobNodeFail JobState = "node failed"
	JobCancel   JobState = "cancelled"
	JobUnknown  JobState = "unknown" // the cluster has forgotten it
)

// JobEnd describes the end of a job.
type JobEnd struct {
	State JobState
	Code  int // exit status, -1 = none or unknown
}

// External reports whether the end was caused from outside and not by the command.
func (e JobEnd) External() bool {
	switch e.State {
	case JobPreempt, JobNodeFail, JobCancel, JobUnknown:
		return true
	}
	return false
}

// Handle is a submitted job.
type Handle interface {
	// Wait returns when the job has ended or done returns true. done, if not nil, is called every few seconds, also while
	// the cluster does not answer. The zero JobEnd means that done returned true.
	Wait(ctx context.Context, done func() bool) (JobEnd, error)
	// Cancel ends the job. A job that has ended is no error.
	Cancel(ctx context.Context) error
}

// Cluster runs jobs.
type Cluster interface {
	// Submit queues a job. An earlier job with the key that has not ended is returned in its place.
	Submit(ctx context.Context, j Job) (Handle, error)
	// Find returns the job with a key that is queued or running, nil if there is none.
	Find(ctx context.Context, key string) (Handle, error)
}
