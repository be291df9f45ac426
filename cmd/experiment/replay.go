package experiment

import (
	"fmt"
	"os"
	"slices"

	"github.com/pacer-ml/pacer/datasets"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/goodput"
	"github.com/pacer-ml/pacer/scheduler/policy/sia"
	"github.com/pacer-ml/pacer/scheduler/replay"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// readReplay reads recorded decisions, which must be about jobs of the workload and
// accelerators of the cluster.
func (s *Simulation) readReplay(path string) error {
	switch {
	case path == "":
		return nil
	case len(s.Policies) > 1:
		return invalid("replay", path, "is compared with one policy, not with %d", len(s.Policies))
	case s.composition.round == 0:
		return invalid("replay", path, "is of rounds: {compat} or {round} says how long they are")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.replay, err = replay.Read(f, path, s.acceleratorOf); err != nil {
		return invalidBecause("replay", path, err)
	}
	jobs := map[spec.JobID]bool{}
	for i := range s.Jobs {
		jobs[s.Jobs[i].ID] = true
	}
	for _, id := range s.replay.Jobs() {
		if !jobs[id] {
			return invalid("replay", path, ": job %s is not in the workload", id)
		}
	}
	return nil
}

// acceleratorOf returns the accelerator of the cluster that a record names: by a name of
// the catalog, or the suffix of Sia's tables.
func (s *Simulation) acceleratorOf(gpu string) (string, error) {
	name, err := datasets.SiaAccelerator(gpu)
	if a, known := catalog.Accelerator(gpu); known == nil {
		name, err = a.Name, nil
	}
	if err == nil && !s.hasAccelerator(name) {
		err = fmt.Errorf("gpu %q is %s, which the cluster does not have", gpu, name)
	}
	return name, err
}

// hasAccelerator reports whether the cluster has devices of a type.
func (s *Simulation) hasAccelerator(name string) bool {
	return slices.ContainsFunc(s.Cluster.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == name })
}

// impose replaces the policy of c by the recorded decisions. agents may be nil.
func (s *Simulation) impose(c *sim.Config, agents *goodput.Agents) error {
	w, ok := c.Policy.(sia.Weigher)
	if !ok {
		return invalid("replay", s.options.Replay, ": policy %s does not weigh decisions of others, but sia does", c.PolicyName)
	}
	p := replay.New(s.replay, w)
	if agents != nil {
		agents.Watch = p.Watch
	}
	c.Policy = p
	return nil
}
