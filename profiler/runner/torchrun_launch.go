package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// portAttempts is the number of ports to try for the rendezvous. Another process may take a free port before
// the launcher does.
const portAttempts = 3

// launch runs the worker on the devices of c and waits until it ends.
func (t *Torchrun) launch(ctx context.Context, c spec.Config, dir, request, out string, started func(pgid int)) (profiler.Exit, error) {
	devices := t.devices(c)
	cmd := profiler.Command{Env: environment(t.o.Machine, devices, threads(t.point, c), t.o.Team), Dir: dir, Timeout: t.point.Timeout, Started: started}
	work := []string{t.program, "--request", request, "--out", out}
	if c.Plan.Devices() == 1 {
		cmd.Args = append([]string{t.features.Executable}, work...)
		return t.o.Executor.Run(ctx, cmd)
	}
	for try := 1; ; try++ {
		port, err := freePort("127.0.0.1")
		if err != nil {
			return profiler.Exit{}, err
		}
		cmd.Args = append(torchrunArgs(t.features.Executable, len(devices), t.o.Team, port, dir), work...)
		exit, err := t.o.Executor.Run(ctx, cmd)
		taken := exit.Code != 0 && strings.Contains(strings.ToLower(exit.Tail), "address already in use")
		if err != nil || !taken || try == t.o.Team.ports() {
			return exit, err
		}
		if err := removeResults(out); err != nil {
			return exit, err
		}
	}
}

// removeResults removes the result files of a failed launch, so that they are not read as those of the next
// launch.
func removeResults(out string) error {
	dir, name := filepath.Split(out)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// torchrunArgs returns the command of torchrun for n processes on this node; without a team they meet at a port of it.
//
// It avoids --standalone, which in torch 1.13 uses the fixed port 29400, so concurrent launches would collide.
// The static rendezvous takes a port. The ranks use the launcher's store, which listens before they start;
// otherwise they lose a second whenever rank 0 does not start first. The default monitor interval, 5 s in 1.13,
// would be added to every point. Redirecting (-r) and copying (-t) standard error, "2", also avoids a bug of
// 1.13 with Python 3.11 and the default "0".
func torchrunArgs(python string, n int, team *Team, port int, logs string) []string {
	at := team.place(port)
	return []string{python, "-m", "torch.distributed.run",
		fmt.Sprintf("--nnodes=%d", team.Nodes()), fmt.Sprintf("--node_rank=%d", team.number()), fmt.Sprintf("--nproc_per_node=%d", n),
		"--rdzv_backend=static", "--master_addr=" + at.Address, fmt.Sprintf("--master_port=%d", at.Port),
		"--max_restarts=0", "--monitor_interval=0.05",
		"-r", "2", "-t", "2", "--log_dir", logs}
}

// threads returns the number of CPU threads per process: the option if set, else an equal share of the CPUs of
// c, 0 if unknown. torch's default would be all CPUs of the affinity mask, regardless of the quota, and
// torchrun's default for several processes is one.
func threads(p profiler.PointOptions, c spec.Config) int {
	if p.Threads > 0 || c.Shape.CPUs <= 0 {
		return p.Threads
	}
	return max(1, c.Shape.CPUs/c.Plan.Devices())
}

// environment returns the variables that the processes of a point on devices of m get in addition to this process's
// environment. With 0 threads, torch chooses their number.
func environment(m profiler.Machine, devices []int, threads int, team *Team) []string {
	env := []string{"PYTHONUNBUFFERED=1"}
	if n := threads; n > 0 {
		for _, library := range []string{"OMP", "MKL", "OPENBLAS"} {
			env = append(env, fmt.Sprintf("%s_NUM_THREADS=%d", library, n))
		}
	}
	if m.CPU {
		return append(env, "CUDA_VISIBLE_DEVICES=", "GLOO_SOCKET_IFNAME="+team.gloo())
	}
	index := make([]string, len(devices))
	for i, d := range devices {
		index[i] = strconv.Itoa(d)
	}
	// In bus order, so that the indices mean the same devices as in nvidia-smi.
	return append(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES="+strings.Join(index, ","))
}

// loopback returns the name of the loopback interface.
func loopback() string {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return i.Name
		}
	}
	return ""
}

// freePort returns a TCP port of this machine that was free just now, at an address of it; "" = at all.
func freePort(address string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return 0, fmt.Errorf("no free port for the rendezvous: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
