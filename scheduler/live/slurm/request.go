package slurm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Prefix is what the comments of pacer's jobs begin with.
const Prefix = "pacer:"

// keys are what a comment may set, comma-separated as key=value.
const keys = "model, batch, seq, steps, duration, plan, tenant, weight, guaranteed, paused, progress, release-after"

// jobOf returns a job of pacer; ours is false if it is another's.
func (c *Cluster) jobOf(s *live.State, j *job, now time.Time) (out live.Job, ours bool, err error) {
	text, ours := strings.CutPrefix(j.Comment, Prefix)
	in := func(p string) bool { return slices.Contains(c.Partitions, p) }
	if !ours || len(c.Partitions) > 0 && !slices.ContainsFunc(strings.Split(j.Partition, ","), in) {
		return out, false, nil
	}
	out = live.Job{Done: -1, Ref: j}
	out.Spec.ID, out.Spec.Tenant = spec.JobID(strconv.FormatInt(j.ID, 10)), j.Account
	switch {
	case j.ArrayText != "" || j.ArrayID > 0:
		return out, true, errors.New("an array, want a job for each of its tasks")
	case j.HetID > 0:
		return out, true, errors.New("a part of a heterogeneous job, want a job with equal nodes")
	case !j.Requeue:
		return out, true, errors.New("may not be requeued, want sbatch --requeue")
	}
	j.readComment(s, &out)
	out.Submitted = time.Unix(j.submitted(), 0).UTC()
	if err := j.readRequest(&out.Spec, c); err != nil {
		return out, true, err
	}
	if err := c.readKeys(&out, text); err != nil {
		return out, true, fmt.Errorf("comment %.200q: %w", j.Comment, err)
	}
	if j.Reason == "DependencyNeverSatisfied" || strings.Contains(j.Depends, "(failed)") {
		return out, true, fmt.Errorf("dependency %.200q can never be satisfied", j.Depends)
	}
	if out.Phase = c.phase(j, now); out.Phase == live.Held && j.waits(now) {
		out.Paused = true
	}
	out.Reason = j.Reason
	if out.Phase == live.Running && j.Start > 0 {
		out.Started = time.Unix(int64(j.Start), 0).UTC()
	}
	return out, true, out.Spec.Validate()
}

// waits reports whether Slurm would not start the job if it were released: it depends on other jobs, or begins later.
func (j *job) waits(now time.Time) bool {
	return j.Depends != "" || j.Restarts == 0 && j.Eligible > number(now.Unix())
}

// readComment reads the record and what is beside it.
func (j *job) readComment(s *live.State, out *live.Job) {
	r, err := live.ParseRecord(j.Admin)
	if err == nil && j.Admin != "" {
		err = json.Unmarshal([]byte(j.Admin), &j.comment)
	}
	if err != nil { // of others, or cut off: pacer begins anew
		s.Faults = append(s.Faults, live.Fault{Object: "job " + string(out.Spec.ID), Err: fmt.Errorf("slurm: AdminComment: %w", err)})
		j.comment = comment{}
		return
	}
	out.Record, j.comment.Record = r, r
}

// submitted returns when j was submitted, in Unix seconds.
func (j *job) submitted() int64 { return cmp.Or(j.comment.Submitted, int64(j.Submit)) }

// readRequest reads what the job was submitted with.
func (j *job) readRequest(out *spec.Job, c *Cluster) error {
	if kept := j.comment.Requested; kept != nil && kept.Devices > 0 {
		j.request = *kept
	} else {
		typ, n, err := gres(j.TresPerNode)
		if n *= max(int(j.NodeCount), 1); err == nil && n == 0 {
			typ, n, err = gres(j.TresPerJob)
		}
		if err == nil {
			err = oneType(typ)
		}
		if err != nil {
			return err
		}
		if n < 1 {
			return errors.New("no GPUs requested, want sbatch --gres=gpu:N")
		}
		j.request = requested{Devices: n, CPUs: max(float64(j.CPUs), 1) / float64(n), Type: typ}
		if j.MemoryNode > 0 {
			j.request.MiB = int64(float64(j.MemoryNode)*max(float64(j.NodeCount), 1)/float64(n) + 0.5)
		}
	}
	out.Devices = j.request.Devices
	out.Host = spec.Host{MilliCPUs: int64(math.Ceil(j.request.CPUs * 1000)), Bytes: j.request.MiB << 20}
	if j.MemoryCPU > 0 && j.request.MiB == 0 {
		out.Host.Bytes = int64(float64(j.MemoryCPU) * j.request.CPUs * (1 << 20))
	}
	if j.request.Type != "" {
		group, err := c.NodeType(j.request.Type, 1)
		if err != nil {
			return err
		}
		out.Accelerator = group.Accelerator.Name
	}
	return nil
}

// readKeys reads the comment of a job, without its prefix.
func (c *Cluster) readKeys(out *live.Job, text string) error {
	seen := map[string]bool{}
	s := &out.Spec
	for _, item := range splitKeys(text) {
		key, value, _ := strings.Cut(item, "=")
		if seen[key] {
			return fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		var err error
		switch key {
		case "model":
			s.Model, err = c.Model(value)
		case "batch":
			s.GlobalBatch, err = count(value)
		case "seq":
			s.SeqLen, err = count(value)
		case "steps":
			s.Steps, err = positive(value)
		case "weight":
			s.Weight, err = positive(value)
		case "duration":
			if s.Duration, err = time.ParseDuration(value); err != nil || s.Duration <= 0 {
				err = fmt.Errorf("%.80q is no duration above 0, such as 90m", value)
			}
		case "plan":
			s.Plan, err = spec.ParsePlan(strings.ReplaceAll(value, "+", ","))
		case "tenant":
			s.Tenant = value
		case "guaranteed":
			s.Guaranteed, err = strconv.ParseBool(value)
		case "paused":
			out.Paused, err = strconv.ParseBool(value)
		case "progress":
			path := progressPath(value, string(s.ID))
			out.Done = progress(path)
			if j, ok := out.Ref.(*job); ok { // it is in the queue
				_, missing := os.Stat(EndedFile(path, int(j.Restarts)))
				out.PartlyDone = missing == nil
			}
		case "release-after":
			if out.ReleaseAfter, err = time.ParseDuration(value); err != nil || out.ReleaseAfter <= 0 {
				err = fmt.Errorf("%.80q is no duration above 0, such as 30m", value)
			}
		default:
			err = fmt.Errorf("unknown key, want one of %s", keys)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if out.ReleaseAfter > 0 && !seen["progress"] {
		return errors.New("release-after needs progress: the ranks that have ended are written beside its file")
	}
	if out.Paused {
		out.ReleaseAfter = 0
	}
	if !seen["model"] {
		return errors.New("model is missing, want the name of a model")
	}
	if s.Steps == 0 && s.Duration == 0 {
		s.Duration = 24 * time.Hour
	}
	return nil
}

func splitKeys(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func count(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%.80q is no whole number of at least 1", text)
	}
	return n, nil
}

func positive(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%.80q is no number above 0", text)
	}
	return v, nil
}

// Progress is what pacer run writes into the file of key progress.
type Progress struct {
	Step float64 `json:"step"` // steps completed
}

// progress reads the steps completed from a file; negative if it does not exist or cannot be
// read yet.
func progress(path string) float64 {
	b, err := os.ReadFile(path)
	var p Progress
	if err != nil || json.Unmarshal(b, &p) != nil || !(p.Step >= 0) || math.IsInf(p.Step, 0) {
		return -1
	}
	return p.Step
}
