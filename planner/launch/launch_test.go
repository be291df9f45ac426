package launch

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// golden are plans with an output that was read line by line against the documentation of the
// frameworks. Read renewed outputs against docs/guides/launch-files.md.
var golden = []struct{ file, framework, model, accelerator, shape, plan string }{
	{"megatron_gpt3.sh", "megatron", "GPT3-175B", "A100-80GB-SXM", "128x8", "dp=8,tp=8,pp=16,vp=6,mb=1,ga=192,zero=1,recompute=selective,sp=1,precision=bf16"},
	{"megatron_uneven.sh", "megatron", "Llama3.1-405B", "H100", "256x8", "dp=16,tp=8,pp=16,mb=1,ga=32,zero=1,shard=8,sp=1,recompute=full,precision=fp8"},
	{"megatron_experts.sh", "megatron", "Mixtral-8x7B", "H100", "8x8", "dp=16,tp=2,pp=2,ep=8,mb=1,ga=16,zero=1,sp=1,precision=bf16"},
	{"megatron_deepseek.sh", "megatron", "DeepSeek-V3", "H800", "256x8", "dp=128,pp=16,ep=64,mb=1,ga=60,zero=1,recompute=selective,precision=fp8"},
	{"torchtitan_deepseek.toml", "torchtitan", "DeepSeek-V3", "H100", "64x8", "dp=64,pp=8,ep=64,mb=1,ga=16,zero=1,recompute=full,precision=bf16"},
	{"megatron_context.sh", "megatron", "Llama3-8B", "B200", "2x8", "dp=2,tp=2,cp=4,mb=1,ga=8,zero=1,offload=optimizer,sp=1,precision=fp4"},
	{"megatron_fsdp.sh", "megatron", "Llama3-8B", "H100", "8x8", "dp=64,zero=3,shard=8,mb=1,ga=2,recompute=full,precision=bf16"},
	{"megatron_bert.sh", "megatron", "BERT-large", "V100", "8", "dp=8,mb=8,ga=2,precision=fp16"},
	{"torchrun_ddp.sh", "torchrun", "GPT2-XL", "A100-40GB", "4+2", "dp=6,mb=2,ga=4,zero=1,recompute=selective,precision=fp16"},
	{"torchrun_hsdp.sh", "torchrun", "Llama3-8B", "H100", "2x8", "dp=16,zero=3,shard=8,mb=1,ga=2,recompute=full,precision=bf16"},
	{"torchrun_resnet.sh", "torchrun", "ResNet-50", "T4", "1", "mb=64,precision=fp32"},
	{"deepspeed_infinity.json", "deepspeed", "Llama2-13B", "A100-40GB", "8", "dp=8,zero=3,offload=params,mb=4,ga=2,recompute=full,precision=bf16"},
	{"deepspeed_mics.json", "deepspeed", "Llama3-8B", "H100", "2x8", "dp=16,zero=3,shard=8,mb=1,ga=8,precision=bf16"},
	{"deepspeed_autotp.json", "deepspeed", "Llama2-7B", "V100", "2x4", "dp=4,tp=2,zero=1,offload=optimizer,mb=1,ga=8,precision=fp16"},
	{"torchtitan_hsdp.toml", "torchtitan", "Llama3-70B", "H100", "32x8", "dp=32,tp=8,zero=3,shard=8,mb=1,ga=2,sp=1,recompute=full,precision=fp8"},
	{"torchtitan_interleaved.toml", "torchtitan", "Llama3-8B", "H100", "8", "dp=2,pp=4,vp=4,mb=2,ga=8,zero=1,precision=bf16"},
	{"megatron_uneven_chunks.sh", "megatron", "Llama3.1-405B", "H100", "32x8", "dp=2,tp=8,pp=16,vp=8,mb=1,ga=32,zero=1,sp=1,precision=bf16"},
	{"torchtitan_uneven.toml", "torchtitan", "Llama2-7B", "A100-80GB", "3x4", "dp=4,pp=3,mb=1,ga=8,zero=1,schedule=gpipe,precision=bf16"},
	{"torchtitan_zbv.toml", "torchtitan", "Llama3-8B", "H100", "4x8", "dp=4,tp=2,pp=2,cp=2,mb=1,ga=8,zero=1,schedule=zb-v,sp=1,precision=bf16"},
	{"torchtitan_experts.toml", "torchtitan", "Qwen3-30B-A3B", "H100", "4x8", "dp=16,cp=2,ep=8,mb=1,ga=8,zero=3,shard=8,offload=params,precision=bf16"},
	{"torchtitan_ddp.toml", "torchtitan", "Llama2-7B", "H100", "8", "dp=8,mb=1,precision=tf32"},
}

