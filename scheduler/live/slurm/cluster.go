package slurm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Options of a Cluster. Model and NodeType are required.
type Options struct {
	// Partitions are those with the nodes and jobs to schedule; none = all.
	Partitions []string
	// Model returns the model that a job names.
	Model func(name string) (spec.Model, error)
	// NodeType returns a node with a number of devices of a GRES type, such as "a100"; "" if
	// the GRES of the node has no type.
	NodeType func(gres string, devices int) (spec.NodeGroup, error)
	// Settle is the time between the end of a run and the next start of the job. In the second
	// in which it ended, slurmd on a node of the last run takes the credential for the revoked
	// one, and the job fails. It counts in seconds of the clock, as slurmd does. 0 = 2 s.
	Settle time.Duration
	// Poll is the time between two observations of Watch, 0 = 2 s. It is a quarter of that while a
	// job stops, if Slurm answers quickly.
	Poll time.Duration
	// Limit is the longest time of one command of Slurm, 0 = 30 s.
	Limit time.Duration
}

// Cluster is a live.Cluster. Use New.
type Cluster struct {
	Options
	nodes []string    // the command that shows nodes
	fast  atomic.Bool // a job stops, and Slurm answers quickly

	mu      sync.Mutex
	ended   map[int]lastRun      // by job, of those that have run before and wait
	unowned map[string]time.Time // by node with devices that are used by no job, since when
}

// lastRun is when a job was first seen without its last run.
type lastRun struct {
	restarts int
	seen     time.Time
}

var _ live.Cluster = (*Cluster)(nil)

// New returns the engine for the Slurm that the commands of this machine talk to. The error
// says which command cannot be run, or what is missing.
func New(ctx context.Context, o Options) (*Cluster, error) {
	if o.Model == nil || o.NodeType == nil {
		return nil, errors.New("slurm: options without Model or NodeType")
	}
	for field, def := range map[*time.Duration]time.Duration{&o.Settle: 2 * time.Second, &o.Poll: 2 * time.Second, &o.Limit: 30 * time.Second} {
		if *field < 0 {
			return nil, fmt.Errorf("slurm: a time of %v, want at least 0", *field)
		}
		if *field == 0 {
			*field = def
		}
	}
	c := &Cluster{Options: o, nodes: []string{"scontrol", "show", "nodes", "--json", "--all"}, ended: map[int]lastRun{}}
	out, err := c.run(ctx, "sinfo", "--version")
	if err != nil {
		return nil, err
	}
	var major, minor int
	fields := strings.Fields(string(out)) // "slurm-wlm 22.05.8", "slurm 23.11.4"
	if len(fields) < 2 {
		return nil, fmt.Errorf("slurm: sinfo --version says %.80q, want a name and a version", out)
	}
	if _, err := fmt.Sscanf(fields[1], "%d.%d", &major, &minor); err != nil || major < 22 || major == 22 && minor < 5 {
		return nil, fmt.Errorf("slurm: version %.80q, want 22.05 or later", fields[1])
	}
	if major == 22 {
		c.nodes = []string{"sinfo", "--json", "--all"} // scontrol has no JSON yet
	}
	return c, nil
}

// run runs a command of Slurm and returns its output.
func (c *Cluster) run(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SQUEUE_") || strings.HasPrefix(v, "SINFO_") }) // they hide jobs and nodes
	cmd.WaitDelay = time.Second                                                                                                                 // a script around the command may leave a process that holds its output
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("slurm: %s: no answer within %v: %w", strings.Join(args[:min(2, len(args))], " "), c.Limit, ctx.Err())
	case errors.As(err, &exit):
		return nil, fmt.Errorf("slurm: %s: %w: %.300s", strings.Join(args[:min(2, len(args))], " "), err, strings.TrimSpace(string(exit.Stderr)))
	case err != nil:
		return nil, fmt.Errorf("slurm: %w", err)
	}
	return out, nil
}

// fastPolls is the number of observations in a Poll while a job stops.
const fastPolls = 4

// Watch implements live.Cluster by polling.
func (c *Cluster) Watch(ctx context.Context) (<-chan struct{}, error) {
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		tick := time.NewTicker(c.Poll / fastPolls)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if n%fastPolls != 0 && !c.fast.Load() {
					continue
				}
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out, nil
}

// comment is the AdminComment of a job: its record, and what this engine keeps beside it.
type comment struct {
	live.Record
	// RestartCount is Slurm's, when the job was last started by pacer. A job that waits with a
	// higher one was requeued by Slurm.
	RestartCount int `json:"restart-count,omitempty"`
	// Submitted is when the job was submitted, in Unix seconds. Slurm's own time is that of the last requeue.
	Submitted int64 `json:"submitted,omitempty"`
	// Requested is what the job was submitted with. Starting it changes that.
	Requested *requested `json:"requested,omitempty"`
}

