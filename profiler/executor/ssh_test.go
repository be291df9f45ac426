package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// hosts runs scripts on this machine, with a directory for temporary files as each host has one.
type hosts struct {
	dir  string
	down atomic.Value // name of a host that does not answer
}

func (h *hosts) command(ctx context.Context, host, script string) ([]byte, error) {
	if h.down.Load() == host {
		return nil, fmt.Errorf("host %s is %w", host, ErrUnreachable)
	}
	cmd := exec.CommandContext(ctx, "sh", "-s")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(h.dir, host))
	if err := os.MkdirAll(filepath.Join(h.dir, host), 0o700); err != nil {
		return nil, err
	}
	return cmd.Output()
}

// cluster returns an SSH for some hosts, as one process of pacer has it.
func (h *hosts) cluster(t *testing.T, names ...string) *SSH {
	t.Helper()
	for _, program := range []string{"flock", "setsid", "timeout"} {
		if _, err := exec.LookPath(program); err != nil {
			spectest.Lacks(t, err)
		}
	}
	s, err := NewSSH(SSHOptions{Hosts: names, Env: []string{"GREETING=it's me"}, Poll: 10 * time.Millisecond, Patience: 100 * time.Millisecond, Command: h.command})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newHosts(t *testing.T) *hosts {
	t.Helper()
	return &hosts{dir: t.TempDir()}
}

func shell(key, script string) Job { return Job{Key: key, Args: []string{"sh", "-c", script}} }

func submit(t *testing.T, s *SSH, j Job) Handle {
	t.Helper()
	h, err := s.Submit(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSSHEnds: a job has its directory, output and variables, and Wait returns its end.
func TestSSHEnds(t *testing.T) {
	s := newHosts(t).cluster(t, "a", "b")
	dir := t.TempDir()
	for script, want := range map[string]JobEnd{
		`echo "$GREETING, $PACER_NODE of $PACER_NODES on $PACER_NODE_NAME in $PWD"`: {JobEnded, 0},
		"echo no >&2; exit 3": {JobEnded, 3},
		"exec sleep 60":       {JobTimeout, 124},
	} {
		j := shell("k", script)
		j.Dir, j.Output, j.Limit = dir, filepath.Join(dir, "log"), time.Second
		end, err := submit(t, s, j).Wait(t.Context(), nil)
		if err != nil || end != want {
			t.Errorf("%s: %+v, %v, want %+v", script, end, err, want)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	for _, want := range []string{"it's me, 0 of 1 on a in " + dir + "\n", "no\n"} {
		if err != nil || !strings.Contains(string(log), want) {
			t.Errorf("%s, %v: want %q", log, err, want)
		}
	}
}

// TestSSHNodes: all nodes of a job run it, each with its number and the same attempt; a host runs one job at a time, also of
// another process, and a job on all hosts gets them beside jobs on one.
func TestSSHNodes(t *testing.T) {
	all := newHosts(t)
	s, other := all.cluster(t, "a", "b"), all.cluster(t, "b", "a")
	dir := t.TempDir()
	body := `echo "$PACER_NODE/$PACER_NODES $PACER_ATTEMPT" > DIR/$PACER_NODE
mkdir DIR/lock-$PACER_NODE_NAME || touch DIR/two-at-once
trap 'rmdir DIR/lock-$PACER_NODE_NAME' EXIT
trap exit TERM
sleep 0.1`
	var waits []func() error
	for i, c := range []*SSH{s, other, s, other, s} {
		j := shell("k"+strconv.Itoa(i), strings.ReplaceAll(body, "DIR", dir))
		j.Nodes = 1 + i%2
		ended := make(chan error, 1)
		go func() {
			h, err := c.Submit(t.Context(), j)
			if err == nil {
				var end JobEnd
				if end, err = h.Wait(t.Context(), nil); err == nil && end != (JobEnd{JobEnded, 0}) {
					err = fmt.Errorf("job %s: %+v", j.Key, end)
				}
			}
			ended <- err
		}()
		waits = append(waits, func() error { return <-ended })
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "two-at-once")); err == nil {
		t.Error("a host ran two jobs at once")
	}
	j := shell("last", strings.ReplaceAll(body, "DIR", dir))
	j.Nodes = 2
	if end, err := submit(t, s, j).Wait(t.Context(), nil); err != nil || end != (JobEnd{JobEnded, 0}) {
		t.Fatal(end, err)
	}
	first, _ := os.ReadFile(filepath.Join(dir, "0"))
	second, _ := os.ReadFile(filepath.Join(dir, "1"))
	if a, b := strings.TrimPrefix(string(first), "0/2 "), strings.TrimPrefix(string(second), "1/2 "); a != b || len(a) < 10 {
		t.Errorf("nodes say %q and %q, want 0/2 and 1/2 and the same attempt", first, second)
	}
}

// TestSSHResumes: a later process finds a job that runs, and takes its end; one that has ended is not found.
func TestSSHResumes(t *testing.T) {
	all := newHosts(t)
	gate := filepath.Join(t.TempDir(), "gate")
	j := shell("k", "while [ ! -e "+gate+" ]; do sleep 0.02; done; exit 4")
	j.Nodes = 2
	ctx, cancel := context.WithCancel(t.Context())
	h := submit(t, all.cluster(t, "a", "b"), j)
	cancel()
	if _, err := h.Wait(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	later := all.cluster(t, "a", "b")
	found, err := later.Find(t.Context(), "k")
	if err != nil || found == nil {
		t.Fatal("a running job was not found", err)
	}
	spectest.WriteFile(t, gate, nil, 0o600)
	if end, err := found.Wait(t.Context(), nil); err != nil || end != (JobEnd{JobEnded, 4}) {
		t.Errorf("%+v, %v, want exit status 4", end, err)
	}
	if again, err := later.Find(t.Context(), "k"); again != nil || err != nil {
		t.Errorf("%v, %v, want no job", again, err)
	}
	if end, err := submit(t, later, shell("next", "true")).Wait(t.Context(), nil); err != nil || end != (JobEnd{JobEnded, 0}) {
		t.Errorf("%+v, %v: the hosts were not free", end, err)
	}
}

// TestSSHFails: a killed job, a host that goes away and a job that is cancelled have an end from outside, and the other nodes
// of the job do not go on.
func TestSSHFails(t *testing.T) {
	all := newHosts(t)
	s := all.cluster(t, "a", "b")
	pids := t.TempDir()
	long := func() Job {
		j := shell("k", "echo $PPID > "+pids+"/$PACER_NODE; exec sleep 100")
		j.Nodes = 2
		return j
	}
	group := func(node string) (pid int) {
		for pid == 0 {
			text, _ := os.ReadFile(filepath.Join(pids, node))
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			time.Sleep(10 * time.Millisecond)
		}
		return pid
	}
	ended := func(what string) {
		t.Helper()
		next := shell("next", "true")
		next.Nodes = 2
		if end, err := submit(t, s, next).Wait(t.Context(), nil); err != nil || end != (JobEnd{JobEnded, 0}) {
			t.Errorf("after %s: %+v, %v", what, end, err)
		}
		_ = os.Remove(filepath.Join(pids, "0"))
		_ = os.Remove(filepath.Join(pids, "1"))
	}
	h := submit(t, s, long())
	group("0")
	if out, err := exec.Command("pkill", "-KILL", "-g", strconv.Itoa(groupOf(t, group("1")))).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if end, err := h.Wait(t.Context(), nil); err != nil || end.State != JobNodeFail || !end.External() {
		t.Errorf("a killed node: %+v, %v", end, err)
	}
	ended("a killed node")

	h = submit(t, s, long())
	group("1")
	all.down.Store("b")
	if end, err := h.Wait(t.Context(), nil); err != nil || end.State != JobNodeFail {
		t.Errorf("an unreachable node: %+v, %v", end, err)
	}
	if _, err := s.Submit(t.Context(), long()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "host b") {
		t.Errorf("%v, want that b is unreachable", err)
	}
	all.down.Store("")
	if found, err := s.Find(t.Context(), "k"); err != nil || found != nil {
		t.Errorf("%v, %v, want that what is left on b is ended", found, err)
	}
	ended("an unreachable node")

	h = submit(t, s, long())
	group("1")
	if err := h.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	ended("a cancelled job")
}

// groupOf returns the process group of a process.
func groupOf(t *testing.T, pid int) (group int) {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pgid=", "-p", strconv.Itoa(pid)).Output()
	if err == nil {
		group, err = strconv.Atoi(strings.TrimSpace(string(out)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// TestSSHErrors: bad hosts and jobs give errors that name them.
func TestSSHErrors(t *testing.T) {
	for want, names := range map[string][]string{
		"no hosts": nil, `"" is not the name`: {""}, `"-oProxyCommand=x"`: {"-oProxyCommand=x"}, "host a is listed twice": {"a", "b", "a"},
	} {
		if _, err := NewSSH(SSHOptions{Hosts: names}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", names, err, want)
		}
	}
	s := newHosts(t).cluster(t, "a")
	if _, err := s.Submit(t.Context(), Job{Key: "k", Args: []string{"true"}, Nodes: 2}); err == nil || !strings.Contains(err.Error(), "needs 2 hosts, 1 are listed") {
		t.Error(err)
	}
	s.o.Command = func(context.Context, string, string) ([]byte, error) { return []byte("Welcome to the cluster\n"), nil }
	if _, err := s.Submit(t.Context(), shell("k", "true")); err == nil || !strings.Contains(err.Error(), `answered "Welcome to the cluster" about job k`) {
		t.Error(err)
	}
}

func TestThisNode(t *testing.T) {
	if n, err := ThisNode(); err != nil || n != (Node{0, 1, ""}) {
		t.Errorf("%+v, %v, want the only node", n, err)
	}
	set := func(node, nodes, attempt string) {
		t.Setenv(NodeVar, node)
		t.Setenv(NodesVar, nodes)
		t.Setenv(AttemptVar, attempt)
	}
	set("1", "2", "17.0")
	if n, err := ThisNode(); err != nil || n != (Node{1, 2, "17.0"}) {
		t.Errorf("%+v, %v", n, err)
	}
	for _, bad := range [][3]string{{"2", "2", "x"}, {"-1", "2", "x"}, {"0", "0", "x"}, {"0", "two", "x"}, {"0", "2", ""}, {"0", "2", "../x"}} {
		set(bad[0], bad[1], bad[2])
		if n, err := ThisNode(); err == nil {
			t.Errorf("%q is node %+v", bad, n)
		}
	}
}
