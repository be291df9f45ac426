package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes/kubetest"
)

// TestE2EKubernetesTorch trains a network on a real Kubernetes, in one process that the kubelet of kubemin starts, under a policy
// that changes its plan: no step is repeated or skipped, and the loss is that of an uninterrupted run.
func TestE2EKubernetesTorch(t *testing.T) {
	needTorch(t)
	c, pacer, dir, steps := kubernetesCluster(t), pacerBinary(t), t.TempDir(), 400
	script := filepath.Join(moduleDir(t), "cmd/pacer/testdata/slurm/train.py")
	train := []string{"run", "--steps-file", filepath.Join(dir, "progress.json"), "--", "/usr/bin/python3", script, dir, fmt.Sprint(steps)}
	env := map[string]string{"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29519"}
	annotations := map[string]string{"model": "GPT2-small", "batch": "16", "steps": "1000000"}
	j := kubetest.Job("train", 1, 8, annotations, append([]string{pacer}, train...)...)
	grace := int64(60)
	j.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	container := &j.Spec.Template.Spec.Containers[0]
	container.Env = append(container.Env, core.EnvVar{Name: "PAUSE", Value: "0.1"})
	for name, value := range env {
		container.Env = append(container.Env, core.EnvVar{Name: name, Value: value})
	}
	c.Submit(t, j)
	var log syncBuffer
	nodes, data := c.Kubectl(t, "", "get", "nodes"), t.TempDir()
	args := []string{"--data", data, "schedule", "--on", "kubernetes", "--policy", "optimus:interval=1", "--start-cost", "1s", "--kubeconfig", c.Kubeconfig}
	cmd := exec.Command(pacer, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	mustStart(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	plans := func() (all []string) {
		for _, s := range trainedSteps(t, dir) {
			if len(all) == 0 || all[len(all)-1] != s.Plan {
				all = append(all, s.Plan)
			}
		}
		return all
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(spectest.Patience(30 * time.Second)); !holds(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not reached: %s; plans %q\n%s", what, plans(), log.String())
			}
		}
	}
	until("training", func() bool { return len(trainedSteps(t, dir)) >= 20 })
	for i := range 3 { // others make it smaller
		c.Submit(t, kubetest.Job(fmt.Sprintf("other%d", i), 1, 8, annotations))
	}
	until("training with another plan", func() bool { return len(plans()) >= 2 })
	writeFile(t, filepath.Join(dir, "hurry"), "")
	until("the end", func() bool { return len(trainedSteps(t, dir)) == steps })
	kubetest.Wait(t, "the job completes", func() error {
		j, err := c.Client.BatchV1().Jobs("default").Get(t.Context(), "train", meta.GetOptions{})
		if err == nil && j.Status.Succeeded != 1 {
			err = fmt.Errorf("%+v", j.Status)
		}
		return err
	})
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("schedule after SIGTERM: %v", err)
	}
	alone := t.TempDir()
	for i, arg := range train {
		train[i] = strings.ReplaceAll(arg, dir, alone)
	}
	single := exec.Command(pacer, train...)
	single.Env = append(os.Environ(), "PACER_PLAN=dp=1,mb=16")
	for name, value := range env {
		single.Env = append(single.Env, name+"="+value)
	}
	if out, err := single.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, want := trainedSteps(t, dir), trainedSteps(t, alone)
	if len(got) != steps || len(want) != steps {
		t.Fatalf("%d steps, %d uninterrupted, want %d", len(got), len(want), steps)
	}
	trained := sameTraining(t, got, want)
	keepTranscript(t, "live-kubernetes.txt", fmt.Sprintf("$ kubectl get nodes\n%s\n$ kubectl apply -f train.yaml\n\n$ pacer %s\n%s\nWhat the job trained:\n\n%s\n$ kubectl get job train\n%s",
		nodes, strings.Join(args, " "), log.String(), trained, c.Kubectl(t, "", "get", "job", "train")), dir, "JOB", pacer, "pacer", script, "train.py", c.Kubeconfig, "KUBECONFIG", data, "DIR")
}
