package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live/livetest"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
	"github.com/pacer-ml/pacer/scheduler/live/slurm/slurmtest"
)

// actor plays the processes of jobs.
type actor struct {
	*slurm.Cluster
	real *slurmtest.Cluster
	dir  string // of the files that let jobs end
}

// Submit implements livetest.Actor: nodes have 2 GPUs.
func (a *actor) Submit(j *spec.Job) error {
	nodes := (j.Devices + 1) / 2
	script := fmt.Sprintf("#!/bin/bash\ntrap 'exit 0' TERM\nuntil [ -e %s/$SLURM_JOB_ID ]; do sleep 0.1; done\n", a.dir)
	id := a.real.Submit(script, fmt.Sprintf("-n%d", nodes), fmt.Sprintf("-N%d", nodes), fmt.Sprintf("--gres=gpu:%d", j.Devices/nodes),
		fmt.Sprintf("--comment=pacer:model=%s,steps=%g,plan=tp=%d", j.Model.Name, j.Steps, j.Devices))
	if id != string(j.ID) {
		return fmt.Errorf("job %s is submitted as %s", j.ID, id)
	}
	return nil
}

// End implements livetest.Actor.
func (a *actor) End(id spec.JobID) error {
	return os.WriteFile(filepath.Join(a.dir, string(id)), nil, 0o600)
}

// Hurry implements livetest.Actor.
func (a *actor) Hurry(spec.JobID) error { return nil }

// TestConformance runs a trace in the simulator and on a real Slurm, with jobs that end by the clock of the trace: every
// policy is called at the same times with the same jobs, and decides the same. PACER_SOAK runs 30 jobs under all policies.
func TestConformance(t *testing.T) {
	n, policies := 5, []string{"srtf", "rubick"}
	if livetest.Soak() {
		n, policies = 30, livetest.Conforming
	}
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			real := slurmtest.Start(t, 2, 2)
			o := options()
			o.Model = livetest.Model
			engine, err := slurm.New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			state, err := engine.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tr := livetest.NewTraceOn(state.Nodes, n, 7)
			tr.Even = true
			for i := range tr.Jobs {
				j := &tr.Jobs[i]
				j.ID = spec.JobID(strconv.Itoa(i + 1))
				j.Host = spec.Host{MilliCPUs: 1000, Bytes: 100 << 20} // a CPU with 100 MiB on each node
				if j.Devices > 1 {
					j.Host = spec.Host{MilliCPUs: 500, Bytes: 50 << 20}
				}
			}
			m := livetest.NewMirror(tr, &actor{engine, real, t.TempDir()})
			m.Violation = func(text string) { t.Errorf("at %v: %s", m.Now(), text) }
			tr.Conform(t, m, policy, nil)
		})
	}
}
