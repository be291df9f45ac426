package builtin_test

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// Policies with space sharing pass the conformance suite.
func TestSharingConformance(t *testing.T) {
	for _, name := range []string{"gavel-las", "gavel-las-waterfill", "gavel-hierarchical", "gavel-ftf", "gavel-makespan", "gavel-throughput", "gavel-cost", "gavel-slo"} {
		t.Run(name, func(t *testing.T) {
			schedulertest.Conformance(t, func(o scheduler.Oracle) (scheduler.Policy, error) {
				return builtin.Policies.New(policy.Spec{Name: name, Options: map[string]string{"sharing": "true"}}, policy.Deps{Oracle: o})
			})
		})
	}
}
