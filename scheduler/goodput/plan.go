package goodput

import (
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Plan returns the plan for a global batch on a number of devices: data parallelism
// with the same number of samples on each device, in as few micro-batches as fit. The
// plan's global batch is rounded up to a multiple, or down to the largest multiple
// within the measured batches. On one device a batch above the initial one has at least
// two micro-batches, because one is not enough to measure the gradient noise.
//
// Source: the batch rules of petuum/adaptdl at commit c793c70, class Job. The
// error wraps perfmodel.ErrNotCovered.
func (t *Tables) Plan(model, accelerator string, batch, devices int) (spec.Plan, error) {
	a, s, err := t.lookup(model, accelerator)
	if err != nil {
		return spec.Plan{}, err
	}
	if _, _, _, err := a.between(batch); err != nil {
		return spec.Plan{}, err
	}
	local, limit := s.maxLocal, t.limit(model, s)
	if limit.Local > 0 {
		local = min(local, limit.Local)
	}
	if most := batch / s.minLocal; devices < 1 || devices > most || limit.Devices > 0 && devices > limit.Devices {
		return spec.Plan{}, fmt.Errorf("goodput: %s with %d samples per step runs on 1 to %d devices, not %d: %w", model, batch, most, devices, errNotCovered)
	}
	share := ceil(batch, devices)
	accum := ceil(share, local)
	if devices == 1 && batch > a.initial() {
		accum = max(accum, 2)
	}
	micro := min(ceil(share, accum), a.largest()/(devices*accum))
	if micro < s.minLocal {
		return spec.Plan{}, fmt.Errorf("goodput: %s with %d samples per step on %d devices has micro-batches of %d samples, want the measured %d to %d: %w",
			model, batch, devices, micro, s.minLocal, s.maxLocal, errNotCovered)
	}
	return spec.Plan{DP: devices, MicroBatch: micro, AccumSteps: accum}.Normal(), nil
}

// Submit returns a copy of jobs with plans. A job without a plan gets that of its batch
// and devices on the first group of cl that it may use, if there is one.
func (t *Tables) Submit(jobs []spec.Job, cl spec.Cluster) []spec.Job {
	out := slices.Clone(jobs)
	for i := range out {
		j := &out[i]
		for gi := range cl.Groups {
			g := &cl.Groups[gi]
			if j.Plan != (spec.Plan{}) || j.Accelerator != "" && j.Accelerator != g.Accelerator.Name {
				continue
			}
			if p, err := t.Plan(j.Model.Name, g.Accelerator.Name, j.GlobalBatch, j.Devices); err == nil {
				j.Plan = p
			}
		}
	}
	return out
}

// Adopt makes j a job of a model of t on its requested devices, with its recorded
// duration, or else for the epochs of the model. It keeps its batch if the model can
// train it, else it gets the smallest one possible on these devices. The error wraps
// perfmodel.ErrNotCovered.
func (t *Tables) Adopt(j *spec.Job, model string, cl spec.Cluster) error {
	err := fmt.Errorf("goodput: no group has accelerator %q: %w", j.Accelerator, errNotCovered)
	for gi := range cl.Groups {
		acc := cl.Groups[gi].Accelerator.Name
		if j.Accelerator != "" && j.Accelerator != acc {
			continue
		}
		a, s, unknown := t.lookup(model, acc)
		if err = unknown; err != nil {
			continue
		}
		batch, least := j.Batch(), max(a.initial(), s.minLocal*j.Devices)
		plan, unfit := t.Plan(model, acc, batch, j.Devices)
		if unfit != nil {
			batch = least
			if plan, err = t.Plan(model, acc, batch, j.Devices); err != nil {
				continue
			}
		}
		j.Model, j.SeqLen, j.Plan, j.GlobalBatch = spec.Model{Name: model, Kind: spec.Opaque}, 0, plan, batch
		j.Steps, j.Epochs = 0, 0
		if j.Duration == 0 {
			j.Epochs = float64(len(a.ends))
		}
		return nil
	}
	return err
}

func ceil(a, b int) int { return (a + b - 1) / b }

// stepSec returns the seconds of a step of a plan:
//
//	T = step + (AccumSteps-1) * (step - sync)
//
//	step   time of one micro-batch with the reduction of gradients
//	sync   the part of it for the reduction
//
// Source: Pollux, section 3.2; petuum/adaptdl at commit c793c70, class Job.
func (s *speeds) stepSec(p spec.Plan, shape spec.Shape) (float64, error) {
	p = p.Normal()
	if pure := (spec.Plan{DP: p.DP, MicroBatch: p.MicroBatch, AccumSteps: p.AccumSteps, Precision: p.Precision}).Normal(); p != pure {
		return 0, fmt.Errorf("goodput: plan %s is not plain data parallelism: %w", p, errNotCovered)
	}
	if n := shape.Total(); n != p.DP {
		return 0, fmt.Errorf("goodput: plan %s is for %d devices, shape %s has %d: %w", p, p.DP, shape, n, errNotCovered)
	}
	t, err := s.at(shape, p.MicroBatch)
	if err != nil {
		return 0, err
	}
	return t.step + float64(p.AccumSteps-1)*(t.step-t.sync), nil
}
