package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// prepare returns jobs as they are run in the truth: those of models it does not
// know as ones of --unknown, those without a plan with the one a truth has for
// them. It leaves a note of what was changed.
func (s *study) prepare(ctx context.Context, jobs []spec.Job) ([]spec.Job, error) {
	if err := s.checkWork(jobs); err != nil {
		return nil, err
	}
	if err := s.checkTimed(ctx, jobs); err != nil {
		return nil, err
	}
	jobs, err := s.adopt(ctx, jobs)
	if err == nil && s.truth.tables != nil {
		jobs = s.truth.tables.Submit(jobs, s.cluster)
	}
	return jobs, err
}

// checkWork reports jobs of which the truth cannot say how much work they are, or
// how fast they run.
func (s *study) checkWork(jobs []spec.Job) error {
	if s.truth.tables != nil {
		return nil
	}
	if err := s.checkNamed(jobs); err != nil {
		return err
	}
	count, first := 0, spec.JobID("")
	for i := range jobs {
		if j := &jobs[i]; j.Epochs > 0 && j.Steps == 0 && j.Duration == 0 {
			count, first = count+1, cmp.Or(first, j.ID)
		}
	}
	if count == 0 {
		return nil
	}
	return usagef("simulate: %s, %s first, train for epochs, of which --truth %s knows nothing: use goodput:DIR", spec.Count(count, "job"), first, s.truth.name)
}

// checkNamed reports jobs without a model under a truth that predicts by models. A
// table counts them among its unknown ones.
func (s *study) checkNamed(jobs []spec.Job) error {
	if !strings.HasPrefix(s.truth.name, "fitted:") {
		return nil
	}
	count, first := 0, spec.JobID("")
	for i := range jobs {
		if j := &jobs[i]; j.Model.Name == "" {
			count, first = count+1, cmp.Or(first, j.ID)
		}
	}
	if count == 0 {
		return nil
	}
	return usagef("simulate: %s, %s first, without a model, of which --truth %s knows nothing: use --truth duration, or name models in column model of a csv or with synthetic:models=NAME+NAME",
		spec.Count(count, "job"), first, s.truth.name)
}

