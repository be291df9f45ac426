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

// portTries is how often another port is tried for the rendezvous: between
// finding a free one and its use somebody else may take it.
const portTries = 3

// launch starts the worker on the devices of c and waits until it is gone.
func (t *Torchrun) launch(ctx context.Context, c spec.Config, dir, request, out string, started func(pgid int)) (profiler.Exit, error) {
	devices := t.o.Machine.Devices[:c.Plan.Devices()]
	cmd := profiler.Command{Env: t.environment(devices, t.threads(c)), Dir: dir, Timeout: t.point.Timeout, Started: started}
	work := []string{t.program, "--request", request, "--out", out}
	if len(devices) == 1 {
		cmd.Args = append([]string{t.features.Executable}, work...)
		return t.o.Executor.Run(ctx, cmd)
	}
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return profiler.Exit{}, err
		}
		cmd.Args = append(torchrunArgs(t.features.Executable, len(devices), port, dir), work...)
		exit, err := t.o.Executor.Run(ctx, cmd)
		taken := exit.Code != 0 && strings.Contains(strings.ToLower(exit.Tail), "address already in use")
		if err != nil || !taken || try == portTries {
			return exit, err
		}
		if err := forget(out); err != nil {
			return exit, err
		}
	}
}

// forget removes what the ranks of a launch wrote as results: it would be read
// before those of the next.
func forget(out string) error {
	dir, name := filepath.Split(out)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// torchrunArgs is torchrun for n processes on this machine.
//
// Not --standalone: in torch 1.13 that is a fixed port, 29400, so two launches
// at once would meet. The static rendezvous takes a port, and the ranks use the
// launcher's store, which listens before they start: without it they lose a
// second whenever rank 0 is not the first. The default interval of looking
// after the processes, 5 s in 1.13, would be added to every point. Redirecting
// (-r) and copying (-t) standard error, "2", also avoids a fault of 1.13 under
// Python 3.11 with the default "0".
func torchrunArgs(python string, n, port int, logs string) []string {
	return []string{python, "-m", "torch.distributed.run",
		"--nnodes=1", "--node_rank=0", fmt.Sprintf("--nproc_per_node=%d", n),
		"--rdzv_backend=static", "--master_addr=127.0.0.1", fmt.Sprintf("--master_port=%d", port),
		"--max_restarts=0", "--monitor_interval=0.05",
		"-r", "2", "-t", "2", "--log_dir", logs}
}

// threads is how many CPU threads each process of c gets: as asked, else its
// part of the CPUs that c is recorded with, 0 where that is not known. Without
// being told torch takes what the affinity allows, whatever the quota, and
// torchrun gives each of several processes one.
func (t *Torchrun) threads(c spec.Config) int {
	if t.point.Threads > 0 || c.Shape.CPUs <= 0 {
		return t.point.Threads
	}
	return max(1, c.Shape.CPUs/c.Plan.Devices())
}

// environment is what the worker's processes get besides ours; 0 threads leave
// their number to torch.
func (t *Torchrun) environment(devices []int, threads int) []string {
	env := []string{"PYTHONUNBUFFERED=1"}
	if n := threads; n > 0 {
		for _, library := range []string{"OMP", "MKL", "OPENBLAS"} {
			env = append(env, fmt.Sprintf("%s_NUM_THREADS=%d", library, n))
		}
	}
	if t.o.Machine.CPU {
		// One machine: gloo need not look up the name of the host.
		return append(env, "CUDA_VISIBLE_DEVICES=", "GLOO_SOCKET_IFNAME="+loopback())
	}
	index := make([]string, len(devices))
	for i, d := range devices {
		index[i] = strconv.Itoa(d)
	}
	// By bus, so that the indices mean the same devices as in nvidia-smi.
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

// freePort returns a TCP port of this machine that nobody listened on just now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for the rendezvous: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
