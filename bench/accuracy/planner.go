package accuracy

import "context"

// PlannerFamily is the family of performance models that the planner is judged
// with: the one it is shipped with.
const PlannerFamily = "hybrid"

// PlannerReport is how the planner does on published measurements: what its
// choices between measured plans cost, and what it says of plans that experts
// chose. Nothing in it is in sample: published rows are predicted by what was
// learnt of the other sources, Rubick's traces by at most 8 rows of the job type.
type PlannerReport struct {
	Family  string         `json:"family"`
	Choices []Alternatives `json:"choices"`
	Regrets []PartRegret   `json:"regrets"` // all, each data set, each part of one
	Plans   []PlanCheck    `json:"plans"`
	// Absent are the models of published plans without a shape in the catalog.
	Absent []string `json:"absent"`
}

// RunPlanner judges the planner on the data sets of DIR/data, shared. Its result
// does not depend on how many processors there are.
func RunPlanner(ctx context.Context, shared string) (*PlannerReport, error) {
	o := Options{Shared: shared}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := Lookup(PlannerFamily)
	if err != nil {
		return nil, err
	}
	b, out := newBench(ctx, o), &PlannerReport{Family: c.Name}
	if err := out.choose(ctx, b, c); err != nil {
		return nil, err
	}
	for _, source := range planSources {
		checks, absent, err := b.checkPlans(ctx, c, source)
		if err != nil {
			return nil, err
		}
		out.Plans, out.Absent = append(out.Plans, checks...), append(out.Absent, absent...)
	}
	return out, nil
}

// choose makes the choices of protocol plan-choice.
func (r *PlannerReport) choose(ctx context.Context, b *Bench, c Contender) error {
	traces, err := b.tracesAnswers(ctx, c)
	if err != nil {
		return err
	}
	shown, err := b.oneOutAnswers(ctx, c, 0)
	if err != nil {
		return err
	}
	r.Choices = append(alternativesOf("rubick", counted(traces)), alternativesOf("published", shown)...)
	r.Regrets = regretsOf(r.Choices)
	return nil
}
