//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

// TestE2ESlurmCampaign measures 40 points on the 4 nodes of a real Slurm, four at a time. Meanwhile slurmctld is restarted,
// a node goes down, and pacer is killed and started again. Each point has one row, or two if the first is in doubt.
func TestE2ESlurmCampaign(t *testing.T) {
	c := slurmtest.Start(t, 4, 0)
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "slurm.yaml")
	writeFile(t, file, `
name: slurm
models: [{name: gpt-a, kind: decoder, layers: 2, hidden: 32, ffn: 64, heads: 2, vocab: 128, seq_len: 16}]
space: {shapes: [1, 2], micro_batch: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]}
choose: adaptive
runner:
  name: command
  command: "sleep 4; for i in $(seq {steps}); do echo \"iteration $i/ {steps} | elapsed time per iteration (ms): $((100 + 40 * {mb} / {dp})).0 | global batch size: {gbs} |\"; done"
  warmup_steps: 2
  timed_steps: 6
`)
	s := &slurmSession{args: []string{selfAs(t, "pacer"), "--data", data, "profile", "run", file, "--on", "slurm", "--parallel", "4", "--devices", "cpu"}}
	s.at = map[int]func(cmd *exec.Cmd){
		8: func(*exec.Cmd) {
			c.RestartController(2 * time.Second) // pacer and the jobs go on without it
		},
		16: func(*exec.Cmd) {
			c.Run("scontrol", "update", "nodename="+c.Nodes[0], "state=down", "reason=test")
			time.AfterFunc(10*time.Second, func() { // it may have come back by itself
				_ = exec.Command("scontrol", "update", "nodename="+c.Nodes[0], "state=resume").Run()
			})
		},
		24: func(cmd *exec.Cmd) { _ = cmd.Process.Kill() },
	}
	if err := s.run(t); err == nil || s.killed == 0 {
		t.Fatalf("pacer was to be killed after 24 points, it ended with %v\n%s", err, strings.Join(s.text, "\n"))
	}
	// Nodes on one host disturb each other: if all points are in doubt, the run ends with exit code 4.
	if err := s.run(t); err != nil && s.exit != 4 {
		t.Fatalf("%v\n%s", err, strings.Join(s.text, "\n"))
	}
	db, err := store.Open(filepath.Join(data, "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := query.RowsOf(t.Context(), db, store.Filter{})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	points, on := map[profiler.Identity]int{}, map[string]int{}
	for _, m := range profiler.Latest(rows) { // a point in doubt is measured once more
		points[profiler.IdentityOf(m.Config)]++
		on[m.Env["node"]]++
		if m.Outcome != spec.OK {
			t.Errorf("%s: %s", campaign.PointName(m.Config), m.Reason)
		}
	}
	for id, n := range points {
		if n != 1 {
			t.Errorf("%d rows of %s", n, id)
		}
	}
	if len(rows) > 80 {
		t.Errorf("%d rows of 40 points, want at most 2 of each", len(rows))
	}
	if len(points) != 40 || len(on) != 4 {
		t.Errorf("%d points on the nodes %v, want 40 on 4", len(points), on)
	}
	if left, _ := os.ReadDir(filepath.Join(data, "jobs")); len(left) > 0 {
		t.Errorf("the directories of %d jobs are left", len(left))
	}
	t.Logf("rows by node: %v", on)
}

// slurmSession runs a campaign and does something at certain numbers of points, once each.
type slurmSession struct {
	args   []string
	at     map[int]func(cmd *exec.Cmd)
	points int
	killed int
	exit   int
	text   []string
}

func (s *slurmSession) run(t *testing.T) error {
	t.Helper()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Env = append(os.Environ(), "SBATCH_EXCLUSIVE=exclusive") // one point on a node, so that four need all nodes
	for line := range start(t, cmd) {
		s.text = append(s.text, line)
		if !strings.Contains(line, " ok ") {
			continue
		}
		s.points++
		if do := s.at[s.points]; do != nil {
			delete(s.at, s.points)
			do(cmd)
		}
	}
	err := cmd.Wait()
	s.exit = cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		s.killed++
	}
	return err
}
