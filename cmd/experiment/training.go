package experiment

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/learn"
	"github.com/pacer-ml/pacer/scheduler/policy/dl2"
)

// Training is a training of policy dl2 on simulated workloads.
type Training struct {
	learn.Options
	sim    *Simulation
	oracle scheduler.Oracle // shared by all episodes, so that each prediction is made once
}

// NewTraining reads everything that o names. Errors are *FieldError where an option is at
// fault.
func NewTraining(ctx context.Context, o TrainingOptions) (*Training, error) {
	t := &Training{Options: o.Learn}
	t.Supervised.Rounds = min(t.Supervised.Rounds, max(t.Supervised.Updates, 1))
	simulation := o.Simulation
	if simulation.Policy = "dl2"; t.Supervised.Updates > 0 {
		simulation.Policy = t.Supervised.Teacher
	}
	var err error
	if t.sim, err = New(ctx, simulation); err != nil {
		return nil, err
	}
	if belief := t.sim.belief; belief.learning != nil || t.sim.agents() != nil {
		return nil, invalid("belief", belief.Name, "changes in the course of a run: dl2 is trained with one that does not")
	} else if belief.predictor != nil {
		t.oracle = newOracle(belief, t.sim.truth, simulation.Seed)
	}
	t.Seed, t.Form.Types = simulation.Seed, t.sim.Models()
	t.Form.Servers = slices.ContainsFunc(t.sim.Jobs, func(j spec.Job) bool { return j.HasParamServers() })
	if err := t.Validate(); err != nil {
		return nil, invalidBecause("set", "", err)
	}
	return t, nil
}

// Episode makes the simulation of a number: with jobs of a seed of its own if they are
// synthetic, else with those of the workload in another order.
func (t *Training) Episode(ctx context.Context, number int) (learn.Episode, error) {
	sim, err := t.forEpisode(ctx, number)
	if err != nil {
		return learn.Episode{}, err
	}
	f, err := sim.Runs()[0].Frame(ctx)
	if t.oracle != nil {
		f.Deps.Oracle = t.oracle
	}
	return learn.Episode{Config: f.Config, Deps: f.Deps}, err
}

func (t *Training) forEpisode(ctx context.Context, number int) (*Simulation, error) {
	seed := learn.EpisodeSeed(t.Seed, number)
	if t.sim.Drawn() {
		return t.sim.ForSeed(ctx, seed)
	}
	sim, err := t.sim.WithJobs(ctx, learn.Resample(t.sim.Jobs, t.Seed, number))
	if err == nil {
		sim.Seed = seed
	}
	return sim, err
}

// Origin says how the policy was trained, for its file.
func (t *Training) Origin(version string) map[string]string {
	teacher := "none"
	if t.Supervised.Updates > 0 {
		teacher = t.Supervised.Teacher
	}
	return map[string]string{
		"workload": t.sim.Workload, "cluster": ClusterText(t.sim.Cluster), "truth": t.sim.truth.Name, "belief": t.sim.belief.Name,
		"teacher": teacher, "updates": strconv.Itoa(t.Supervised.Updates), "iterations": strconv.Itoa(t.Reinforced.Iterations),
		"reward": string(t.Reinforced.Reward), "seed": strconv.FormatUint(t.Seed, 10), "pacer": version,
	}
}

// TrainingError marks a policy that a training cannot continue as a wrong option.
func TrainingError(err error) error {
	if errors.Is(err, dl2.ErrOtherForm) {
		return invalidBecause("from", "", err)
	}
	return err
}
