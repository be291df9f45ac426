package query

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// resolveUnmeasured looks a request up in the catalog alone.
func resolveUnmeasured(_ context.Context, q Request) (Resolved, error) {
	m, err := catalog.Model(q.Model)
	if err != nil {
		return Resolved{}, err
	}
	a, err := catalog.Accelerator(q.Accelerator)
	if err != nil {
		return Resolved{}, err
	}
	adapter, err := spec.ParseAdapter(q.Adapter)
	if err != nil {
		return Resolved{}, err
	}
	if adapter.Kind != spec.FullTraining {
		m = m.Adapted(adapter)
	}
	p, err := Analytic()
	node := NodeOf(a)
	return Resolved{Request: planner.Request{Model: m, Accelerator: a, Link: node.Link, PerNode: node.Devices, NodeHostBytes: node.HostBytes, GlobalBatch: q.GlobalBatch}, Predictor: p, Family: "analytic"}, err
}

// On sampled numbers of devices, the best plan of one call is on the front, or a choice of the front is as fast and as
// cheap. Each printed choice is that of one call.
func TestRecommendEqualsPlan(t *testing.T) {
	ctx := t.Context()
	for _, q := range []RecommendRequest{
		{Request: Request{Model: "Llama3-8B", GlobalBatch: 256}, Tokens: 1e11, Have: "h100:128@2.1,a100-80gb:96@1.1"},
		{Request: Request{Model: "Llama3-70B", GlobalBatch: 1024}, Tokens: 1e12, Have: "h200:2048@3.5,b200:1024@4.5"},
		{Request: Request{Model: "Mixtral-8x7B", GlobalBatch: 768}, Tokens: 1e11, Have: "h100:512@2.1,mi300x:256@1.9"},
	} {
		recommendEqualsPlan(ctx, t, q)
	}
}

// samplesOfRecommend are the sampled numbers of devices of each request, of three.
const samplesOfRecommend = 170

func recommendEqualsPlan(ctx context.Context, t *testing.T, q RecommendRequest) {
	t.Helper()
	stock, err := ParseHave(q.Have)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Recommend(ctx, resolveUnmeasured, q)
	if err != nil {
		t.Fatal(err)
	}
	best := func(accelerator string, n int) (planner.Choice, bool) {
		r, err := resolveUnmeasured(ctx, Request{Model: q.Model, Accelerator: accelerator, GlobalBatch: q.GlobalBatch})
		if err != nil {
			t.Fatal(err)
		}
		r.Devices = n
		c, err := planner.New(r.Predictor, planner.Options{}).Best(ctx, r.Request)
		if err != nil && !errors.Is(err, planner.ErrInfeasible) {
			t.Fatal(err)
		}
		return c, err == nil
	}
	printed := append([]RecommendRow{*got.Cheapest, *got.Fastest, *got.Fewest}, got.Front...)
	for _, row := range printed {
		if c, ok := best(row.Accelerator, row.Devices); !ok || c.Config.Plan.String() != row.Plan || c.Prediction.Throughput != row.SamplesPerS {
			t.Errorf("%d x %s: %s printed, %s planned", row.Devices, row.Accelerator, row.Plan, c.Config.Plan)
		}
	}
	seq := float64(got.SeqLen)
	rng := rand.New(rand.NewPCG(3, 4))
	for range samplesOfRecommend {
		of := stock[rng.IntN(len(stock))]
		n := 1 + rng.IntN(of.Max)
		c, ok := best(of.Accelerator, n)
		if !ok {
			continue
		}
		days := q.Tokens / seq / c.Prediction.Throughput / 86400
		cost := days * 24 * float64(n) * of.Price
		covered := false
		for _, row := range got.Front {
			covered = covered || row.Days <= days*(1+1e-12) && row.Cost <= cost*(1+1e-12)
		}
		if !covered {
			t.Errorf("%d x %s: %.4g days at %.4g beat the front", n, of.Accelerator, days, cost)
		}
	}
}

// The assumed batch has many divisors, so that it fits many numbers of devices.
func TestRecommendAssumedBatch(t *testing.T) {
	for model, want := range map[string]int{"Llama3-8B": 512, "ViT-L/16": 16384, "Flux.1-dev": 1024, "Whisper-large-v3": 4096} {
		got, err := Recommend(t.Context(), resolveUnmeasured, RecommendRequest{Request: Request{Model: model}, Tokens: 1e9, Have: "h100:4@2"})
		if err != nil || got.GlobalBatch != want {
			t.Errorf("%s: a batch of %+v, want %d; %v", model, got, want, err)
		}
	}
}

func TestParseHave(t *testing.T) {
	got, err := ParseHave("h100:256@2.1, b200:64@4.5")
	if err != nil || len(got) != 2 || got[0] != (Stock{"h100", 256, 2.1}) || got[1] != (Stock{"b200", 64, 4.5}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "h100", "h100:", "h100:0", "h100:-1@2", "h100:8@", "h100:8@NaN", "h100:8@0", "h100:8,h100:9", "h100:8@2,b200:8", ":8", "h100:99999999999"} {
		var field *FieldError
		if _, err := ParseHave(bad); !errors.As(err, &field) || field.Field != "have" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]float64{"14d": 14 * 86400, "36h": 36 * 3600, "90min": 5400, "12.3s": 12.3, "500ms": 0.5} {
		if got, ok := Seconds(text); !ok || math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%s: %g, %t", text, got, ok)
		}
	}
	for _, bad := range []string{"", "12", "d", "-1s", "0s", "NaNs", "1e300d", "1 week"} {
		if got, ok := Seconds(bad); ok {
			t.Errorf("%q: %g", bad, got)
		}
	}
}

// A known answer: 6 x parameters x tokens for a model without attention scores to speak of.
func TestUtilization(t *testing.T) {
	m := spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 4096, Heads: 32, FFN: 16384, Vocab: 100, SeqLen: 16}
	c := spec.Config{Model: m, Accelerator: spec.Accelerator{BF16: 1e15, Watts: 700}, Plan: spec.Plan{DP: 8, Precision: spec.BF16, Recompute: spec.RecomputeFull}}
	u := UtilizationOf(&c, 1000)
	if want := m.TrainFLOPs(16) * 1000 / 8e15; math.Abs(u.MFU/want-1) > 1e-12 || math.Abs(u.HFU/(want*4/3)-1) > 1e-12 {
		t.Errorf("MFU %g, HFU %g, want %g and a third more", u.MFU, u.HFU, want)
	}
	if u.TokensPerDevice != 16*1000/8. || u.JoulesPerSample != 700*8/1000. {
		t.Errorf("%g tokens/s of a device, %g J of a sample", u.TokensPerDevice, u.JoulesPerSample)
	}
	if (UtilizationOf(&c, 0) != Utilization{}) {
		t.Error("a utilization without a throughput")
	}
}
