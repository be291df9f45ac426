package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
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

// TestTargetAdapter: an adapter is not answered by what full training of the same model measured, and a model of the
// request needs a shape for it.
func TestTargetAdapter(t *testing.T) {
	llama, err := catalog.Model("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsNamed("llama3-8b", 2)
	for i := range rows {
		rows[i].Config.Model = llama
		rows[i].Config.Framework = "DeepSpeed"
	}
	d := resolverOf(t, rows...)
	if err := d.Fitted.Put(perfmodel.Card{Key: rows[0].Config.Key(), Family: "hybrid", NFit: 2}, &analytic.Model{}); err != nil {
		t.Fatal(err)
	}
	q := Request{Model: "llama3-8b", Accelerator: "acme 1", Family: "hybrid"}
	if target, err := d.Target(t.Context(), &q); err != nil || target.card == nil || target.framework != "DeepSpeed" {
		t.Fatalf("full training: %+v, %v", target, err)
	}
	lora := spec.Adapter{Kind: spec.LoRA, Rank: 16, Modules: spec.AdaptQKV | spec.AdaptO}
	q.Adapter = lora.String()
	if target, err := d.Target(t.Context(), &q); err != nil || target.card != nil || target.model.Adapter != lora {
		t.Errorf("an adapter: %+v, %v", target, err)
	}
	rows[0].Config.Model = llama.Adapted(lora)
	d = resolverOf(t, rows[0])
	if err := d.Fitted.Put(perfmodel.Card{Key: rows[0].Config.Key(), Family: "hybrid", NFit: 2}, &analytic.Model{}); err != nil {
		t.Fatal(err)
	}
	if target, err := d.Target(t.Context(), &q); err != nil || target.card == nil || target.model.Adapter != lora || target.framework != "DeepSpeed" {
		t.Errorf("an adapter that was measured: %+v, %v", target, err)
	}
	for adapter, want := range map[string]string{"": "Llama3-8B (lora:16)", "lora:64": "Llama3-8B (lora:64)"} {
		q := Request{Model: "Llama 3 8b LoRA", Accelerator: "DGX H100", Adapter: adapter, Family: Auto}
		if target, err := d.Target(t.Context(), &q); err != nil || target.model.Name != want || target.node.Name != "DGX H100" {
			t.Errorf("LoRA in the name of a model and adapter %q: %s on %s, %v", adapter, target.model.Name, target.node.Name, err)
		}
	}
	if _, err := d.Target(t.Context(), &Request{Model: "Llama 3 8b LoRA", Accelerator: "h100", Adapter: "qlora:16", Family: Auto}); err == nil {
		t.Error("adapter qlora:16 of a model named LoRA: no error")
	}
	for _, q := range []Request{{Model: "llama3-8b", Adapter: "lora:999999999"}, {Model: "Llama 3 8b LoRA", Adapter: "lora:4097"}} {
		q.Accelerator, q.Family = "h100", Auto
		var bad *FieldError
		if _, err := d.Target(t.Context(), &q); !errors.As(err, &bad) || bad.Field != "adapter" || !strings.Contains(err.Error(), "more than the width 4096 of the network, Llama3-8B") {
			t.Errorf("adapter %s: %v, want rank and width", q.Adapter, err)
		}
	}
	for _, network := range []spec.Model{{Name: "mine", ParamCount: 1e9}, {Name: "mine", ParamCount: 1e9, Adapter: lora}} {
		q := Request{Network: network, Accelerator: "h100", Adapter: lora.String(), Family: Auto}
		var bad *FieldError
		if _, err := d.Target(t.Context(), &q); !errors.As(err, &bad) || bad.Field != "adapter" {
			t.Errorf("an adapter of %+v: %v", network, err)
		}
	}
}
