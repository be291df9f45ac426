package accuracy

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestBarsWithoutRows: hybrid keeps every required limit of the protocols that reveal no rows.
func TestBarsWithoutRows(t *testing.T) {
	b := newBenchWith(t.Context(), Options{
		Shared: spectest.Shared(t), Seed: 1, Contenders: []Contender{contenderNamed(t, "hybrid")},
		Protocols: protocolsNamed(t, "rubick", "published-0", "published-0-unnamed", "published-0-misnamed", "field-0", "lora", "moe", "memory", "oom", "plan-choice"),
	}, &trained)
	bars := 0
	for i := range b.Protocols {
		r, err := b.one(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Figures {
			if f.Must == (Limit{}) {
				continue
			}
			bars++
			if !f.Must.Keeps(f.Value) {
				t.Errorf("%s, %s: %s, want %s", r.Protocol, f.Name, f.amount(f.Value), f.limit(f.Must))
			}
		}
	}
	if bars != 20 {
		t.Errorf("%d limits, want 20", bars)
	}
}
