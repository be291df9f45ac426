package bench

import (
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/compat"
	"github.com/pacer-ml/pacer/scheduler/policy"
	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

func mustFamily(tb testing.TB, name string) perfmodel.Family {
	tb.Helper()
	f, err := family.Lookup(name)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func mustCluster(tb testing.TB, text string) spec.Cluster {
	tb.Helper()
	c, err := catalog.Cluster(text)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func mustMode(tb testing.TB, name string) compat.Mode {
	tb.Helper()
	m, err := compat.Parse(name)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func mustPlacer(tb testing.TB, parts *compat.Parts, name string) scheduler.Placer {
	tb.Helper()
	p, err := parts.Placer(name)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// mustSpec reads the text of one policy, NAME[:OPTIONS].
func mustSpec(tb testing.TB, text string) policy.Spec {
	tb.Helper()
	specs, err := builtin.Policies.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return specs[0]
}

func mustPolicy(tb testing.TB, s policy.Spec, d policy.Deps) scheduler.Policy {
	tb.Helper()
	p, err := builtin.Policies.New(s, d)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func mustSimulate(tb testing.TB, c sim.Config) *sim.Result {
	tb.Helper()
	r, err := sim.Run(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
