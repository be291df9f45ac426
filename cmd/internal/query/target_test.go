package query

import (
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestBestCardSpellings: a fitted model is found by every name of its network.
func TestBestCardSpellings(t *testing.T) {
	reg, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &Resolver{Fitted: reg}
	for _, name := range []string{"Llama-3.1-8B", "llama2-7b", "acme_lm 1.5"} {
		key := spec.Key{Model: name, Accelerator: "A100-80GB-SXM"}
		if err := reg.Put(perfmodel.Card{Key: key, Family: "hybrid", NFit: 8}, &analytic.Model{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"llama3-8b": "Llama-3.1-8B", "Llama3.1 8B": "Llama-3.1-8B", "Llama-2-7B": "llama2-7b",
		"meta-llama/Llama-2-7b-hf": "llama2-7b", "ACME-LM-1.5": "acme_lm 1.5",
		"acme-lm-15": "", "Llama3-70B": "",
	} {
		card, err := d.BestCard(spec.Key{Model: name, Accelerator: "A100-80GB-SXM"}, "hybrid")
		if err != nil {
			t.Fatal(err)
		}
		if card == nil {
			card = &perfmodel.Card{}
		}
		if card.Model != want {
			t.Errorf("%s is predicted by the model fitted to %q, want %q", name, card.Model, want)
		}
	}
	card, err := d.BestCard(spec.Key{Model: "llama3-8b", Accelerator: "T4"}, "hybrid")
	if card != nil || err != nil {
		t.Errorf("on another accelerator: %v, %v", card, err)
	}
}

// TestBestCardErrors: of several fitted models the one with the smallest held-out error answers, with auto only if it
// beats the analytic model.
func TestBestCardErrors(t *testing.T) {
	reg, err := registry.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &Resolver{Fitted: reg}
	key := spec.Key{Model: "acme", Accelerator: "A"}
	for _, c := range []perfmodel.Card{
		{Family: "optimus", MAPE: 0.2, MAPEUnfitted: 0.5},
		{Family: "hybrid", MAPE: 0.3, MAPEUnfitted: 0.5},
		{Family: "rubick", MAPE: 0.05, MAPEUnfitted: 0.02},
		{Family: "pollux", MAPE: 0.1, MAPEUnfitted: 0.5},
	} {
		c.Key, c.NFit, c.NHeldOut = key, 8, 8
		if err := reg.Put(c, &analytic.Model{}); err != nil {
			t.Fatal(err)
		}
	}
	for want, fam := range map[string]string{Auto: "pollux", "rubick": "rubick", "optimus": "optimus"} {
		card, err := d.BestCard(key, want)
		if err != nil || card == nil {
			t.Fatalf("%s: no card, %v", want, err)
		}
		if card.Family != fam {
			t.Errorf("%s: %s answers, want %s", want, card.Family, fam)
		}
	}
	if card, err := d.BestCard(key, "analytic"); card != nil || err != nil {
		t.Errorf("analytic: card %v, %v", card, err)
	}
}
