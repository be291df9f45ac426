//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

// TestE2ESSHCampaign trains with PyTorch on two hosts, one process each, that a real sshd lets in.
func TestE2ESSHCampaign(t *testing.T) {
	startHosts(t, "host-a", "host-b")
	rows := nodesCampaign(t, `
name: hosts
models: [{name: gpt-a, kind: decoder, layers: 2, hidden: 64, ffn: 128, heads: 2, vocab: 256, seq_len: 32}]
space: {shapes: [1, 1+1], micro_batch: [2]}
point: {max_time: 1s}
`, "--on", "ssh", "--hosts", "host-a,host-b", "--node-network-gbps", "10")
	on := map[string]int{}
	for _, m := range rows {
		on[m.Config.Shape.Devices]++
		if m.Outcome != spec.OK || m.Config.Link.InterBps != 10e9/8 || m.Env["node"] != "host-a" {
			t.Errorf("%s on %s: %s, %s, network %g", m.Config.Plan, m.Env["node"], m.Outcome, m.Reason, m.Config.Link.InterBps)
		}
	}
	if on["1"] == 0 || on["1+1"] == 0 {
		t.Errorf("rows by shape: %v, want some of 1 and 1+1", on)
	}
}

// TestE2ESlurmNodes measures a user's command on two nodes of a real Slurm.
func TestE2ESlurmNodes(t *testing.T) {
	slurmtest.Start(t, 2, 0)
	checkTogether(t, nodesCampaign(t, together, "--on", "slurm"))
}

// TestE2EKubernetesNodes measures it on two nodes of a real Kubernetes. Its pods are processes of this machine.
func TestE2EKubernetesNodes(t *testing.T) {
	c := kubernetesCluster(t)
	t.Setenv("KUBECONFIG", c.Kubeconfig)
	template := filepath.Join(t.TempDir(), "pod.yaml")
	writeFile(t, template, "metadata: {annotations: {kubemin/run: \"true\"}}\nspec: {containers: [{name: pacer, image: pacer}]}\n")
	checkTogether(t, nodesCampaign(t, together, "--on", "kubernetes", "--pod-template", template))
}

// together is a campaign of a command that ends only if it runs on both nodes.
const together = `
name: nodes
models: [{name: gpt-a, kind: decoder, layers: 2, hidden: 32, ffn: 64, heads: 2, vocab: 128, seq_len: 16}]
space: {shapes: [1+1], micro_batch: [1, 2]}
point: {timeout: 60s}
runner:
  name: command
  command: |
    echo {address}:{port} > {out}/{node}
    until cmp {out}/0 {out}/1; do sleep 0.1; done
    if [ {node} = 0 ]; then
      for i in $(seq {steps}); do echo "iteration $i/ {steps} | elapsed time per iteration (ms): $((100 * {mb})).0 | global batch size: {gbs} |"; done
    fi
  warmup_steps: 2
  timed_steps: 6
`

func checkTogether(t *testing.T, rows []spec.Measurement) {
	t.Helper()
	if len(rows) < 2 {
		t.Errorf("%d rows, want 2 points", len(rows))
	}
	for _, m := range rows {
		if want := 0.1 * float64(m.Config.Plan.MicroBatch); m.Outcome != spec.OK || m.MedianStepSec() != want || m.Config.Shape.Nodes() != 2 {
			t.Errorf("%s: %s, %s, %g s, want %g on 2 nodes", m.Config.Plan, m.Outcome, m.Reason, m.MedianStepSec(), want)
		}
	}
}

// nodesCampaign runs a campaign on two nodes and returns its rows.
func nodesCampaign(t *testing.T, text string, args ...string) []spec.Measurement {
	t.Helper()
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "nodes.yaml")
	writeFile(t, file, text)
	cmd := exec.Command(selfAs(t, "pacer"), append([]string{"--data", data, "profile", "run", file, "--nodes", "2", "--devices", "cpu"}, args...)...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != 4 { // 4: all rows are in doubt, since the hosts are one machine
		t.Fatalf("%v\n%s", err, out)
	}
	db, err := store.Open(filepath.Join(data, "store"), store.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	defer db.Close()
	rows, err := query.RowsOf(t.Context(), db, store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(data, "jobs")); len(left) > 0 {
		t.Errorf("the directories of %d jobs are left", len(left))
	}
	return rows
}

// startHosts starts an sshd for each name on this machine, with a directory for temporary files of its own, and puts an ssh on
// PATH that knows them. Without sshd the test is skipped; it fails if CI is true.
func startHosts(t *testing.T, names ...string) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		spectest.Lacks(t, "no sshd on this machine: apt-get install openssh-server")
	}
	if os.Getuid() != 0 {
		spectest.Lacks(t, "sshd runs for tests as root only")
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		spectest.Lacks(t, "no ssh on this machine: apt-get install openssh-client")
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where it separates privileges
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at("key")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var config strings.Builder
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if err := os.Mkdir(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, at(name+".conf"), fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nPermitRootLogin yes\nSetEnv TMPDIR=%s\n",
			port, at("key"), at("key.pub"), at(name)))
		cmd := exec.Command(sshd, "-D", "-e", "-f", at(name+".conf"))
		mustStart(t, cmd)
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		fmt.Fprintf(&config, "Host %s\n  Port %d\n", name, port)
	}
	fmt.Fprintf(&config, "Host *\n  HostName 127.0.0.1\n  User root\n  IdentityFile %s\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n", at("key"))
	writeFile(t, at("config"), config.String())
	if err := os.Mkdir(at("bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	spectest.WriteFile(t, at("bin/ssh"), fmt.Appendf(nil, "#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, at("config")), 0o755)
	t.Setenv("PATH", at("bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range names {
		for try := 1; ; try++ {
			out, err := exec.Command("ssh", name, "true").CombinedOutput()
			if err == nil {
				break
			}
			if try == 100 {
				t.Fatalf("%v\n%s", err, out)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// TestClusterFlags: bad flags of clusters are errors that name the flag.
func TestClusterFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodes.yaml")
	writeFile(t, file, "name: nodes\nmodels: [GPT2-small]\nspace: {shapes: [1]}\n")
	for flags, want := range map[string]string{
		"--on mesos":                  `--on "mesos" is no cluster, want slurm, kubernetes or ssh`,
		"--on ssh":                    "--hosts: ssh: no hosts",
		"--on ssh --hosts a,a":        "host a is listed twice",
		"--on ssh --hosts a --gpus 8": `--gpus is not for --on "ssh"`,
		"--on slurm --hosts a":        `--hosts is not for --on "slurm"`,
		"--hosts a":                   `--hosts is not for --on ""`,
		"--parallel 2":                "--parallel needs --on",
		"--on kubernetes":             "needs --pod-template",
		"--nodes 2":                   `--nodes "2" needs the nodes`,
		"--nodes 0":                   "--nodes 0 is not in 1..4096",
		"--node-network-gbps -1":      "--node-network-gbps -1 is not in (0, 1e6]",
		"--on slurm --assume 8xH100 --devices cpu": "conflicts with --on",
	} {
		cmd := exec.Command(selfAs(t, "pacer"), append(append([]string{"--data", t.TempDir(), "profile", "run"}, strings.Fields(flags)...), file)...)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s\nwant %s", flags, err, out, want)
		}
	}
}
