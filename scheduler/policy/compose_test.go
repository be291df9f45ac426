package policy_test

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// made returns a maker of a policy with its defaults and a placer.
func made(name string, placer func(compat.Quirks) scheduler.Placer) schedulertest.Maker {
	return func(o scheduler.Oracle) (scheduler.Policy, error) {
		d := policy.Deps{Oracle: o}
		if placer != nil {
			d.Placer = placer(compat.Quirks{})
		}
		return policy.New(policy.Spec{Name: name}, d)
	}
}

// Whatever is registered works with a policy that only starts jobs and one that
// stops them too.
var with = []string{"fifo-backfill", "las"}

func TestPlacementsConform(t *testing.T) {
	for _, info := range place.All() {
		for _, name := range with {
			t.Run(info.Name+"/"+name, func(t *testing.T) { schedulertest.Conformance(t, made(name, info.New)) })
		}
	}
}

func TestAdmissionsConform(t *testing.T) {
	for _, info := range policy.Admissions() {
		for _, name := range with {
			t.Run(info.Name+"/"+name, func(t *testing.T) {
				schedulertest.ConformAdmission(t, func() (scheduler.Admission, error) { return policy.LookupAdmission(info.Name) }, made(name, nil))
			})
		}
	}
}
