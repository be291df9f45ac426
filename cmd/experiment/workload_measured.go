package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/datasets/synthetic"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
	"github.com/pacer-ml/pacer/profiler/store"
)

// measuredModels is the word for models of the measured table, in models=measured[:A+B].
const measuredModels = "measured"

// measuredJobs draws plans for synthetic jobs from a table of measured configurations.
type measuredJobs struct {
	// runs are the plans by model and number of devices, on nodes that the cluster has.
	runs map[string]map[int][]measuredPlan
}

// measuredPlan is a plan with its step time on the fastest shape measured.
type measuredPlan struct {
	plan    spec.Plan
	stepSec float64
}

// chooseMeasured has synthetic jobs train the models of the measured rubick table, or those of
// text, A+B, among them. Each submits one of the measured plans of its size, drawn at random:
// users choose plans of any quality.
func (o *Options) chooseMeasured(ctx context.Context, text string, made *synthetic.Options) error {
	cluster, err := o.cluster()
	if err != nil {
		return err
	}
	rows, err := o.Data.rows(ctx, store.Filter{Sources: []string{"rubick"}})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return noAnswer("workload", o.Workload, "the store holds no rubick measurements; run pacer import rubick DIR first")
	}
	table := measured.New(rows)
	jobs := &measuredJobs{map[string]map[int][]measuredPlan{}}
	models := map[string]spec.Model{}
	for _, c := range table.Configs() {
		if !runsOn(c, cluster) {
			continue
		}
		p, err := table.Predict(ctx, c)
		if err != nil {
			return err
		}
		sec, _, _ := p.StepSec(c.Plan.GlobalBatch())
		models[c.Model.Name] = c.Model
		jobs.add(c, sec)
	}
	names := slices.Sorted(maps.Keys(models))
	if text != "" {
		for _, name := range strings.Split(text, "+") {
			if !slices.Contains(names, name) {
				return invalidBecause("workload", o.Workload, fmt.Errorf("{workload} synthetic: %q has no measurement on %s, nearest: %s", name, ClusterText(cluster), strings.Join(named.Nearest(name, names, 3), ", ")))
			}
		}
		names = strings.Split(text, "+")
	}
	if len(names) == 0 {
		return noAnswer("workload", o.Workload, "no measurement of the rubick table is on %s", ClusterText(cluster))
	}
	for _, name := range names {
		made.Models = append(made.Models, models[name])
	}
	made.Fits = func(m spec.Model, devices int) bool { return jobs.runs[m.Name][devices] != nil }
	made.Plan = jobs.draw(o.Seed)
	return nil
}

// runsOn reports whether the cluster has the devices of a configuration.
func runsOn(c spec.Config, cluster spec.Cluster) bool {
	return slices.ContainsFunc(cluster.Groups, func(g spec.NodeGroup) bool {
		return g.Accelerator.Name == c.Accelerator.Name && c.Shape.Nodes() <= g.Count && c.Shape.Most() <= g.Devices
	})
}

// add adds the plan of a configuration.
func (m *measuredJobs) add(c spec.Config, sec float64) {
	bySize := m.runs[c.Model.Name]
	if bySize == nil {
		bySize = map[int][]measuredPlan{}
		m.runs[c.Model.Name] = bySize
	}
	n := c.Shape.Total()
	i := slices.IndexFunc(bySize[n], func(p measuredPlan) bool { return p.plan == c.Plan })
	if i < 0 {
		bySize[n] = append(bySize[n], measuredPlan{c.Plan, sec})
	} else if sec < bySize[n][i].stepSec {
		bySize[n][i].stepSec = sec
	}
}

// draw returns a function that draws one of the plans of a model and a size.
func (m *measuredJobs) draw(seed uint64) func(spec.Model, int) (spec.Plan, float64, bool) {
	plans := stats.Stream(seed, "plans")
	return func(model spec.Model, devices int) (spec.Plan, float64, bool) {
		runs := m.runs[model.Name][devices]
		if len(runs) == 0 {
			return spec.Plan{}, 0, false
		}
		p := runs[plans.IntN(len(runs))]
		return p.plan, p.stepSec, true
	}
}
