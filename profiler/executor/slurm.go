package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// Slurm submits jobs with sbatch and follows them with squeue, of Slurm 22.05 and later. The key of a job is its name and
// comment. The zero value works; sbatch reads account, partition and other options from its variables SBATCH_*.
//
// A job that loses its node is queued again by Slurm. While the controller does not answer, such as during a restart, calls
// wait up to Patience.
type Slurm struct {
	Poll     time.Duration // between two looks at a job, 0 = 2 s
	Patience time.Duration // 0 = 10 minutes
	// Command runs a program of Slurm and returns its standard output; nil = on this machine.
	Command func(ctx context.Context, input string, args ...string) ([]byte, error)
}

var _ Cluster = Slurm{}

func (s Slurm) poll() time.Duration {
	if s.Poll > 0 {
		return s.Poll
	}
	return 2 * time.Second
}

func (s Slurm) patience() time.Duration {
	if s.Patience > 0 {
		return s.Patience
	}
	return 10 * time.Minute
}

// command runs a program of Slurm. The error has what it printed.
func (s Slurm) command(ctx context.Context, input string, args ...string) ([]byte, error) {
	if s.Command != nil {
		return s.Command(ctx, input, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("executor: %w: install the client programs of Slurm: %w", err, profiler.ErrSetup)
	case err != nil:
		return nil, fmt.Errorf("executor: %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}

// silent are parts of the messages when the controller does not answer.
var silent = []string{"Unable to contact slurm controller", "Connection refused", "Connection timed out", "Socket timed out",
	"Transport endpoint is not connected", "Zero Bytes were transmitted", "Connection reset"}

// ask calls f until the controller answers.
func (s Slurm) ask(ctx context.Context, f func() error) error {
	for deadline := time.Now().Add(s.patience()); ; {
		err := f()
		if err == nil || time.Now().After(deadline) || !slices.ContainsFunc(silent, func(t string) bool { return strings.Contains(err.Error(), t) }) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.poll()):
		}
	}
}

// Submit implements Cluster. A job that is submitted twice, since an answer of the controller was lost, runs once after
// the other and not beside it: see script. Arrays may run beside each other.
func (s Slurm) Submit(ctx context.Context, j Job) (Handle, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	var h Handle
	err := s.ask(ctx, func() (err error) {
		if h, err = s.find(ctx, j.Key); err != nil || h != nil {
			return err
		}
		out, err := s.command(ctx, script(j), "sbatch", "--parsable", "--comment="+j.Key)
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";") // "ID;CLUSTER" with several clusters
		id, err := strconv.Atoi(first)
		if err != nil {
			return fmt.Errorf("executor: sbatch printed %q, want the id of the job", first)
		}
		h = &slurmJob{s, j.Key, id}
		return nil
	})
	return h, err
}

// script is the batch script of a job. --dependency=singleton lets one job of a name run at a time, and of an array one task.
func script(j Job) string {
	options := []string{"--job-name=" + j.Key, "--requeue", "--open-mode=append", fmt.Sprintf("--nodes=%d", max(j.Nodes, 1)), "--ntasks-per-node=1"}
	if j.Tasks > 0 {
		options = append(options, fmt.Sprintf("--array=0-%d", j.Tasks-1))
	} else {
		options = append(options, "--dependency=singleton")
	}
	if j.GPUs > 0 {
		options = append(options, fmt.Sprintf("--gres=gpu:%d", j.GPUs))
	} else {
		options = append(options, "--exclusive")
	}
	if j.Limit > 0 { // in minutes, rounded up
		options = append(options, fmt.Sprintf("--time=%d", int((j.Limit+time.Minute-1)/time.Minute)))
	}
	if j.Output != "" {
		options = append(options, "--output="+strings.ReplaceAll(j.Output, "%", "%%"))
		if j.Tasks > 0 {
			options[len(options)-1] += ".%a"
		}
	}
	if j.Dir != "" {
		options = append(options, "--chdir="+j.Dir)
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for _, o := range options {
		fmt.Fprintf(&b, "#SBATCH %s\n", quoteWord(o))
	}
	words := make([]string, len(j.Args))
	for i, a := range j.Args {
		words[i] = quoteWord(a)
	}
	fmt.Fprintf(&b, "export %s=\"$SLURM_JOB_NUM_NODES\" %s=\"$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}\"\n", NodesVar, AttemptVar)
	launch := "exec "
	if j.Nodes > 1 {
		launch = fmt.Sprintf(`exec srun sh -c 'export %s="$SLURM_NODEID"; exec "$@"' sh `, NodeVar)
	}
	b.WriteString(launch + strings.Join(words, " ") + "\n")
	return b.String()
}

func quoteWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Find implements Cluster.
func (s Slurm) Find(ctx context.Context, key string) (h Handle, err error) {
	err = s.ask(ctx, func() error {
		h, err = s.find(ctx, key)
		return err
	})
	return h, err
}

func (s Slurm) find(ctx context.Context, key string) (Handle, error) {
	jobs, err := s.queue(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.Comment == key && !j.ended() {
			return &slurmJob{s, key, j.of()}, nil
		}
	}
	return nil, nil
}

// queuedJob is a job in the JSON of squeue.
type queuedJob struct {
	ID      int             `json:"job_id"`
	Array   json.RawMessage `json:"array_job_id"` // of a task, 0 = it is none
	Comment string          `json:"comment"`
	State   json.RawMessage `json:"job_state"` // a word in 22.05, a list of words later
	Exit    json.RawMessage `json:"exit_code"` // a wait status in 22.05, an object later
}

func (s Slurm) queue(ctx context.Context) ([]queuedJob, error) {
	out, err := s.command(ctx, "", "squeue", "--json")
	if err != nil {
		return nil, err
	}
	var q struct {
		Jobs []queuedJob `json:"jobs"`
	}
	if err := json.Unmarshal(out, &q); err != nil {
		return nil, fmt.Errorf("executor: output of squeue: %w", err)
	}
	return q.Jobs, nil
}

// of returns the ID of the array of a task, and of other jobs their own.
func (j *queuedJob) of() int {
	if id, ok := number(j.Array); ok && id > 0 {
		return id
	}
	return j.ID
}

// is reports whether the state has one of the words.
func (j *queuedJob) is(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(j.State, []byte(`"`+w+`"`)) })
}

