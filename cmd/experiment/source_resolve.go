package experiment

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// resolveSources makes truth, belief and failures. Defaults follow from the workload's
// format.
func (s *Simulation) resolveSources(ctx context.Context, format string) error {
	o := &s.options
	name, err := s.resolveTruth(ctx, format)
	if err != nil {
		return err
	}
	if err := s.resolveBelief(ctx, name); err != nil {
		return err
	}
	if s.truth.predictor == nil && (s.belief.predictor != nil || s.belief.learning != nil) {
		return invalidBelief(name, s.belief.Name)
	}
	if err := s.checkServers(); err != nil {
		return err
	}
	if s.Jobs, err = s.prepare(ctx, s.Jobs); err != nil {
		return err
	}
	if err = s.calibrate(ctx); err != nil {
		return err
	}
	if l := s.belief.learning; l != nil {
		if err := l.profile(ctx, s); err != nil {
			return err
		}
		if s.perfect, err = s.newSource(ctx, "belief", name); err != nil {
			return err
		}
	}
	startCost := s.composition.mode.StartCost
	if strings.HasPrefix(name, "rubick:") {
		startCost = cmp.Or(startCost, rubickStartCost)
	}
	if s.recorded != nil {
		startCost = cmp.Or(startCost, s.recorded.startCost())
	}
	if s.failures, err = s.readFailureOptions(o, startCost); err == nil {
		s.recordedFailures()
	}
	return err
}

// rubickStartCost is the constant of the simulator its authors published
// (AlibabaPAI/reconfigurable-dl-scheduler at commit 80e8524).
const rubickStartCost = 260 * time.Second

// resolveTruth makes the truth and returns its name.
func (s *Simulation) resolveTruth(ctx context.Context, format string) (name string, err error) {
	o := &s.options
	if s.truth = o.Given.Truth; s.truth != nil {
		return s.truth.Name, nil
	}
	if name = o.Truth; name == "" {
		switch format {
		case "rubick":
			name = "rubick:measured"
		case "recording":
			name = "fitted:" + analytic.Family.Name
		case "gavel", "gavel-trace":
			return "", invalid("workload", s.Workload, "of format %s needs {truth} gavel:FILE (a throughput table) or another truth", format)
		case "pollux", "sia":
			return "", invalid("workload", s.Workload, ": jobs of %s train for epochs, not for a time or a number of steps: {truth} goodput:DIR, a clone of petuum/adaptdl (branch osdi21-artifact) or siasosp23/artifacts, says how fast", s.Workload)
		case "dl2":
			return "", invalid("workload", s.Workload, ": jobs of %s train with parameter servers: {truth} dl2:PATH, the directory of ps_speed.csv of pengyanghua/DL2, says how fast", s.Workload)
		default:
			name = "duration"
		}
	}
	s.truth, err = s.newSource(ctx, "truth", name)
	return name, err
}

// resolveBelief makes the belief under a truth of a name.
func (s *Simulation) resolveBelief(ctx context.Context, truth string) (err error) {
	o := &s.options
	if s.belief = o.Given.Belief; s.belief != nil {
		return nil
	}
	if o.Given.Truth != nil && (o.Belief == "" || o.Belief == "perfect") {
		s.belief = o.Given.Truth
		return nil
	}
	name := o.Belief
	if name == "" {
		name = "perfect"
		if strings.HasPrefix(truth, "rubick:") {
			name = "fitted:rubick"
		}
	}
	ownModels := s.composition.mode.Parts().OwnModels() && s.truth.tables != nil
	s.pooled = name == "pooled"
	switch {
	case s.pooled && !ownModels:
		return invalid("belief", name, "uses the observations of jobs: it needs {truth} goodput:DIR and a {compat} with quirk own-models")
	case ownModels && !s.pooled && o.Belief != "":
		return invalid("belief", name, ": with quirk own-models of {compat} %s policies use the observations of jobs: leave it out, or pool them with {belief} pooled", s.composition.mode.Name)
	}
	if name == "perfect" || s.pooled {
		name = truth
	}
	if sigma, noisy := strings.CutPrefix(name, "noisy:"); noisy {
		s.belief, err = s.noisyBelief(ctx, truth, sigma)
		return err
	}
	s.belief, err = s.newBelief(ctx, name)
	return err
}

func invalidBelief(truth, belief string) error {
	return invalid("belief", belief, "cannot be used with {truth} %s, which has no speeds of other sizes and plans", truth)
}

// checkServers reports jobs with parameter servers under a truth that does not know
// them, and other jobs under a truth of parameter servers.
func (s *Simulation) checkServers() error {
	with := func(j spec.Job) bool { return j.HasParamServers() }
	count := 0
	for i := range s.Jobs {
		if with(s.Jobs[i]) {
			count++
		}
	}
	switch {
	case count > 0 && s.truth.servers == nil:
		first := s.Jobs[slices.IndexFunc(s.Jobs, with)].ID
		return invalid("truth", s.truth.Name, "cannot run %s, %s first, that train with parameter servers: use dl2:PATH", spec.Count(count, "job"), first)
	case count < len(s.Jobs) && s.truth.servers != nil:
		return invalid("truth", s.truth.Name, "knows only jobs with parameter servers; without them: %s", spec.Count(len(s.Jobs)-count, "job"))
	}
	for _, g := range s.Cluster.Groups {
		if s.truth.servers != nil && g.CPUs < 1 {
			return invalid("truth", s.truth.Name, ": parameter servers run on CPUs, how many do nodes of %s have? Such as {cluster} 48x2xGTX1080Ti/8cpus", g.Accelerator.Name)
		}
	}
	return nil
}
