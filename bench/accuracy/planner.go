package accuracy

import "context"

// PlannerFamily is the family of performance models with which the planner is
// measured: its default.
const PlannerFamily = "hybrid"

// PlannerReport measures the planner on published measurements: the regret of its
// choices between measured plans, and its verdicts on plans chosen by experts.
// No row is in sample: published rows are predicted by a model trained on the other
// sources, Rubick's traces from at most 8 rows of the job type.
type PlannerReport struct {
	Family  string         `json:"family"`
	Choices []Alternatives `json:"choices"`
	Regrets []PartRegret   `json:"regrets"` // all, each data set, each part of one
	Plans   []PlanCheck    `json:"plans"`
	// Absent are the models of published plans without a shape in the catalog.
	Absent []string `json:"absent"`
}

// RunPlanner measures the planner on the data sets of shared/data. Its result does
// not depend on the number of processors.
func RunPlanner(ctx context.Context, shared string) (*PlannerReport, error) {
	o := Options{Shared: shared}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := Lookup(PlannerFamily)
	if err != nil {
		return nil, err
	}
	return newBench(ctx, o).measurePlanner(ctx, c)
}

func (b *Bench) measurePlanner(ctx context.Context, c Contender) (*PlannerReport, error) {
	out := &PlannerReport{Family: c.Name}
	if err := out.choose(ctx, b, c); err != nil {
		return nil, err
	}
	p, err := b.published()
	if err != nil {
		return nil, err
	}
	for _, source := range p.planSources() {
		checks, absent, err := b.checkPlans(ctx, c, source)
		if err != nil {
			return nil, err
		}
		out.Plans, out.Absent = append(out.Plans, checks...), append(out.Absent, absent...)
	}
	return out, nil
}

// choose adds the choices of protocol plan-choice.
func (r *PlannerReport) choose(ctx context.Context, b *Bench, c Contender) error {
	traces, err := b.tracePredictions(ctx, c)
	if err != nil {
		return err
	}
	shown, err := b.oneOutPredictions(ctx, c, publishedRows)
	if err != nil {
		return err
	}
	r.Choices = append(alternativesOf("rubick", counted(traces)), alternativesOf("published", shown)...)
	r.Regrets = regretsOf(r.Choices)
	return nil
}
