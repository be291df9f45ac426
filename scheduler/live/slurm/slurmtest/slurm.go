package slurmtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// Cluster is a running Slurm. SLURM_CONF of the test's environment names it.
type Cluster struct {
	t          testing.TB
	dir        string
	controller *daemon
	Port       int // of slurmctld; those of the nodes follow
	// Nodes are the names of the nodes: a100 nodes first, then v100 nodes.
	Nodes []string
}

// programs are needed to run Slurm.
var programs = []string{"slurmctld", "slurmd", "munged", "sbatch", "scontrol", "squeue", "sinfo"}

// Start starts Slurm with some nodes of type a100 and of type v100, each with 2 GPUs, 4 CPUs and
// 4000 MiB, and stops it at the end of the test. Without Slurm, or unless root, the test is
// skipped; it fails if CI is true. jobSubmit, if given, is the job_submit.lua of slurmctld.
func Start(t testing.TB, a100, v100 int, jobSubmit ...string) *Cluster {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			spectest.Lacks(t, "no "+p+" on this machine: apt-get install slurm-wlm munge")
		}
	}
	if os.Getuid() != 0 {
		spectest.Lacks(t, "Slurm runs for tests as root only")
	}
	dir, err := os.MkdirTemp("", "slurm") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, dir: dir, Port: freePorts(1 + a100 + v100)}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("SLURM_CONF", c.path("slurm.conf"))
	c.configure(a100, v100)
	for _, text := range jobSubmit {
		c.write("job_submit.lua", text, 0o644)
		conf, err := os.ReadFile(c.path("slurm.conf"))
		if err != nil {
			t.Fatal(err)
		}
		c.write("slurm.conf", string(conf)+"JobSubmitPlugins=lua\n", 0o644)
	}
	c.start("munged", "--foreground", "--force", "--key-file="+c.path("munge.key"), "--socket="+c.path("munge.sock"),
		"--pid-file="+c.path("munged.pid"), "--log-file="+c.path("munged.log"), "--seed-file="+c.path("munge.seed"))
	c.waitFor("munge.sock", func() bool { _, err := os.Stat(c.path("munge.sock")); return err == nil })
	c.startController()
	t.Cleanup(func() { c.controller.stop() })
	for _, n := range c.Nodes {
		c.start("slurmd", "-D", "-N", n)
	}
	c.waitFor("idle nodes", func() bool {
		out, _ := exec.Command("sinfo", "-h", "-t", "idle", "-p", "all", "-o", "%D").Output()
		return strings.TrimSpace(string(out)) == strconv.Itoa(len(c.Nodes))
	})
	t.Cleanup(func() {
		_ = exec.Command("scancel", "-s", "KILL", "-u", "root").Run()
		_ = exec.Command("scancel", "-u", "root").Run()
		for end := time.Now().Add(spectest.Patience(3 * time.Second)); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if out, err := exec.Command("squeue", "-h").Output(); err != nil || len(out) == 0 {
				return
			}
		}
	})
	return c
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// freePorts returns the first of n ports in a row, which are free most likely: they follow from
// the process ID, outside the range that the kernel gives out.
func freePorts(n int) int {
	return 10000 + (os.Getpid()*(n+1))%20000
}

