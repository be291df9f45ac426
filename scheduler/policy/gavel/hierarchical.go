package gavel

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Hierarchical is the registry entry of policy gavel-hierarchical.
var Hierarchical = policy.Info{
	Name:    "gavel-hierarchical",
	Doc:     "hierarchical fairness: tenants share the cluster by weight, the jobs of a tenant share its part by fairness or FIFO (Narayanan et al., Gavel, OSDI 2020, section 4.3)",
	Options: hierarchicalOptions,
	New:     newHierarchical,
}

var hierarchicalOptions = append([]policy.Option{
	{Name: "inner", Default: "fairness", Example: "fifo", Doc: "policy among the jobs of a tenant: fairness or fifo"},
	{Name: "weights", Default: "", Example: "a=2/b=1", Doc: "TENANT=WEIGHT/TENANT=WEIGHT...: weights, 1 for other tenants"},
}, solving...)

func newHierarchical(d policy.Deps) (scheduler.Policy, error) {
	h := hierarchy{weights: map[string]float64{}}
	v := d.Values(hierarchicalOptions)
	switch inner := v.Text("inner"); inner {
	case "", "fairness":
	case "fifo":
		h.fifo = true
	default:
		return nil, fmt.Errorf("inner=%s is neither fairness nor fifo", inner)
	}
	if text := v.Text("weights"); text != "" {
		for _, part := range strings.Split(text, "/") {
			name, number, _ := strings.Cut(part, "=")
			w, err := strconv.ParseFloat(number, 64)
			if err != nil || !(w > 0 && w <= 1e9) {
				return nil, fmt.Errorf("weights: %q is not TENANT=WEIGHT with a weight above 0", part)
			}
			h.weights[name] = w
		}
	}
	return solved(d, Objective{}, func(ctx context.Context, s *Shares) error {
		return s.waterfill(ctx, func(full []bool) []float64 { return h.split(s, full) })
	})
}

// hierarchy has the two levels of the policy: weights of tenants, and fairness or FIFO
// among the jobs of a tenant.
type hierarchy struct {
	fifo    bool
	weights map[string]float64
}

// split divides the weight of every tenant among those of its jobs that are not full: in
// proportion to their weights or, with fifo, all of it to the first by arrival.
func (h hierarchy) split(s *Shares, full []bool) []float64 {
	sum := map[string]float64{}
	out := make([]float64, len(s.Jobs))
	for i := range s.Jobs {
		tenant := s.Jobs[i].State.Job.Tenant
		if full[i] || h.fifo && sum[tenant] > 0 {
			continue
		}
		out[i] = s.Jobs[i].Weight()
		sum[tenant] += out[i]
	}
	for i := range out {
		if tenant := s.Jobs[i].State.Job.Tenant; out[i] > 0 {
			w, named := h.weights[tenant]
			if !named {
				w = 1
			}
			out[i] *= w / sum[tenant]
		}
	}
	return out
}
