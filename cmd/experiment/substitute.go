package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// prepare returns jobs as the truth runs them: those of unknown models as the substitute,
// those without a plan with the one their truth gives them. It notes what it changed.
func (s *Simulation) prepare(ctx context.Context, jobs []spec.Job) ([]spec.Job, error) {
	if err := s.checkWork(jobs); err != nil {
		return nil, err
	}
	if err := s.checkTimed(ctx, jobs); err != nil {
		return nil, err
	}
	jobs, err := s.substitute(ctx, jobs)
	if err == nil && s.truth.tables != nil {
		jobs = s.truth.tables.Submit(jobs, s.Cluster)
	}
	return jobs, err
}

// checkWork reports jobs of unknown length or speed.
func (s *Simulation) checkWork(jobs []spec.Job) error {
	if s.truth.tables != nil {
		return nil
	}
	if err := s.checkNamed(jobs); err != nil {
		return err
	}
	count, first := tally(jobs, func(j *spec.Job) bool { return j.Epochs > 0 && j.Steps == 0 && j.Duration == 0 })
	if count == 0 {
		return nil
	}
	return invalidBecause("truth", s.truth.Name, fmt.Errorf("%s, %s first, train for epochs, which {truth} %s does not support: use goodput:DIR",
		spec.Count(count, "job"), first, s.truth.Name))
}

// tally counts jobs, and returns the first.
func tally(jobs []spec.Job, of func(*spec.Job) bool) (count int, first spec.JobID) {
	for i := range jobs {
		if of(&jobs[i]) {
			count, first = count+1, cmp.Or(first, jobs[i].ID)
		}
	}
	return count, first
}

// fitted reports whether the truth predicts from fitted models.
func (s *Simulation) fitted() bool { return strings.HasPrefix(s.truth.Name, "fitted:") }

// checkNamed reports jobs without a model under a fitted truth. A table counts them among
// its unknown ones.
func (s *Simulation) checkNamed(jobs []spec.Job) error {
	if !s.fitted() {
		return nil
	}
	count, first := tally(jobs, func(j *spec.Job) bool { return j.Model.Name == "" })
	if count == 0 {
		return nil
	}
	return invalidBecause("truth", s.truth.Name, fmt.Errorf("%s, %s first, have no model, which {truth} %s needs: use {truth} duration, or name models in column model of a csv or with synthetic:models=NAME+NAME",
		spec.Count(count, "job"), first, s.truth.Name))
}

