package accuracy

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// trained is what earlier tests of this package have read and trained.
var trained known

// protocolsNamed looks protocols up.
func protocolsNamed(t *testing.T, names ...string) []Protocol {
	t.Helper()
	var out []Protocol
	for _, n := range names {
		p, err := LookupProtocol(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func contenderNamed(t *testing.T, name string) Contender {
	t.Helper()
	c, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRunIsDeterministic: the same on one processor as on several, but for
// times.
func TestRunIsDeterministic(t *testing.T) {
	o := Options{
		Shared: spectest.Shared(t), Seed: 1,
		Protocols:  protocolsNamed(t, "rubick", "published-0", "published-10", "plan-choice", "memory"),
		Contenders: []Contender{contenderNamed(t, "analytic"), contenderNamed(t, "rubick")},
	}
	run := func(procs int) []Result {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		rs, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return rs
	}
	many := run(4)
	if diff := cmp.Diff(run(1), many, cmpopts.IgnoreFields(Result{}, "WallSec")); diff != "" {
		t.Errorf("one processor (-), four (+):\n%s", diff)
	}
	if _, err := json.Marshal(many); err != nil {
		t.Error(err) // a figure that is not finite
	}
	for i, r := range many {
		if want := o.Protocols[i/2].Name; r.Protocol != want {
			t.Errorf("result %d is of %s, want %s", i, r.Protocol, want)
		}
	}
}

// TestTracesAreThoseOfTheRule: what is scored of Rubick's traces, with the
// left-out rule and without.
func TestTracesAreThoseOfTheRule(t *testing.T) {
	rs, err := Run(t.Context(), Options{Shared: spectest.Shared(t), Protocols: protocolsNamed(t, "rubick"), Contenders: []Contender{contenderNamed(t, "rubick")}})
	if err != nil {
		t.Fatal(err)
	}
	r := rs[0]
	if r.Rows != 401 || r.Figures[2].Value != 472 {
		t.Errorf("%d rows scored, %g with those left out, want 401 and 472", r.Rows, r.Figures[2].Value)
	}
	if !(r.Mean > 0 && r.Mean < 0.09) {
		t.Errorf("mean error %.4f, want at most 0.09", r.Mean)
	}
	if r.Standing != LeftOut {
		t.Errorf("standing is %s", r.Standing)
	}
}

// TestTestSets: published-0-unnamed has no stack, field-0 has the rows of data/field, and moe the mixtures of
// experts of published-0 and field-0.
func TestTestSets(t *testing.T) {
	b := newBench(t.Context(), Options{Shared: spectest.Shared(t)})
	c := contenderNamed(t, "analytic")
	sizes, experts := map[testSet]int{}, 0
	for _, set := range []testSet{publishedRows, unnamedRows, fieldRows} {
		predictions, err := b.oneOutPredictions(t.Context(), c, set)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range predictions {
			sizes[set] += p.rows // before equal configurations are merged
			if set.unnamed && stack.Of(p.config.Framework, p.config.Accelerator.Arch).Name != "" && !strings.HasPrefix(p.config.Framework, "@..") {
				t.Fatalf("%s without names: stack %q", p.id, p.config.Framework)
			}
			if !set.unnamed && p.config.Model.Experts > 0 {
				experts++
			}
		}
	}
	if want := (map[testSet]int{publishedRows: 674, unnamedRows: 635, fieldRows: 246}); !maps.Equal(want, sizes) {
		t.Errorf("rows %v, want %v", sizes, want)
	}
	r, err := mixtures(t.Context(), b, c)
	if err != nil || r.Rows+r.Refused != experts || experts < 100 {
		t.Errorf("moe has %d rows, %v, want %d", r.Rows+r.Refused, err, experts)
	}
}

// TestRunRefuses: what cannot be run is an error that says what to do.
func TestRunRefuses(t *testing.T) {
	if _, err := Run(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "PACER_SHARED") {
		t.Errorf("no directory: %v", err)
	}
	o := Options{Shared: t.TempDir(), Protocols: protocolsNamed(t, "rubick"), Contenders: []Contender{contenderNamed(t, "rubick")}}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "data/rubick") {
		t.Errorf("no data: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := LookupProtocol("rubik"); err == nil || !strings.Contains(err.Error(), "there are: rubick") {
		t.Errorf("unknown protocol: %v", err)
	}
}

// A family without a result has a reason, and no figures.
func TestUnable(t *testing.T) {
	r, err := recordUnable(Result{Summary: Summary{Rows: 3}}, unablef("needs %d rows", 7))
	if err != nil || r.Unable != "needs 7 rows" || r.Rows != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	none := Result{Summary: Summary{Refused: 2}, Refusals: []Refusal{{"a", "why"}, {"b", "why"}}}
	if r, err := recordUnable(requirePrediction(none, nil)); err != nil || r.Unable != "predicts none: why" || r.Refused != 0 {
		t.Errorf("all rows refused: %+v, %v", r, err)
	}
	if _, err := recordUnable(Result{}, errNo); !errors.Is(err, errNo) {
		t.Errorf("got %v, want the error itself", err)
	}
}

func TestMemoWorksOnce(t *testing.T) {
	var m memo[string, int]
	calls := 0
	for range 3 {
		v, err := m.get("a", func() (int, error) { calls++; return 7, errNo })
		if v != 7 || !errors.Is(err, errNo) {
			t.Errorf("got %d, %v", v, err)
		}
	}
	if v, _ := m.get("b", func() (int, error) { return 8, nil }); v != 8 || calls != 1 {
		t.Errorf("got %d; the first was worked out %d times", v, calls)
	}
}

func TestMayRefuse(t *testing.T) {
	for _, c := range []struct {
		model                  string
		layers, hidden, tokens int
		want                   bool
	}{
		{"Nemotron_3_Ultra", 0, 0, 8192, true},
		{"Nemotron-3-Nano", 52, 2688, 8192, false},
		{"Kimi-K2", 61, 7168, 4096, false},
		{"DeepSeekV3", 61, 7168, 4096, false},
		{"Llama2-7B", 32, 4096, 0, true},
		{"GPT-20B", 0, 0, 2048, true},
		{"GPT-20B", 0, 14400, 2048, false},
	} {
		var a prediction
		a.config.Model.Name, a.config.Model.Layers, a.config.Model.Hidden, a.config.SeqLen = c.model, c.layers, c.hidden, c.tokens
		if got := mayRefuse(&a); got != c.want {
			t.Errorf("%+v: may be refused: %v", c, got)
		}
	}
}

// TestSpeedAsksDifferentThings: no configuration twice.
func TestSpeedAsksDifferentThings(t *testing.T) {
	plans, err := catalogPlans(20_000)
	if err != nil {
		t.Fatal(err)
	}
	job := spec.Config{Model: spec.Model{Name: "m"}, Plan: spec.Plan{ZeRO: 2, Precision: spec.TF32}}
	for what, groups := range map[string][]planGroup{"plans": plans, "batches": batchesOf(job, 20_000)} {
		seen := map[spec.Config]bool{}
		n := 0
		for _, g := range groups {
			for _, p := range g.plans {
				c := g.config
				c.Plan = p
				seen[c] = true
				n++
				if p.Devices() != c.Shape.Total() {
					t.Fatalf("%s: plan %s on %s", what, p, c.Shape)
				}
			}
		}
		if n != len(seen) || math.Abs(float64(n)-20_000) > 100 {
			t.Errorf("%s: %d configurations, %d different, want 20000", what, n, len(seen))
		}
	}
}
