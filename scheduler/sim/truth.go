package sim

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
)

// Truth has the true speeds of jobs. Only the engine uses it; policies never see it. An
// error ends the run: the policy granted a configuration that the truth does not cover.
// Arguments are not modified and not kept.
type Truth interface {
	// Steps returns the work of j in optimizer steps.
	Steps(ctx context.Context, j *spec.Job) (float64, error)
	// StepsPerSec returns the speed of j on g, with devices in group.
	StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error)
}

// Staged is a Truth of jobs with several speeds. The engine uses Stages instead of
// StepsPerSec, which is then a mean.
type Staged interface {
	Truth
	// Stages returns the speeds of j on g, with devices in group, by steps done:
	// ascending; the last one lasts to the end of the work. The engine does not modify
	// them.
	Stages(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) ([]Stage, error)
}

// Stage is a part of a job's work at one speed.
type Stage struct {
	Until float64 // steps done at its end; ignored for the last
	Rate  float64 // steps/s
}

// Predicted is the truth of a performance model or a table of measurements.
type Predicted struct {
	Predictor perfmodel.Predictor
	Cluster   spec.Cluster // of the grants, and for jobs known only by duration
	// Pairs has the speeds of jobs that share devices; nil = no two jobs may.
	Pairs scheduler.Colocator
}

// Steps returns the steps of j. For a job known only by duration they follow from the
// speed at the requested devices and plan, on the first group with the requested
// accelerator that can be predicted.
func (t Predicted) Steps(ctx context.Context, j *spec.Job) (float64, error) {
	if j.Steps > 0 {
		return j.Steps, nil
	}
	err := fmt.Errorf("sim: job %s: no group has accelerator %q", j.ID, j.Accelerator)
	for i := range t.Cluster.Groups {
		group := &t.Cluster.Groups[i]
		if !j.Accepts(group) {
			continue
		}
		g := scheduler.Grant{Job: j.ID, Plan: j.Plan, Shape: spec.Packed(j.Devices, group.Devices)}
		var rate float64
		if rate, err = t.StepsPerSec(ctx, j, &g, group); err == nil {
			return rate * j.Duration.Seconds(), nil
		}
	}
	return 0, fmt.Errorf("job with only a duration: %w", err)
}

// StepsPerSec uses the predictor. A plan with another global batch than the job's is an
// error, beyond the remainder that replicas and micro-batches cannot divide evenly.
// With parameter servers any batch is one step: their measurements have batches that
// do not divide.
func (t Predicted) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	if err := sameBatch(j, g); err != nil {
		return 0, err
	}
	pred, err := t.Predictor.Predict(ctx, t.config(j, g, group))
	if err != nil {
		return 0, err
	}
	if j.HasParamServers() {
		return pred.Throughput / float64(g.Plan.GlobalBatch()), nil
	}
	return pred.Throughput / float64(j.Batch()), nil
}

// StepsPerSecBeside implements Colocated with Pairs.
func (t Predicted) StepsPerSecBeside(_ context.Context, j *spec.Job, g *scheduler.Grant, other *spec.Job, otherGrant *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	if t.Pairs == nil {
		return 0, errors.New("the truth has no speeds of jobs that share devices")
	}
	if err := sameBatch(j, g); err != nil {
		return 0, err
	}
	rate, err := t.Pairs.Beside(t.config(j, g, group), t.config(other, otherGrant, group))
	return rate / float64(j.Batch()), err
}

func sameBatch(j *spec.Job, g *scheduler.Grant) error {
	p := g.Plan.Normal()
	if got, want := p.GlobalBatch(), j.Batch(); max(got-want, want-got) >= p.DP*p.AccumSteps {
		return fmt.Errorf("plan %s trains %d samples per step, the job %d", g.Plan, got, want)
	}
	return nil
}

// config returns the configuration of j on g.
func (t Predicted) config(j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) spec.Config {
	link := group.Link
	if n := len(g.Slots); n > 1 && group.Racks != (spec.Racks{}) {
		link = t.Cluster.LinkOf(g.Slots[0].Node, g.Slots[n-1].Node)
	}
	return spec.Config{
		Model: j.Model, SeqLen: j.SeqLen, Plan: g.Plan,
		Accelerator: group.Accelerator, Shape: g.Shape, Link: link,
	}
}

// Lookups counts the answers of the predictor, zeros if it does not count.
func (t Predicted) Lookups() (exact, interpolated, modelled int) {
	if l, ok := t.Predictor.(lookups); ok {
		return l.Lookups()
	}
	return 0, 0, 0
}

// lookups is a Truth or Predictor that counts its answers by kind.
type lookups interface {
	Lookups() (exact, interpolated, modelled int)
}

// Durations is the truth of a trace with run times: every job takes its Duration on its
// requested number of devices, on any placement. Other numbers are an error. For a job
// without steps, a step is a second.
type Durations struct {
	// Speeds divide the Duration of every job on an accelerator, by name; 1 if absent.
	// Above 0.
	Speeds map[string]float64
}

func (Durations) Steps(_ context.Context, j *spec.Job) (float64, error) {
	if j.Steps > 0 {
		return j.Steps, nil
	}
	return j.Duration.Seconds(), nil
}

func (d Durations) StepsPerSec(ctx context.Context, j *spec.Job, g *scheduler.Grant, group *spec.NodeGroup) (float64, error) {
	if j.Duration <= 0 {
		return 0, fmt.Errorf("no duration is recorded")
	}
	if n := g.Devices(); n != j.Devices {
		return 0, fmt.Errorf("%d devices granted, the recorded duration is for %d", n, j.Devices)
	}
	steps, err := d.Steps(ctx, j)
	rate := steps / j.Duration.Seconds()
	if len(d.Speeds) > 0 {
		if speed, ok := d.Speeds[group.Accelerator.Name]; ok {
			rate *= speed
		}
	}
	return rate, err
}

func finitePositive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
