package order

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler/policy"
)

// Only policies made with Deps.Audit pay for the audit.
func TestAuditOnDemand(t *testing.T) {
	for _, on := range []bool{false, true} {
		p, err := newPreemptive(policy.Deps{Audit: on}, Ranking{Key: bySubmission, Steady: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		if (p.audit != nil) != on {
			t.Errorf("with Deps.Audit %v a policy has the audit %v", on, p.audit)
		}
	}
}
