package answer

import (
	"strconv"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// TestPlansAreKept: a plan is prepared once for questions that differ in their length, and anew after each change of
// measurements or models, also one while it was prepared.
func TestPlansAreKept(t *testing.T) {
	none, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	during := func() {}
	a := New(&query.Resolver{Fitted: none, Read: func(func(reader.Store) error) error { during(); return nil }})
	prepared := func(seq string) *Prepared {
		t.Helper()
		body := []byte(`{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,zero=3"` + seq + `}`)
		q, ok := ReadQuestion(body)
		if !ok {
			t.Fatalf("a question with %q is not plain", seq)
		}
		p, _ := a.Kept(body)
		if p == nil {
			p = a.Keep(t.Context(), &q, body)
		}
		if p.err != nil {
			t.Fatal(p.err)
		}
		return p
	}
	last := prepared(`,"seq":512`)
	if prepared(`,"seq":1024`) != last {
		t.Error("a question with another length is prepared anew")
	}
	other := []spec.Key{{Model: "another", Accelerator: "another"}}
	for what, change := range map[string]func(){
		"measurements": func() { a.Measured(other) },
		"a fit":        func() { a.Fitted(other) },
		"a reset":      a.Reset,
	} {
		change()
		now := prepared(`,"seq":512`)
		if now == last {
			t.Errorf("after %s the plan of before answers", what)
		}
		last = now
	}
	a.Reset()
	reads := 0
	during = func() {
		if reads++; reads == 1 {
			a.Reset()
		}
	}
	early := prepared(`,"seq":512`)
	if reads == 0 {
		t.Fatal("nothing was read while the plan was prepared")
	}
	if prepared(`,"seq":512`) == early {
		t.Error("a plan that was prepared during a change is kept")
	}
	for i := range maxPlans + 1 {
		a.plans[strconv.Itoa(i)] = nil
	}
	if prepared(`,"per_node":4`); len(a.plans) > maxPlans {
		t.Errorf("%d plans are kept, want at most %d", len(a.plans), maxPlans)
	}
}