// checkTimed reports models that a fitted truth cannot predict as submitted, so that it
// cannot tell how much work their jobs are of which the run time alone is known.
func (s *study) checkTimed(ctx context.Context, jobs []spec.Job) error {
	if !strings.HasPrefix(s.truth.name, "fitted:") {
		return nil
	}
	type alike struct { // what jobs have in common that take as long
		model       spec.Model
		plan        spec.Plan
		devices     int
		accelerator string
	}
	why := map[alike]error{}
	unknown := map[string]int{} // by model
	var because error           // of the first job
	for i := range jobs {
		j := &jobs[i]
		if j.Steps > 0 {
			continue
		}
		key := alike{j.Model, j.Plan, j.Devices, j.Accelerator}
		if _, asked := why[key]; !asked {
			_, why[key] = s.truth.truth(s.cluster).Steps(ctx, j)
		}
		if errors.Is(why[key], perfmodel.ErrNotCovered) {
			unknown[j.Model.Name]++
			because = cmp.Or(because, why[key])
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return &exitError{exitNoAnswer, fmt.Errorf("simulate: --truth %s cannot say how long %s run: %w; name models of pacer ls models, fit one to measurements, or use --truth duration",
		s.truth.name, tallyModels(unknown), because)}
}

// adopt makes the jobs of unknown models those of --unknown.
func (s *study) adopt(ctx context.Context, jobs []spec.Job) ([]spec.Job, error) {
	s.notes = nil
	unknown := s.unknownModels(jobs)
	switch {
	case s.truth.known == nil && s.unknown != "":
		return nil, usagef("simulate: --unknown %s: --truth %s is no table of models", s.unknown, s.truth.name)
	case s.unknown != "" && !s.knows(s.unknown):
		return nil, usagef("simulate: --unknown %s: the truth has no measurement of it on %s, nearest: %s",
			s.unknown, clusterString(s.cluster), strings.Join(named.Nearest(s.unknown, s.knownModels(), 3), ", "))
	case len(unknown) == 0:
		return jobs, nil
	case s.unknown == "":
		return nil, &exitError{exitNoAnswer, fmt.Errorf("simulate: the truth has no measurement of %s on %s; it knows %s",
			tallyModels(unknown), clusterString(s.cluster), s.whatIsKnown())}
	}
	out := slices.Clone(jobs)
	var misfits []string
	for i := range out {
		if j := &out[i]; unknown[j.Model.Name] > 0 {
			if err := s.truth.adopt(ctx, j, s.unknown, s.cluster); err != nil {
				misfits = append(misfits, fmt.Sprintf("job %s: %v", j.ID, err))
			}
		}
	}
	if n := len(misfits); n > 0 {
		return nil, &exitError{exitNoAnswer, fmt.Errorf("simulate: --unknown %s: %s cannot run as it: %s", s.unknown, spec.Count(n, "job"), misfits[0])}
	}
	s.notes = []string{fmt.Sprintf("--unknown: jobs of %s run as %s", tallyModels(unknown), s.unknown)}
	return out, nil
}

// unknownModels counts the jobs of models the truth has nothing about.
func (s *study) unknownModels(jobs []spec.Job) map[string]int {
	out := map[string]int{}
	if s.truth.known == nil {
		return out
	}
	known := s.knownModels()
	for i := range jobs {
		if name := jobs[i].Model.Name; !slices.Contains(known, name) {
			out[name]++
		}
	}
	return out
}

// knows reports whether the truth knows a model on some accelerator of the cluster.
func (s *study) knows(model string) bool {
	return slices.ContainsFunc(s.cluster.Groups, func(g spec.NodeGroup) bool {
		return slices.Contains(s.truth.known, spec.Key{Model: model, Accelerator: g.Accelerator.Name})
	})
}

// knownModels are those the truth knows on the cluster.
func (s *study) knownModels() []string {
	have := map[string]bool{}
	for _, k := range s.truth.known {
		if s.knows(k.Model) {
			have[k.Model] = true
		}
	}
	return slices.Sorted(maps.Keys(have))
}

// whatIsKnown says what could be run instead of unknown models.
func (s *study) whatIsKnown() string {
	known := s.knownModels()
	if len(known) == 0 {
		for _, k := range s.truth.known {
			known = append(known, k.String())
		}
		return strings.Join(known, ", ")
	}
	return strings.Join(known, ", ") + " there: --unknown MODEL runs them as one of these"
}

// tallyModels writes how many jobs there are of each model.
func tallyModels(count map[string]int) string {
	var out []string
	for _, m := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s (%s)", cmp.Or(m, "a model without a name"), spec.Count(count[m], "job")))
	}
	return strings.Join(out, ", ")
}

// adopt makes j a job of a model that the table knows: with its devices, and its
// batch if that is known too, for its recorded time if it has one.
func (w *world) adopt(ctx context.Context, j *spec.Job, model string, cl spec.Cluster) error {
	if w.tables != nil {
		return w.tables.Adopt(j, model, cl)
	}
	var best *measuredRun
	for i := range w.configs {
		if r, ok := w.measuredRun(ctx, j, &w.configs[i], model, cl); ok && (best == nil || r.compare(best) < 0) {
			best = &r
		}
	}
	if best == nil {
		return fmt.Errorf("%s was not measured on %d devices", model, j.Devices)
	}
	j.Model, j.SeqLen, j.Plan, j.GlobalBatch = best.config.Model, best.config.SeqLen, best.config.Plan, 0
	if j.Duration > 0 {
		j.Steps = 0
	}
	return nil
}

// measuredRun is a way to run a job that was measured.
type measuredRun struct {
	config     *spec.Config
	packed     bool // on as few nodes as there can be
	same       bool // with the job's batch
	throughput float64
}

// measuredRun returns how j would run as config says, false where it could not.
func (w *world) measuredRun(ctx context.Context, j *spec.Job, c *spec.Config, model string, cl spec.Cluster) (measuredRun, bool) {
	if c.Model.Name != model || c.Shape.Total() != j.Devices || j.Accelerator != "" && j.Accelerator != c.Accelerator.Name {
		return measuredRun{}, false
	}
	i := slices.IndexFunc(cl.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == c.Accelerator.Name })
	p, err := w.predictor.Predict(ctx, *c)
	if i < 0 || err != nil {
		return measuredRun{}, false
	}
	packed := c.Shape.Devices == spec.Packed(j.Devices, cl.Groups[i].Devices).Devices
	return measuredRun{c, packed, c.Plan.GlobalBatch() == j.Batch(), p.Throughput}, true
}

// compare is negative where r is rather the one: packed, then with the job's
// batch, then fast.
func (r *measuredRun) compare(o *measuredRun) int {
	rank := func(r *measuredRun) int {
		n := 0
		if !r.packed {
			n += 2
		}
		if !r.same {
			n++
		}
		return n
	}
	return cmp.Or(cmp.Compare(rank(r), rank(o)), cmp.Compare(o.throughput, r.throughput))
}