// networks are the models of the tests.
var networks = map[string]spec.Model{
	"GPT3-175B":     {Kind: spec.Decoder, Layers: 96, Hidden: 12288, FFN: 49152, Heads: 96, Vocab: 51200, SeqLen: 2048, TiedEmbeddings: true},
	"GPT3-5B":       {Kind: spec.Decoder, Layers: 24, Hidden: 4096, FFN: 16384, Heads: 32, Vocab: 51200, SeqLen: 2048, TiedEmbeddings: true},
	"GPT2-XL":       {Kind: spec.Decoder, Layers: 48, Hidden: 1600, FFN: 6400, Heads: 25, Vocab: 50257, SeqLen: 1024, TiedEmbeddings: true},
	"Llama2-7B":     {Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 11008, Heads: 32, Vocab: 32000, SeqLen: 4096, GatedMLP: true},
	"Llama2-13B":    {Kind: spec.Decoder, Layers: 40, Hidden: 5120, FFN: 13824, Heads: 40, Vocab: 32000, SeqLen: 4096, GatedMLP: true},
	"Llama3-8B":     {Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 128256, SeqLen: 8192, GatedMLP: true},
	"Llama3-70B":    {Kind: spec.Decoder, Layers: 80, Hidden: 8192, FFN: 28672, Heads: 64, KVHeads: 8, Vocab: 128256, SeqLen: 8192, GatedMLP: true},
	"Llama3.1-405B": {Kind: spec.Decoder, Layers: 126, Hidden: 16384, FFN: 53248, Heads: 128, KVHeads: 8, Vocab: 128256, SeqLen: 8192, GatedMLP: true},
	"Qwen3-8B":      {Kind: spec.Decoder, Layers: 36, Hidden: 4096, FFN: 12288, Heads: 32, KVHeads: 8, Vocab: 151936, SeqLen: 4096, GatedMLP: true},
	"Qwen3-30B-A3B": {Kind: spec.Decoder, Layers: 48, Hidden: 2048, FFN: 6144, Heads: 32, KVHeads: 4, HeadDim: 128, Vocab: 151936, SeqLen: 4096, GatedMLP: true, Experts: 128, ExpertsPerToken: 8, ExpertFFN: 768},
	"Mixtral-8x7B":  {Kind: spec.Decoder, Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 32000, SeqLen: 4096, GatedMLP: true, Experts: 8, ExpertsPerToken: 2, ExpertFFN: 14336},
	"DeepSeek-V3":   {Kind: spec.Decoder, Layers: 61, Hidden: 7168, FFN: 18432, Heads: 128, HeadDim: 128, Vocab: 129280, SeqLen: 4096, GatedMLP: true, Experts: 256, ExpertsPerToken: 8, NodeLimit: 4, ExpertFFN: 2048, SharedExperts: 1, DenseLayers: 3, QRank: 1536, KVRank: 512, MTPLayers: 1, ParamCount: 671e9},
	"two ahead":     {Kind: spec.Decoder, Layers: 8, Hidden: 1024, FFN: 4096, Heads: 8, Vocab: 32000, SeqLen: 4096, GatedMLP: true, MTPLayers: 2, Experts: 8, ExpertsPerToken: 2, ExpertFFN: 1024},
	"latent":        {Kind: spec.Decoder, Layers: 8, Hidden: 1024, FFN: 4096, Heads: 8, KVRank: 256, Vocab: 32000, SeqLen: 4096, GatedMLP: true, MTPLayers: 2},
	"BERT-large":    {Kind: spec.Encoder, Layers: 24, Hidden: 1024, FFN: 4096, Heads: 16, Vocab: 30522, SeqLen: 512, TiedEmbeddings: true},
	"T5-3B":         {Kind: spec.EncoderDecoder, Layers: 48, Hidden: 1024, FFN: 16384, Heads: 32, HeadDim: 128, Vocab: 32128, SeqLen: 512, TiedEmbeddings: true},
	"ResNet-50":     {Kind: spec.Opaque, ParamCount: 25.6e6, FLOPsPerSample: 8.2e9},
}