func (j *queuedJob) ended() bool {
	return !j.is("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
		"RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT")
}

// end describes the end of the job.
func (j *queuedJob) end() JobEnd {
	e := JobEnd{JobEnded, -1}
	switch {
	case j.is("TIMEOUT", "DEADLINE"):
		e.State = JobTimeout
	case j.is("PREEMPTED"):
		e.State = JobPreempt
	case j.is("NODE_FAIL", "BOOT_FAIL"):
		e.State = JobNodeFail
	case j.is("CANCELLED", "REVOKED"):
		e.State = JobCancel
	default:
		e.Code = exitCode(j.Exit)
	}
	return e
}

// exitCode reads an exit code: a wait status, or an object with return_code, itself a number or an object with number.
func exitCode(text json.RawMessage) int {
	var status int
	if json.Unmarshal(text, &status) == nil {
		return status >> 8
	}
	var v struct {
		ReturnCode json.RawMessage `json:"return_code"`
	}
	if json.Unmarshal(text, &v) != nil {
		return -1
	}
	if n, ok := number(v.ReturnCode); ok {
		return n
	}
	return -1
}

// number reads a number, or an object with number.
func number(text json.RawMessage) (n int, ok bool) {
	if json.Unmarshal(text, &n) == nil {
		return n, true
	}
	var v struct {
		Number int `json:"number"`
	}
	ok = json.Unmarshal(text, &v) == nil
	return v.Number, ok
}

// slurmJob is a job of Slurm.
type slurmJob struct {
	s   Slurm
	key string
	id  int
}

// Wait implements Handle.
func (h *slurmJob) Wait(ctx context.Context, done func() bool) (JobEnd, error) {
	answered := time.Now()
	ends := map[int]JobEnd{} // of tasks: the controller forgets them one by one
	for {
		if done != nil && done() {
			return JobEnd{}, nil
		}
		jobs, err := h.s.queue(ctx)
		switch {
		case ctx.Err() != nil:
			return JobEnd{}, ctx.Err()
		case err == nil:
			answered = time.Now()
			left := false
			for i := range jobs {
				if j := &jobs[i]; j.of() == h.id && !j.ended() {
					left = true
				} else if j.of() == h.id {
					ends[j.ID] = j.end()
				}
			}
			if !left {
				return worst(ends), nil
			}
		case errors.Is(err, profiler.ErrSetup) || time.Since(answered) > h.s.patience():
			return JobEnd{}, err
		}
		select {
		case <-ctx.Done():
			return JobEnd{}, ctx.Err()
		case <-time.After(h.s.poll()):
		}
	}
}

// worst returns the end of a job by those of its tasks.
func worst(ends map[int]JobEnd) JobEnd {
	if len(ends) == 0 {
		return JobEnd{JobUnknown, -1}
	}
	worst := JobEnd{JobEnded, 0}
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		if worst == (JobEnd{JobEnded, 0}) {
			worst = ends[id]
		}
	}
	return worst
}

// Cancel implements Handle.
func (h *slurmJob) Cancel(ctx context.Context) error {
	return h.s.ask(ctx, func() error {
		_, err := h.s.command(ctx, "", "scancel", "--quiet", strconv.Itoa(h.id))
		return err
	})
}
