package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// readReplay reads the record of --replay, of whose decisions all must be about
// jobs and devices that are there.
func (s *study) readReplay(path string) error {
	if path == "" {
		return nil
	}
	if len(s.policies) > 1 {
		return usagef("simulate: --replay %s is compared with one policy, not with %d", path, len(s.policies))
	}
	if s.parts.round == 0 {
		return usagef("simulate: --replay %s is of rounds: --compat or --round says how long they are", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.replay, err = replay.Read(f, path, s.typeOf); err != nil {
		return &exitError{exitUsage, err}
	}
	jobs := map[spec.JobID]bool{}
	for i := range s.jobs {
		jobs[s.jobs[i].ID] = true
	}
	for _, id := range s.replay.Jobs() {
		if !jobs[id] {
			return usagef("simulate: --replay %s: job %s is not in the workload", path, id)
		}
	}
	return nil
}

// typeOf returns the accelerator of the cluster that a record calls by its name or
// by the suffix of Sia's tables.
func (s *study) typeOf(gpu string) (string, error) {
	name, err := datasets.SiaAccelerator(gpu)
	if a, known := catalog.Accelerator(gpu); known == nil {
		name, err = a.Name, nil
	}
	if err == nil && !slices.ContainsFunc(s.cluster.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == name }) {
		err = fmt.Errorf("gpu %q is %s, which the cluster does not have", gpu, name)
	}
	return name, err
}

// impose puts the record in the place of the policy of c. agents may be nil.
func (s *study) impose(c *sim.Config, agents *goodput.Agents) error {
	w, ok := c.Policy.(policy.Weigher)
	if !ok {
		return usagef("simulate: --replay: policy %s does not weigh decisions of others, but sia does", c.PolicyName)
	}
	p := replay.New(s.replay, w)
	if agents != nil {
		agents.Watch = p.Watch
	}
	c.Policy = p
	return nil
}

// writeReplay says how a run compares with its record.
func writeReplay(w io.Writer, r replay.Report) {
	fmt.Fprintf(w, "replay: %d of %d recorded rounds decided, %d of them nothing the policy could decide, %d better than it would have\n",
		r.Rounds, r.Recorded, r.Impossible, r.Better)
	fmt.Fprintf(w, "replay: decided worse by %.4g in all, %.4g at most, by more than %g in %d rounds\n", r.Gap, r.WidestGap, replay.WideGap, r.WideGaps)
	fmt.Fprintf(w, "replay: of %d times a job held devices in a round %d trained as recorded, %d were as far\n", r.JobRounds, r.Batches, r.Progress)
	if len(r.Differences) > 0 {
		fmt.Fprintf(w, "replay: first %s\n", strings.Join(r.Differences, "\nreplay: first "))
	}
}