func config(t testing.TB, model, accelerator, shape, plan string) spec.Config {
	t.Helper()
	m, ok := networks[model]
	if !ok {
		t.Fatalf("no network %s", model)
	}
	m.Name = model
	c := spec.Config{Model: m, Accelerator: spec.Accelerator{Name: accelerator}}
	if strings.HasPrefix(accelerator, "MI") {
		c.Accelerator.Vendor = "AMD"
	}
	var errs [2]error
	c.Shape, errs[0] = spec.ParseShape(shape)
	c.Plan, errs[1] = spec.ParsePlan(plan)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return c
}

func emit(t testing.TB, framework string, c spec.Config) (Script, error) {
	t.Helper()
	f, err := Lookup(framework)
	if err != nil {
		t.Fatal(err)
	}
	return f.Emit(c)
}

func TestGolden(t *testing.T) {
	for _, tc := range golden {
		s, err := emit(t, tc.framework, config(t, tc.model, tc.accelerator, tc.shape, tc.plan))
		if err != nil {
			t.Errorf("%s: %v", tc.file, err)
			continue
		}
		got := s.Text
		for _, n := range s.Notes {
			got += "note: " + n + "\n"
		}
		spectest.Golden(t, filepath.Join("testdata", tc.file+".golden"), []byte(got))
	}
}

// TestGoldenIsSound parses the files with their own tools: bash runs the scripts with
// a torchrun that prints its arguments.
func TestGoldenIsSound(t *testing.T) {
	for _, tc := range golden {
		c := config(t, tc.model, tc.accelerator, tc.shape, tc.plan)
		s, err := emit(t, tc.framework, c)
		if err != nil {
			t.Errorf("%s: %v", tc.file, err)
			continue
		}
		switch filepath.Ext(tc.file) {
		case ".sh":
			args := run(t, s.Text, c.Shape.Nodes()-1)
			if n := after(args, "--nproc-per-node"); n != itoa(c.Shape.Least()) { // the last node has the fewest
				t.Errorf("%s: %q, want %d processes", tc.file, args, c.Shape.Least())
			}
		case ".json":
			dec := json.NewDecoder(strings.NewReader(s.Text))
			dec.DisallowUnknownFields()
			if err := dec.Decode(new(dsConfig)); err != nil {
				t.Errorf("%s: %v", tc.file, err)
			}
		case ".toml":
			if _, err := toml.Decode(s.Text, new(map[string]any)); err != nil {
				t.Errorf("%s: %v\n%s", tc.file, err, s.Text)
			}
		}
	}
}