// requested is a request of devices, with what each of them needs of its host.
type requested struct {
	Devices int     `json:"devices"`
	CPUs    float64 `json:"cpus"`           // for each device
	MiB     int64   `json:"mib,omitempty"`  // of memory for each device, 0 = by CPUs
	Type    string  `json:"type,omitempty"` // of GRES, "" = any
}

// String writes c as JSON without spaces.
func (c comment) String() string {
	b, err := json.Marshal(c)
	if err != nil { // unreachable: no field fails, numbers are finite
		panic(err)
	}
	return string(b)
}

// Record implements live.Cluster.
func (c *Cluster) Record(ctx context.Context, j *live.Job, r live.Record) error {
	ref := j.Ref.(*job)
	kept := ref.comment
	kept.Record, kept.Submitted = r, ref.submitted()
	return c.update(ctx, j, "AdminComment="+kept.String())
}

// Start implements live.Cluster. One request sets size, nodes, plan and start time, another
// releases the job.
func (c *Cluster) Start(ctx context.Context, j *live.Job, r live.Record) error {
	ref := j.Ref.(*job)
	kept := ref.comment
	kept.Record, kept.RestartCount, kept.Submitted, kept.Requested = r, int(ref.Restarts), ref.submitted(), &ref.request
	names, per := make([]string, 0, len(r.RunSlots)), 0
	for name, n := range r.RunSlots {
		if per != 0 && n != per {
			return fmt.Errorf("slurm: %s has not the same number of devices on every node", r.RunSlots)
		}
		names, per = append(names, name), n
	}
	slices.Sort(names)
	devices := r.RunSlots.Devices()
	cpus := max(int(ref.request.CPUs*float64(devices)+0.5), devices)
	gpus := "gpu:"
	if ref.request.Type != "" {
		gpus += ref.request.Type + ":"
	}
	gresPerNode := fmt.Sprintf("%s%d", gpus, per)
	for _, item := range splitOutside(ref.TresPerNode) { // such as disks
		item = strings.TrimPrefix(strings.TrimPrefix(item, "gres/"), "gres:")
		if name, _, _ := strings.Cut(strings.ReplaceAll(item, "=", ":"), ":"); name != "gpu" {
			gresPerNode += "," + item
		}
	}
	args := []string{
		fmt.Sprintf("NumNodes=%d-%d", len(names), len(names)), fmt.Sprintf("NumTasks=%d", devices), fmt.Sprintf("NumCPUs=%d-%d", cpus, cpus),
		"Gres=" + gresPerNode, fmt.Sprintf("MinCPUsNode=%d", cpus/len(names)), "ReqNodeList=" + strings.Join(names, ","), "StartTime=now", "AdminComment=" + kept.String(),
	}
	if prefix, _, found := strings.Cut(ref.TresPerJob, "gpu"); found { // submitted with a number of GPUs on any nodes, which binds too
		args = append(args, fmt.Sprintf("TresPerJob=%s%s%d", prefix, gpus, devices))
	}
	if ref.request.MiB > 0 {
		args = append(args, fmt.Sprintf("MinMemoryNode=%d", ref.request.MiB*int64(per)))
	}
	if err := c.update(ctx, j, args...); err != nil {
		return err
	}
	return c.control(ctx, j, "release")
}

// Stop implements live.Cluster. A job that has completed since it was observed stays so: without Incomplete Slurm would
// run it again.
func (c *Cluster) Stop(ctx context.Context, j *live.Job) error {
	switch j.Phase {
	case live.Running:
		return c.control(ctx, j, "requeuehold", "Incomplete")
	case live.Released, live.Requeued:
		return c.control(ctx, j, "hold")
	}
	return nil
}

func (c *Cluster) update(ctx context.Context, j *live.Job, fields ...string) error {
	_, err := c.run(ctx, append([]string{"scontrol", "update", "jobid=" + string(j.Spec.ID)}, fields...)...)
	return gone(err)
}

func (c *Cluster) control(ctx context.Context, j *live.Job, verb ...string) error {
	_, err := c.run(ctx, append(append([]string{"scontrol"}, verb...), string(j.Spec.ID))...)
	return gone(err)
}

// gone wraps live.ErrGone if the job does not exist or has ended, and live.ErrConflict if it
// changes just now.
func gone(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "Invalid job id"), strings.Contains(err.Error(), "already finished"):
		return fmt.Errorf("%w: %w", live.ErrGone, err)
	case strings.Contains(err.Error(), "Job is pending execution"), strings.Contains(err.Error(), "no longer pending"), strings.Contains(err.Error(), "currently being"):
		return fmt.Errorf("%w: %w", live.ErrConflict, err)
	}
	return err
}
