package builtin_test

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/admission"
	"github.com/pacer-ml/pacer/scheduler/place"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// made returns a function that makes a policy with its default options and a placer.
func made(name string, placer func() scheduler.Placer) schedulertest.Maker {
	return func(o scheduler.Oracle) (scheduler.Policy, error) {
		d := policy.Deps{Oracle: o}
		if placer != nil {
			d.Placer = placer()
		}
		return builtin.Policies.New(policy.Spec{Name: name}, d)
	}
}

// with lists the policies that every registered placer and admission rule is tested with:
// one that only starts jobs and one that also preempts them.
var with = []string{"fifo-backfill", "las"}

func TestPlacementsConform(t *testing.T) {
	for _, info := range place.All() {
		for _, name := range with {
			t.Run(info.Name+"/"+name, func(t *testing.T) { schedulertest.Conformance(t, made(name, info.New)) })
		}
	}
}

func TestAdmissionsConform(t *testing.T) {
	for _, info := range admission.All() {
		for _, name := range with {
			t.Run(info.Name+"/"+name, func(t *testing.T) {
				schedulertest.ConformAdmission(t, func() (scheduler.Admission, error) { return admission.Lookup(info.Name) }, made(name, nil))
			})
		}
	}
}