// run runs a script with a torchrun that prints its arguments, and returns these.
func run(t testing.TB, script string, rank int) []string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		spectest.Lacks(t, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "torchrun"), []byte("#!/bin/sh\nprintf '%s\\0' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "MASTER_ADDR=node0", "DATA_PATH=here", "VOCAB_FILE=vocab.txt", "NODE_RANK=" + itoa(rank)}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// after returns the word after an option, "" without the option.
func after(args []string, option string) string {
	for i, a := range args {
		if a == option && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// TestNamesAreText: names are user input, and no output executes them.
func TestNamesAreText(t *testing.T) {
	for _, name := range []string{"a\ntouch pwned\n", "$(touch pwned)", "`touch pwned`", `"; touch pwned; "`, "'", "\u2028touch pwned", `\`, "\xff"} {
		c := config(t, "Llama2-7B", "A100-80GB", "2x4", "dp=8,precision=bf16")
		c.Model.Name, c.Accelerator.Name = name, name
		for _, f := range []string{"torchrun", "megatron"} {
			s, err := emit(t, f, c)
			if err != nil {
				t.Fatal(err)
			}
			if args := run(t, s.Text, 1); after(args, "--nnodes") != "2" || strings.Contains(strings.Join(args, " "), "pwned") {
				t.Errorf("%s, name %q: %q", f, name, args)
			}
			if _, err := os.Stat("pwned"); err == nil {
				t.Fatalf("%s ran %q", f, name)
			}
		}
		s, err := emit(t, "torchtitan", c)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Model struct{ Flavor string } }
		if _, err := toml.Decode(s.Text, &doc); err != nil || doc.Model.Flavor != strings.ToValidUTF8(name, "?") {
			t.Errorf("name %q came back as %q, %v", name, doc.Model.Flavor, err)
		}
	}
}

// Layers with and without experts alternate from the first on, which has none.
func TestAlternatingExperts(t *testing.T) {
	f, err := Lookup("megatron")
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, "Mixtral-8x7B", "H100", "8", "dp=8,ep=8,mb=1,precision=bf16")
	c.Model.ExpertsPerToken = 1
	for layers, want := range map[int]string{32: "'([0]*1+[1])*16'", 33: "'([0]*1+[1])*16+[0]*1'"} {
		c.Model.Layers, c.Model.DenseLayers, c.Model.MoEEvery = layers, layers-16, 2
		s, err := f.Emit(c)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Text, "--moe-layer-freq "+want+"\n") || !strings.Contains(s.Text, "--moe-router-pre-softmax\n") {
			t.Errorf("%d layers: want --moe-layer-freq %s and --moe-router-pre-softmax in\n%s", layers, want, s.Text)
		}
	}
}

// TestLatentAttention: queries without a rank are not compressed, and a norm is not written twice.
func TestLatentAttention(t *testing.T) {
	c := config(t, "latent", "H100", "8", "dp=4,pp=2,ga=4,precision=bf16")
	for _, norm := range []bool{false, true} {
		f, err := Lookup("megatron")
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.EmitWith(c, Options{Details: spec.Details{Of: "x", Norm: spec.RMSNorm, QKNorm: norm}})
		if err != nil {
			t.Fatal(err)
		}
		want := "  --multi-latent-attention\n  --kv-lora-rank 256\n  --qk-head-dim 128\n  --qk-pos-emb-head-dim 64\n  --v-head-dim 128\n"
		if !strings.Contains(s.Text, want) || !strings.Contains(s.Text, "  --mtp-num-layers 2\n") || strings.Count(s.Text, "--qk-layernorm") != 1 {
			t.Errorf("want\n%s in\n%s", want, s.Text)
		}
	}
}

func TestInexpressible(t *testing.T) {
	for _, tc := range []struct{ framework, model, shape, plan, want string }{
		{"torchrun", "Llama3-8B", "8", "dp=4,tp=2,precision=bf16", "torchrun cannot express tp=2: no single call splits a model, so it would have to be written into the program; deepspeed and megatron and torchtitan can"},
		{"torchrun", "Llama3-8B", "8", "dp=8,precision=fp8", "precision=fp8: torch has no such format without a library; megatron and torchtitan can"},
		{"torchrun", "Llama3-8B", "8", "dp=8,zero=1,shard=4,precision=bf16", "shard=4: ZeroRedundancyOptimizer shards over all; megatron and torchtitan can"},
		{"torchrun", "Llama3-8B", "8", "dp=8,zero=2,offload=optimizer,precision=bf16", "offload=optimizer: CPUOffloadPolicy moves parameters and gradients too, which is offload=params; accelerate and deepspeed can"},
		{"megatron", "Llama3-8B", "8", "dp=8,zero=3,offload=params,precision=bf16", "offload=params: parameters stay on the devices; accelerate and deepspeed and torchrun and torchtitan can"},
		{"megatron", "Llama3-8B", "8", "dp=4,pp=2,ga=4,schedule=zb-v,precision=bf16", "schedule=zb-v: pipelines run 1F1B; torchtitan can"},
		{"megatron", "Llama3-8B", "8", "dp=4,pp=2,ga=4,schedule=zb-h1,precision=bf16", "only the authors' fork"},
		{"megatron", "Mixtral-8x7B", "8", "dp=4,tp=2,ep=2,precision=bf16", "sp=0: experts with tp > 1"},
		{"megatron", "ResNet-50", "8", "dp=8,precision=bf16", "model=opaque: pretrain_gpt.py and pretrain_bert.py train decoders and encoders of known shape; accelerate and deepspeed and torchrun can"},
		{"megatron", "T5-3B", "8", "dp=8,precision=bf16", "model=encoder-decoder"},
		{"deepspeed", "Llama3-8B", "8", "dp=4,pp=2,ga=4,precision=bf16", "pp=2: pipelines are written into the program (PipelineModule), not configured; megatron and torchtitan can"},
		{"deepspeed", "Llama3-8B", "8", "dp=4,cp=2,precision=bf16", "cp=2: ring attention is not there"},
		{"deepspeed", "Llama3-8B", "8", "dp=8,recompute=selective,precision=bf16", "recompute=selective: activation checkpointing is of whole layers; megatron and torchrun can"},
		{"deepspeed", "Llama3-8B", "4+2", "dp=6,precision=bf16", "shape=4+2: its launcher starts as many processes on every node; megatron and torchrun can"},
		{"torchtitan", "Llama3-8B", "8", "dp=8,zero=1,precision=bf16", "zero=1: gradients are reduced and sharded with every micro-batch: zero=2; accelerate and deepspeed and megatron and torchrun can"},
		{"torchtitan", "Llama3-8B", "8", "dp=4,tp=2,zero=3,precision=bf16", "sp=0: its tensor parallelism is sequence parallel; accelerate and deepspeed and megatron and torchrun can"},
		{"torchtitan", "Llama3-8B", "8", "tp=8,sp=1,precision=bf16", "precision=bf16: mixed precision comes with data or context parallelism"},
		{"torchtitan", "Qwen3-8B", "8", "dp=4,pp=2,ga=4,zero=1,precision=bf16", "pp=2: its Qwen 3 has no pipeline; megatron can"},
		{"torchtitan", "Mixtral-8x7B", "8", "dp=8,ep=8,zero=3,precision=bf16", "model=32 layers of width 4096 with 8 experts"},
		{"torchtitan", "Qwen3-30B-A3B", "8", "dp=8,ep=8,zero=3,shard=4,precision=bf16", "ep=8: it must divide the 4 devices of a shard group x cp x tp; megatron can"},
		{"torchtitan", "GPT3-175B", "8", "dp=8,zero=3,precision=bf16", "model=decoder with a plain MLP: it has Llama 3, Qwen 3 and DeepSeek V3 models, and those of llama3's form; accelerate and deepspeed and megatron and torchrun can"},
		{"torchtitan", "latent", "8", "dp=8,zero=3,precision=bf16", "model=latent attention: only its DeepSeek V3 models have it; accelerate and deepspeed and megatron and torchrun can"},
		{"accelerate", "Llama3-8B", "8", "dp=4,pp=2,ga=2,precision=bf16", "pp=2: pipelines are those of its Megatron-LM plugin"},
		{"accelerate", "Llama3-8B", "8", "dp=4,tp=2,zero=1,precision=bf16", "tp=2: it goes with FSDP: zero=2 or 3, the optimizer not offloaded alone; deepspeed and megatron and torchtitan can"},
		{"accelerate", "Llama3-8B", "8", "dp=8,zero=1,recompute=full,precision=bf16", "recompute=full: it goes with FSDP: zero=2 or 3, the optimizer not offloaded alone; else the program calls"},
		{"torchtitan", "Llama3-8B", "8", "dp=8,ps=2,async=1,precision=bf16", "ps=2: replicas reduce gradients among themselves; none here can; async=1: replicas step together; none here can"},
	} {
		_, err := emit(t, tc.framework, config(t, tc.model, "H100", tc.shape, tc.plan))
		var e *Inexpressible
		if !errors.Is(err, ErrCannotExpress) || !errors.As(err, &e) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %s: %v, want %q", tc.framework, tc.plan, err, tc.want)
		}
	}
}

func TestEmitRefusesWhatIsNoJob(t *testing.T) {
	good := config(t, "Llama3-8B", "H100", "8", "dp=8,precision=bf16")
	for _, tc := range []struct {
		change func(*spec.Config)
		want   string
	}{
		{func(c *spec.Config) { c.Shape = spec.Shape{} }, "no shape"},
		{func(c *spec.Config) { c.Shape.Devices = "4" }, "is for 8 devices, shape 4 has 4"},
		{func(c *spec.Config) { c.Plan.TP = 3 }, "is for 24 devices"},
		{func(c *spec.Config) { c.Plan.DP = -1 }, "below 1"},
		{func(c *spec.Config) { c.Plan.DP = 1 << 40 }, "above"},
		{func(c *spec.Config) { c.Model.Layers = -3 }, "layers=-3 is negative"},
		{func(c *spec.Config) { c.Model = spec.Model{} }, "no name"},
	} {
		c := good
		tc.change(&c)
		for _, f := range Frameworks() {
			if s, err := f.Emit(c); err == nil || !strings.Contains(err.Error(), tc.want) || s.Text != "" {
				t.Errorf("%s: %v, want %q", f.Name, err, tc.want)
			}
		}
	}
	if _, err := Lookup("megatronn"); err == nil || !strings.Contains(err.Error(), "megatron") {
		t.Errorf("%v", err)
	}
	if got := Able(good); len(got) != len(Frameworks()) {
		t.Errorf("plain data parallelism is for %v", got)
	}
}

// TestModulesOfTheStack: Megatron Core's arguments name the modules that the prediction's training stack recomputes; other
// stacks recompute the attention core. Offloaded activations of dense layers are noted.
func TestModulesOfTheStack(t *testing.T) {
	for framework, want := range map[string]string{
		"Megatron Core@0.13":                             "--recompute-modules core_attn",
		"Megatron Core@0.13 recompute=layernorm+moe_act": "--recompute-modules moe_act layernorm",
		"torchtitan@2025-06":                             "--recompute-modules core_attn",
		"Megatron Core@0.13 activations=offloaded":       "--recompute-modules core_attn",
	} {
		c := config(t, "Llama3-8B", "H100-80GB-SXM", "8", "dp=8,mb=1,ga=2,recompute=selective")
		c.Framework = framework
		s, err := emit(t, "megatron", c)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Text, want) {
			t.Errorf("%s: no %q in\n%s", framework, want, s.Text)
		}
		if got := strings.Contains(strings.Join(s.Notes, "\n"), "activations=offloaded"); got != strings.Contains(framework, "offloaded") {
			t.Errorf("%s: notes %q", framework, s.Notes)
		}
	}
}
