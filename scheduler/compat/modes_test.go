package compat_test

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/schedulertest"
)

// TestModes checks that the quirks, policies and placer of every mode exist.
func TestModes(t *testing.T) {
	for _, m := range compat.Modes() {
		if len(m.Has()) == 0 || m.Round <= 0 || m.StartCost < 0 {
			t.Errorf("%s: %+v", m.Name, m)
		}
		if _, err := m.Parts().Placer(m.Placement); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for _, name := range m.Policies {
			d := policy.Deps{Variants: m.Parts().Variants}
			if m.Name == "dl2" {
				d.Servers = &schedulertest.World{}
			}
			if _, err := builtin.Policies.New(policy.Spec{Name: name}, d); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}