// checkTimed reports models that a fitted truth cannot predict as submitted. The work of
// their jobs with a run time alone is then unknown.
func (s *Simulation) checkTimed(ctx context.Context, jobs []spec.Job) error {
	if !s.fitted() {
		return nil
	}
	type key struct { // jobs of one key run equally fast
		model       spec.Model
		plan        spec.Plan
		devices     int
		accelerator string
	}
	errs := map[key]error{}
	unknown := map[string]int{} // by model
	var because error           // of the first job
	for i := range jobs {
		j := &jobs[i]
		if j.Steps > 0 {
			continue
		}
		k := key{j.Model, j.Plan, j.Devices, j.Accelerator}
		if _, known := errs[k]; !known {
			_, errs[k] = s.truth.truth(s.Cluster, s.Seed).Steps(ctx, j)
		}
		if errors.Is(errs[k], perfmodel.ErrNotCovered) {
			unknown[j.Model.Name]++
			because = cmp.Or(because, errs[k])
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return noAnswer("truth", s.truth.Name, "{truth} %s cannot say how long %s run: %w; name models of pacer ls models, fit one to measurements, or use {truth} duration",
		s.truth.Name, tallyModels(unknown), because)
}

// substitute makes the jobs of unknown models jobs of the substitute.
func (s *Simulation) substitute(ctx context.Context, jobs []spec.Job) ([]spec.Job, error) {
	s.Notes = nil
	tableName := s.tableNames()
	jobs, model := slices.Clone(jobs), tableName(s.options.Substitute)
	for i := range jobs {
		jobs[i].Model.Name = tableName(jobs[i].Model.Name)
	}
	unknown := s.unknownModels(jobs)
	switch {
	case s.truth.known == nil && model != "":
		return nil, invalid("substitute-model", model, "has no use: {truth} %s is no table of models", s.truth.Name)
	case model != "" && !s.knows(model):
		return nil, invalid("substitute-model", model, "has no measurement in the truth on %s, nearest: %s",
			ClusterText(s.Cluster), strings.Join(named.Nearest(model, s.knownModels(), 3), ", "))
	case len(unknown) == 0:
		return jobs, nil
	case model == "":
		return nil, noAnswer("truth", s.truth.Name, "the truth has no measurement of %s on %s; it knows %s",
			tallyModels(unknown), ClusterText(s.Cluster), s.whatIsKnown())
	}
	var failed int
	var first error
	for i := range jobs {
		if j := &jobs[i]; unknown[j.Model.Name] > 0 {
			if err := s.truth.runAs(ctx, j, model, s.Cluster); err != nil {
				failed, first = failed+1, cmp.Or(first, fmt.Errorf("job %s: %w", j.ID, err))
			}
		}
	}
	if failed > 0 {
		return nil, noAnswer("substitute-model", model, "{substitute_model} %s: %s cannot run as it: %w", model, spec.Count(failed, "job"), first)
	}
	s.Notes = []string{fmt.Sprintf("substitute-model: jobs of %s run as %s", tallyModels(unknown), model)}
	return jobs, nil
}

// tableNames returns a function that replaces the name of a model by that of the truth's table for the
// same model, if the table has the model under another name.
func (s *Simulation) tableNames() func(string) string {
	known := s.knownModels()
	stored := map[string]string{} // by canonical form
	for _, name := range known {
		stored[catalog.CanonicalModel(name)] = name
	}
	return func(name string) string {
		if len(known) == 0 || slices.Contains(known, name) {
			return name
		}
		return cmp.Or(stored[catalog.CanonicalModel(name)], name)
	}
}

// unknownModels counts the jobs of each model that is not in the truth's table.
func (s *Simulation) unknownModels(jobs []spec.Job) map[string]int {
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

// knows reports whether the truth has a model on some accelerator of the cluster.
func (s *Simulation) knows(model string) bool {
	return slices.ContainsFunc(s.Cluster.Groups, func(g spec.NodeGroup) bool {
		return slices.Contains(s.truth.known, spec.Key{Model: model, Accelerator: g.Accelerator.Name})
	})
}

// knownModels are those that the truth has on the cluster.
func (s *Simulation) knownModels() []string {
	have := map[string]bool{}
	for _, k := range s.truth.known {
		if s.knows(k.Model) {
			have[k.Model] = true
		}
	}
	return slices.Sorted(maps.Keys(have))
}

// whatIsKnown lists possible substitutes.
func (s *Simulation) whatIsKnown() string {
	known := s.knownModels()
	if len(known) == 0 {
		for _, k := range s.truth.known {
			known = append(known, k.String())
		}
		return strings.Join(known, ", ")
	}
	return strings.Join(known, ", ") + " there: {substitute_model} MODEL runs them as one of these"
}

// tallyModels writes how many jobs there are of each model.
func tallyModels(count map[string]int) string {
	var out []string
	for _, m := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s (%s)", cmp.Or(m, "a model without a name"), spec.Count(count[m], "job")))
	}
	return strings.Join(out, ", ")
}

// runAs makes j a job of a model in the table. It keeps its devices, its batch if that was
// measured, and its recorded time if it has one.
func (s *Source) runAs(ctx context.Context, j *spec.Job, model string, cl spec.Cluster) error {
	if s.tables != nil {
		return s.tables.Adopt(j, model, cl)
	}
	var best *measuredRun
	for i := range s.configs {
		if r, ok := s.measuredRun(ctx, j, &s.configs[i], model, cl); ok && (best == nil || r.compare(best) < 0) {
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

// measuredRun is a measured configuration that a job can run in.
type measuredRun struct {
	config     *spec.Config
	packed     bool // on as few nodes as possible
	sameBatch  bool
	throughput float64
}

// measuredRun returns how j would run as c, false if it cannot.
func (s *Source) measuredRun(ctx context.Context, j *spec.Job, c *spec.Config, model string, cl spec.Cluster) (measuredRun, bool) {
	if c.Model.Name != model || c.Shape.Total() != j.Devices || j.Accelerator != "" && j.Accelerator != c.Accelerator.Name {
		return measuredRun{}, false
	}
	i := slices.IndexFunc(cl.Groups, func(g spec.NodeGroup) bool { return g.Accelerator.Name == c.Accelerator.Name })
	p, err := s.predictor.Predict(ctx, *c)
	if i < 0 || err != nil {
		return measuredRun{}, false
	}
	packed := c.Shape.Devices == spec.Packed(j.Devices, cl.Groups[i].Devices).Devices
	return measuredRun{c, packed, c.Plan.GlobalBatch() == j.Batch(), p.Throughput}, true
}

// compare is negative if r is preferred: packed first, then the job's batch, then the
// throughput.
func (r *measuredRun) compare(o *measuredRun) int {
	rank := func(r *measuredRun) int {
		n := 0
		if !r.packed {
			n += 2
		}
		if !r.sameBatch {
			n++
		}
		return n
	}
	return cmp.Or(cmp.Compare(rank(r), rank(o)), cmp.Compare(o.throughput, r.throughput))
}
