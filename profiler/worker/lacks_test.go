package worker

import (
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// The torch of Debian 12 on a CPU, and a recent one on a GPU of compute capability 9.
var (
	oldTorch = Features{Torch: "1.13.0a0", Features: map[string]any{"zero_redundancy_optimizer": true, "fsdp1": false, "bf16": true}}
	newTorch = Features{Torch: "2.8.0", Features: map[string]any{"zero_redundancy_optimizer": true, "fsdp1": true, "fsdp2": true,
		"compile": true, "bf16": true, "fp16": true, "tf32": true}}
)

func TestLacks(t *testing.T) {
	for _, tc := range []struct {
		f            Features
		device, plan string
		compile      bool
		want         string // "" = runs
	}{
		{oldTorch, CPU, "dp=2,zero=1", false, ""},
		{oldTorch, CPU, "tp=2,sp=1,precision=bf16", false, ""},
		{oldTorch, CPU, "dp=2,zero=3", false, "zero=3 needs FSDP, which torch 1.13.0a0 does not have"},
		{oldTorch, CPU, "dp=1,zero=3", false, ""},
		{oldTorch, CPU, "dp=1,zero=3,offload=params", false, "needs FSDP"},
		{oldTorch, CPU, "dp=1,precision=fp16", false, "precision=fp16 needs a CUDA device"},
		{oldTorch, CPU, "dp=1,precision=tf32", false, "precision=tf32 needs a CUDA device"},
		{oldTorch, CPU, "dp=1", true, "needs torch.compile"},
		{Features{Torch: "x"}, CPU, "dp=2,zero=1", false, "ZeroRedundancyOptimizer, which torch x lacks"},
		{newTorch, CUDA, "dp=8,zero=3,precision=bf16", true, ""},
		{newTorch, CUDA, "dp=4,pp=2,zero=2", false, "zero=2 with pp=2"},
		{newTorch, CUDA, "dp=2,zero=3,offload=params,precision=fp16", false, ""},
		{newTorch, CUDA, "dp=2,tp=2,zero=3", false, ""},
		{Features{Torch: "2.1", Features: map[string]any{"fsdp1": true}}, CUDA, "dp=2,tp=2,zero=3", false, "zero=3 with tp=2 needs FSDP2, which torch 2.1 lacks"},
		{newTorch, CUDA, "cp=2", false, "not cp, ep or vp"},
		{newTorch, CUDA, "pp=2,vp=2,ga=2", false, "not cp, ep or vp"},
		{newTorch, CUDA, "ep=2,dp=2", false, "one rank of a plan with cp or ep it measures (alone: true)"},
		{oldTorch, CPU, "cp=2,dp=2,zero=1", false, "alone"},
		{oldTorch, CPU, "cp=5", false, "alone: into 10 equal parts"},
		{oldTorch, CPU, "ep=4,dp=8,zero=1", false, "alone"},
		{oldTorch, CPU, "ep=4,dp=4,tp=2,sp=1", false, "alone"},
		{oldTorch, CPU, "ep=4,dp=4,tp=2", false, "alone: ep=4 with tp=2 needs sp=1"},
		{newTorch, CUDA, "ep=4,dp=4,zero=3", false, "alone: the worker shards experts by zero=1 only"},
		{newTorch, CUDA, "pp=2,vp=2,ga=2", false, "alone: not cp, ep or vp"},
		{newTorch, CUDA, "pp=2,ga=2,schedule=zb-h1", false, "1F1B, not with schedule=zb-h1"},
		{newTorch, CUDA, "pp=2,ga=2,schedule=1f1b", false, ""},
		{newTorch, CUDA, "dp=4,zero=3,shard=2", false, "over all of dp, not over shard=2"},
		{newTorch, CUDA, "dp=4,zero=3,shard=4", false, ""},
		{newTorch, CUDA, "dp=1,precision=fp8", false, "bf16 and fp16, not fp8"},
		{oldTorch, CUDA, "dp=1,precision=tf32", false, "compute capability 8.0"},
	} {
		p, err := spec.ParsePlan(tc.plan)
		if err != nil {
			t.Fatal(err)
		}
		alone := strings.HasPrefix(tc.want, "alone")
		tc.want = strings.TrimPrefix(strings.TrimPrefix(tc.want, "alone"), ": ")
		got := tc.f.Lacks(spec.Config{AloneStage: b2i(alone), SeqLen: 64, Model: spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64}, Plan: p}, tc.device, tc.compile)
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s on %s, torch %s: %q, want %q", tc.plan, tc.device, tc.f.Torch, got, tc.want)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestLacksModel(t *testing.T) {
	for _, tc := range []struct {
		model spec.Model
		tp    int
		want  string
	}{
		{spec.Model{Name: "T5-1.2B", Kind: spec.Opaque, ParamCount: 1.2e9}, 1, "no shape"},
		{spec.Model{Name: "m", Kind: spec.Opaque, Layers: 2, Hidden: 64}, 1, "no shape"},
		{spec.Model{Name: "m", Kind: spec.Vision, Layers: 2, Hidden: 64}, 2, ""},
		{spec.Model{Name: "ResNet-50", Kind: spec.Opaque}, 1, ""},
		{spec.Model{Name: "resnet50_v1.5"}, 1, ""},
		{spec.Model{Name: "ResNet-50"}, 2, "is for transformers"},
		{spec.Model{Name: "ResNet-101"}, 1, "no shape"},
		{spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, Adapter: spec.Adapter{Kind: spec.LoRA, Rank: 8}}, 1, "trains all weights, not lora:8"},
		{spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, SeqLen: 4096, Window: 1024, WindowLayers: 1}, 1, "1 layers see only 1024 of 4096 tokens"},
		{spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, KVRank: 16}, 1, "without latent attention (kv_rank=16)"},
		{spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, MTPLayers: 1}, 1, "and multi-token prediction (mtp_layers=1)"},
		{spec.Model{Name: "m", Kind: spec.Decoder, Layers: 2, Hidden: 64, SeqLen: 1024, Window: 1024, WindowLayers: 1}, 1, ""},
	} {
		got := newTorch.Lacks(spec.Config{Model: tc.model, Plan: spec.Plan{DP: 1, TP: tc.tp}}, CUDA, false)
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s, tp=%d: %q, want %q", tc.model.Name, tc.tp, got, tc.want)
		}
	}
}
