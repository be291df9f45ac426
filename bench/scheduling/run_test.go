package scheduling

import (
	"testing"

	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
)

// TestUnknownSteps: a cell with unknown steps changes the policies that have the option, in this cell alone.
func TestUnknownSteps(t *testing.T) {
	specs, err := builtin.Policies.Parse("pacer,pacer:steps=known,las")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cell Cell
		want []string
	}{
		{Cell{UnknownSteps: true}, []string{"pacer:steps=unknown", "pacer:steps=known", "las"}},
		{Cell{}, []string{"pacer", "pacer:steps=known", "las"}},
	} {
		for i, want := range c.want {
			if got := c.cell.policy(specs[i]); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}
