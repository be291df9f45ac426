package query

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// TestNewLaunch: launch files have the details of models of the catalog, packed or not.
func TestNewLaunch(t *testing.T) {
	m, err := catalog.Model("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []spec.Model{m, m.WithPacked(1000)} {
		c := spec.Config{Model: m, Plan: spec.Plan{DP: 8, ZeRO: 1}, Shape: spec.Packed(8, 8)}
		l, err := NewLaunch("megatron", planner.Choice{Config: c, Fits: true})
		if err != nil || !strings.Contains(l.Text, "--norm-epsilon 1e-05\n") || !strings.Contains(l.Text, "--rotary-base 500000\n") {
			t.Errorf("%s: %v, %+v", m.Name, err, l)
		}
	}
}
