package planner_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

func TestInfeasible(t *testing.T) {
	big := planner.Request{Model: testModel(96, 12288, 96), Accelerator: testAccelerator(80), Devices: 8, GlobalBatch: 8}
	space := planner.Enumerate{Offload: []spec.Offload{spec.OffloadNone}}
	plan := spec.Plan{DP: 1, TP: 8, MicroBatch: 8, AccumSteps: 1}
	fixed := planner.Request{Model: testModel(24, 4096, 32), Accelerator: testAccelerator(24), Plan: &plan}
	for _, tc := range []struct {
		name string
		r    planner.Request
		want []string
	}{
		{"nothing fits", big, []string{"nearest", "GiB of 80.0 GiB", "optimizer", "would fit with", "devices"}},
		{"fixed plan", fixed, []string{"of 24.0 GiB", "activations", "would fit with mb="}},
		{"no legal plan", planner.Request{Model: testModel(3, 128*7, 7), Accelerator: testAccelerator(80), Devices: 16, GlobalBatch: 3},
			[]string{"dp=16", "does not divide a global batch of 3", "devices have a candidate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := planner.New(analyticModel(t), planner.Options{Space: space}).Best(ctx, tc.r)
			if !errors.Is(err, planner.ErrInfeasible) {
				t.Fatalf("error %v, want ErrInfeasible", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

// TestRemediesWork: a change of a fixed plan that an error proposes is accepted.
func TestRemediesWork(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pl := planner.New(analyticModel(t), planner.Options{})
	pow := func(k int) int { return 1 << rnd.IntN(k) }
	proposed := 0
	for range 2000 {
		p := spec.Plan{DP: pow(4), TP: pow(3), PP: pow(2), MicroBatch: pow(6), AccumSteps: pow(3), ZeRO: rnd.IntN(2)}.Normal()
		r := planner.Request{Model: testModel(24, 2048+1024*rnd.IntN(4), 16), Accelerator: testAccelerator(float64(8 + rnd.IntN(40))), Plan: &p}
		_, err := pl.Best(ctx, r)
		if err == nil {
			continue
		}
		_, fix, ok := strings.Cut(err.Error(), "would fit with ")
		if !ok {
			continue
		}
		proposed++
		changed := change(t, p, fix)
		r.Plan = &changed
		if _, err := pl.Best(ctx, r); err != nil {
			t.Fatalf("%s: told to use %s: %v", p, fix, err)
		}
	}
	if proposed < 100 {
		t.Errorf("%d proposals: the test is empty", proposed)
	}
}

// change returns p with the keys of fix, such as "mb=2,ga=8", in place of its own.
func change(t *testing.T, p spec.Plan, fix string) spec.Plan {
	var out []string
	for _, kv := range strings.Split(p.String(), ",") {
		key, _, _ := strings.Cut(kv, "=")
		if !strings.Contains(","+fix, ","+key+"=") {
			out = append(out, kv)
		}
	}
	changed, err := spec.ParsePlan(strings.Join(append(out, fix), ","))
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
