package campaign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
	"github.com/pacer-ml/pacer/profiler/executor"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/worker"
)

// jobVersion is the version of JobRequest. Submitting and measuring process are the same program.
const jobVersion = 1

// JobRequest is the file of a job of a cluster: it measures a point, or describes the node.
type JobRequest struct {
	Version  int               `json:"version"`
	Campaign profiler.Campaign `json:"campaign"`
	Devices  string            `json:"devices"`
	Seed     uint64            `json:"seed"`
	Config   *spec.Config      `json:"config"` // nil = describe the node
}

// nodeAnswer describes a node.
type nodeAnswer struct {
	Machine profiler.Machine `json:"machine"`
	Torch   *worker.Features `json:"torch"` // of runner torchrun
	Notes   []string         `json:"notes"`
	// NetworkBps is the rate of its network, 0 = unknown.
	NetworkBps float64 `json:"network_bps"`
}

// limitSlack is the time that a job has in addition to that of its point: to start, and to import torch.
const limitSlack = 10 * time.Minute

// clusterSetup measures each point as a job of a cluster. The machine is that of a node, which a first job describes.
func (o *Options) clusterSetup(ctx context.Context, camp profiler.Campaign) (Setup, error) {
	self, err := executor.Self()
	if err != nil {
		return Setup{}, err
	}
	request := func(c *spec.Config) JobRequest { return JobRequest{jobVersion, camp, o.Devices, o.Seed, c} }
	args := []string{cmp.Or(o.Program, self), "profile", "point"}
	remote, err := runner.NewRemote(runner.RemoteOptions{
		Cluster: o.Cluster, Dir: o.JobDir, Args: args, Run: camp.Source() + "#" + o.Label, GPUs: o.GPUs,
		Request: func(c spec.Config) any { return request(&c) }, Limit: camp.Point.Defaults().Timeout + limitSlack})
	if err != nil {
		return Setup{}, err
	}
	var node nodeAnswer
	if err := remote.Ask(ctx, "node", args, request(nil), &node); err != nil {
		return Setup{}, err
	}
	s := Setup{Machine: node.Machine, Runner: remote, Notes: node.Notes, close: func() { _ = remote.Close() }}
	if o.Nodes > 1 {
		s.Machine.Link.InterBps = cmp.Or(node.NetworkBps, s.Machine.Link.InterBps)
	}
	o.addNodes(&s.Machine)
	if node.Torch != nil {
		s.Machine.Lacks = lacksIn(*node.Torch, s.Machine, camp)
		return s, nil
	}
	c, err := runner.NewCommand(runner.CommandOptions{Command: camp.Runner.Command, Machine: s.Machine, Point: camp.Point})
	if err != nil {
		return s, err
	}
	s.Machine.Lacks, s.check = c.Lacks, c.Check
	return s, nil
}

// addNodes lets points use several nodes like m.
func (o *Options) addNodes(m *profiler.Machine) {
	m.Nodes = o.Nodes
	if o.NetworkGbps > 0 {
		m.Link.InterBps = o.NetworkGbps * 1e9 / 8
	}
}

// RunJob does what a request file asks for, and writes the answer beside it. An answer that is there already stays. Of a job
// on several nodes, all measure and the first one answers.
func RunJob(ctx context.Context, file string) error {
	out := runner.RemoteResult(file)
	if _, err := os.Stat(out); err == nil {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("profile: point: %w", err)
	}
	var r JobRequest
	if err := json.Unmarshal(text, &r); err != nil || r.Version != jobVersion {
		return fail.Usagef("profile: point: %s is no request of version %d (version %d, %v)", file, jobVersion, r.Version, err)
	}
	node, err := executor.ThisNode()
	if err != nil {
		return err
	}
	team, err := runner.JoinTeam(ctx, node, filepath.Dir(file))
	if err != nil {
		return err
	}
	answer, err := r.answer(ctx, team)
	if err != nil || !team.First() {
		return err
	}
	return atomicfile.Write(out, fs.FileMode(0o644), func(w io.Writer) error { return json.NewEncoder(w).Encode(answer) })
}

// answer measures the point, or describes this node.
func (r *JobRequest) answer(ctx context.Context, team *runner.Team) (any, error) {
	o := Options{Devices: r.Devices, Seed: r.Seed, job: r.Config != nil, team: team}
	s, err := newSetup(ctx, r.Campaign, o, nil)
	if s.close != nil {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	if r.Config == nil {
		a := nodeAnswer{Machine: s.Machine, Notes: s.Notes, NetworkBps: device.NetworkBps()}
		if t, ok := s.Runner.(*runner.Torchrun); ok {
			f, err := t.Setup(ctx)
			if err != nil {
				return nil, err
			}
			a.Torch = &f
		}
		return a, nil
	}
	if have, want := s.Machine.Accelerator.Name, r.Config.Accelerator.Name; have != want {
		return nil, fmt.Errorf("profile: point: this node has the accelerator %q, the campaign measures %q: choose nodes of one kind: %w", have, want, profiler.ErrSetup)
	}
	m, err := s.Runner.Run(ctx, *r.Config)
	if closer, ok := s.Runner.(io.Closer); ok {
		err = errors.Join(err, closer.Close())
	}
	if err == nil {
		m.Env["node"] = nodeName()
	}
	return m, err
}

// nodeName returns the name of this node in its cluster, or its host name.
func nodeName() string {
	host, _ := os.Hostname()
	return cmp.Or(os.Getenv(executor.NameVar), os.Getenv("SLURMD_NODENAME"), host)
}