func (c *Cluster) write(name, text string, mode os.FileMode) {
	if err := os.WriteFile(c.path(name), []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
}

// configure writes the files of Slurm and munge.
func (c *Cluster) configure(a100, v100 int) {
	host, err := os.Hostname()
	if err != nil {
		c.t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	var nodes, gres strings.Builder
	add := func(typ string, n int) {
		for i := range n {
			name := fmt.Sprintf("%s-%d", typ[:1], i+1)
			fmt.Fprintf(&nodes, "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 Gres=gpu:%s:2 State=UNKNOWN\n",
				name, host, c.Port+1+len(c.Nodes), typ)
			fmt.Fprintf(&gres, "NodeName=%s Name=gpu Type=%s File=%s\n", name, typ, c.path("gpu[0-1]"))
			c.Nodes = append(c.Nodes, name)
		}
	}
	add("a100", a100)
	add("v100", v100)
	c.write("gpu0", "", 0o600)
	c.write("gpu1", "", 0o600)
	c.write("munge.key", strings.Repeat("a key of tests, of at least 32 bytes. ", 30), 0o400)
	c.write("gres.conf", gres.String(), 0o644)
	// MinJobAge: jobs that ended stay known, however long a test takes.
	c.write("slurm.conf", fmt.Sprintf(`ClusterName=test
SlurmctldHost=%s(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%s
CredType=cred/munge
SlurmctldPort=%d
StateSaveLocation=%s
SlurmdSpoolDir=%s-%%n
SlurmctldPidFile=%s
SlurmdPidFile=%s-%%n.pid
SlurmctldLogFile=%s
SlurmdLogFile=%s-%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
ReturnToService=2
MinJobAge=100000
MessageTimeout=100
SlurmdTimeout=300
BatchStartTimeout=300
KillWait=20
InactiveLimit=0
MpiDefault=none
MailProg=/bin/true
GresTypes=gpu
SlurmdParameters=config_overrides
%sPartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`, host, c.path("munge.sock"), c.Port, c.path("state"), c.path("spool"), c.path("slurmctld.pid"), c.path("slurmd"),
		c.path("slurmctld.log"), c.path("slurmd"), nodes.String()), 0o644)
	if err := os.Mkdir(c.path("state"), 0o700); err != nil {
		c.t.Fatal(err)
	}
}

// daemon is a program that runs in the foreground.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// stop ends the program, which may save its state for some seconds.
func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(spectest.Patience(5 * time.Second)):
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
}

// start starts a program, and ends it with the test.
func (c *Cluster) start(name string, args ...string) {
	c.t.Cleanup(c.run(name, args...).stop)
}

// run starts a program.
func (c *Cluster) run(name string, args ...string) *daemon {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.OpenFile(c.path("out-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	d := &daemon{cmd, make(chan struct{})}
	go func() { _ = cmd.Wait(); _ = log.Close(); close(d.ended) }()
	return d
}

// startController starts slurmctld.
func (c *Cluster) startController() { c.controller = c.run("slurmctld", "-D", "-i") }

// RestartController stops slurmctld and starts it a while later.
func (c *Cluster) RestartController(after time.Duration) {
	c.controller.stop()
	time.Sleep(after)
	c.startController()
}

// Run runs a command and returns what it writes.
func (c *Cluster) Run(name string, args ...string) string {
	c.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Submit submits a script, held, and returns the ID of the job.
func (c *Cluster) Submit(script string, args ...string) string {
	c.t.Helper()
	file := c.path(fmt.Sprintf("job%d.sh", time.Now().UnixNano()))
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
		c.t.Fatal(err)
	}
	args = append([]string{"--parsable", "--hold", "--requeue", "--open-mode=append", "-D", c.dir, "-o", c.path("job-%j.out"), "--mem-per-cpu=100"}, append(args, file)...)
	return c.Run("sbatch", args...)
}

// Output returns what a job has written.
func (c *Cluster) Output(id string) string {
	b, _ := os.ReadFile(c.path("job-" + id + ".out"))
	return string(b)
}

// Log returns the lines of the log of slurmctld that have a text.
func (c *Cluster) Log(text string) (out string) {
	b, _ := os.ReadFile(c.path("slurmctld.log"))
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, text) {
			out += line
		}
	}
	return out
}

// waitFor waits until a condition holds.
func (c *Cluster) waitFor(what string, holds func() bool) {
	c.t.Helper()
	for end := time.Now().Add(spectest.Patience(30 * time.Second)); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			logs, _ := filepath.Glob(c.path("*.log"))
			for _, l := range logs {
				b, _ := os.ReadFile(l)
				c.t.Logf("%s:\n%.3000s", l, b)
			}
			c.t.Fatalf("slurmtest: no %s", what)
		}
	}
}
