//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

const sharedStudy = `name: shared
cluster: 2x8
workloads: synthetic:jobs=40,per-hour=20
policies: [fifo, las]
loads: [0.5, 0.9]
seeds: 3
`

// sharedSweep is a study on a cluster.
type sharedSweep struct {
	t     *testing.T
	dir   string // of all its files
	flags []string
	env   []string
}

// sweep runs the study with results in a directory, and returns the command. Its output is JSON.
func (s *sharedSweep) sweep(out string, flags ...string) *exec.Cmd {
	args := slices.Concat([]string{"--data", filepath.Join(s.dir, "data"), "--output", "json", "sweep", "--out", filepath.Join(s.dir, out),
		"--runs-out", filepath.Join(s.dir, out+".csv")}, flags, []string{"study.yaml"})
	cmd := exec.Command(selfAs(s.t, "pacer"), args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	return cmd
}

// records returns the names of the records in a directory.
func (s *sharedSweep) records(out string) (names []string) {
	files, err := filepath.Glob(filepath.Join(s.dir, out, "*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return names
}

// check runs the study on the cluster, where it is killed once while its job runs on, and on this machine: output, table of
// runs and records have the same bytes.
func (s *sharedSweep) check() {
	s.t.Helper()
	writeFile(s.t, filepath.Join(s.dir, "study.yaml"), sharedStudy)
	want, err := s.sweep("local").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	var log bytes.Buffer
	killed := s.sweep("cluster", s.flags...)
	killed.Stderr = &log
	if err := killed.Start(); err != nil {
		s.t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); len(s.records("cluster")) == 0 && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if !strings.Contains(log.String(), "3 tasks on ") {
		s.t.Fatalf("no job:\n%s", log.String())
	}
	log.Reset()
	again := s.sweep("cluster", s.flags...)
	again.Stderr = &log
	got, err := again.Output()
	if err != nil || !bytes.Equal(got, want) {
		s.t.Fatalf("%v\n%s\non the cluster:\n%s\nhere:\n%s", err, log.String(), got, want)
	}
	if !strings.Contains(log.String(), "12 of 12 runs") || !strings.Contains(log.String(), "12 of them from before") {
		s.t.Errorf("not all runs were on the cluster:\n%s", log.String())
	}
	if got, want := s.records("cluster"), s.records("local"); !slices.Equal(got, want) || len(want) != 12 {
		s.t.Errorf("records %v on the cluster, %v here", got, want)
	}
	for _, name := range append(s.records("local"), "../local.csv") {
		want, err := os.ReadFile(filepath.Join(s.dir, "local", name))
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(s.dir, "cluster", strings.Replace(name, "local", "cluster", 1)))
		if err != nil || !bytes.Equal(got, want) {
			s.t.Errorf("%s: %v, it differs", name, err)
		}
	}
}

// TestE2ESlurmSweep runs a study as an array of a real Slurm.
func TestE2ESlurmSweep(t *testing.T) {
	slurmtest.Start(t, 2, 0)
	s := &sharedSweep{t: t, dir: t.TempDir(), flags: []string{"--on", "slurm", "--tasks", "3"}}
	s.check()
	for i := range 3 {
		log, err := os.ReadFile(filepath.Join(s.dir, "cluster", fmt.Sprintf("log.%d", i)))
		if err != nil || !strings.Contains(string(log), "sweep shared: 4 of 4 runs") {
			t.Errorf("log of task %d: %v\n%s", i, err, log)
		}
	}
}

// TestE2EKubernetesSweep runs a study as an indexed Job of a real Kubernetes. Its pods are processes of this machine.
func TestE2EKubernetesSweep(t *testing.T) {
	c := kubernetesCluster(t)
	s := &sharedSweep{t: t, dir: t.TempDir(), env: []string{"KUBECONFIG=" + c.Kubeconfig}}
	template := filepath.Join(s.dir, "pod.yaml")
	writeFile(t, template, "metadata: {annotations: {kubemin/run: \"true\"}}\nspec: {containers: [{name: pacer, image: pacer}]}\n")
	s.flags = []string{"--on", "kubernetes", "--tasks", "3", "--pod-template", template}
	s.check()
	if out := c.Kubectl(t, "", "get", "jobs", "-o", "jsonpath={.items[*].status.succeeded}"); out != "3" {
		t.Errorf("%q pods succeeded, want 3", out)
	}
}

// TestSweepShards: bad flags of parts are errors with the flag in them.
func TestSweepShards(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "study.yaml"), sharedStudy)
	for flags, want := range map[string]string{
		"--shard 3/3":            `--shard "3/3", want I/N`,
		"--shard x":              `--shard "x", want I/N`,
		"--shard task/3":         "not in a task of an array",
		"--shard 0/3 --on slurm": "--shard is set on the cluster by --on",
		"--on mesos":             `--on "mesos" is no cluster, want slurm or kubernetes`,
		"--on slurm --tasks 0":   "--tasks 0, want at least 1",
		"--on kubernetes":        "needs --pod-template",
		"--on kubernetes --tasks 2 --pod-template study.yaml": "pod template study.yaml",
	} {
		cmd := exec.Command(selfAs(t, "pacer"), slices.Concat([]string{"--data", dir, "sweep"}, strings.Fields(flags), []string{"study.yaml"})...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s\nwant %s", flags, err, out, want)
		}
	}
}
