package profiler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// testCatalog has two models.
func testCatalog(name string) (spec.Model, error) {
	switch name {
	case "GPT", "BERT":
		return tinyModel(name, 4), nil
	}
	return spec.Model{}, fmt.Errorf("catalog: unknown model %q", name)
}

func TestReadCampaign(t *testing.T) {
	const text = `
name: all-keys.1
description: |
  Every key once.
models:
  - GPT
  - name: own
    kind: encoder-decoder
    layers: 4
    hidden: 96
    ffn: 200
    heads: 6
    kv_heads: 2
    head_dim: 32
    vocab: 1000
    seq_len: 128
    gated_mlp: true
    experts: 8
    experts_per_token: 2
    expert_ffn: 96
    shared_experts: 1
    dense_layers: 1
    tied_embeddings: true
    params: 1.5e6
accelerator: H100
space:
  shapes: [1, 2x2, "4+4", 8]
  seq: [64, 128]
  micro_batch: [1, 2]
  accumulation: 4
  tp: [1, 2]
  pp: [1, 2]
  zero: [0, 3]
  sp: [false, true]
  recompute: [none, selective, full]
  offload: [none, optimizer]
  precision: [bf16, fp32]
  plans:
    - dp=2,tp=2,mb=8
choose: random
family: analytic
until: {interval: 0.15}
budget:
  points: 40
  device_hours: 1.5
  wall: 1h30m
point: {timeout: 2m, min_steps: 3, max_steps: 30, max_time: 10s, interval: 0.01, compile: true, threads: 2}
runner: {name: synthetic, noise: 0.02, delay: 5ms}
`
	got, err := ReadCampaign("f.yaml", []byte(text), testCatalog)
	if err != nil {
		t.Fatal(err)
	}
	want := Campaign{
		Name: "all-keys.1", Description: "Every key once.",
		Models: []spec.Model{tinyModel("GPT", 4), {Name: "own", Kind: spec.EncoderDecoder, Layers: 4, Hidden: 96, FFN: 200, Heads: 6, KVHeads: 2,
			HeadDim: 32, Vocab: 1000, SeqLen: 128, GatedMLP: true, TiedEmbeddings: true, ParamCount: 1.5e6,
			Experts: 8, ExpertsPerToken: 2, ExpertFFN: 96, SharedExperts: 1, DenseLayers: 1}},
		Space: Space{
			Accelerator: "H100", Shapes: []spec.Shape{{Devices: "1"}, {Devices: "2+2"}, {Devices: "4+4"}, {Devices: "8"}},
			SeqLens: []int{64, 128}, MicroBatch: []int{1, 2}, AccumSteps: []int{4}, TP: []int{1, 2}, PP: []int{1, 2}, ZeRO: []int{0, 3},
			SP: []bool{false, true}, Recompute: []spec.Recompute{"none", "selective", "full"}, Offload: []spec.Offload{"none", "optimizer"},
			Precision: []spec.Precision{"bf16", "fp32"}, Plans: []spec.Plan{spec.Plan{DP: 2, TP: 2, MicroBatch: 8}.Normal()},
		},
		Choose: Random, Family: "analytic", Until: Until{Interval: 0.15},
		Budget: Budget{Points: 40, DeviceHours: 1.5, Wall: 90 * time.Minute},
		Point: PointOptions{Timeout: 2 * time.Minute, MinSteps: 3, MaxSteps: 30, MaxTime: 10 * time.Second, Interval: 0.01,
			Compile: true, Threads: 2},
		Runner: RunnerSpec{Name: "synthetic", Noise: 0.02, Delay: 5 * time.Millisecond},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadShortCampaigns(t *testing.T) {
	got, err := ReadCampaign("f.yaml", []byte("name: a\nmodels: GPT\nrunner: torchrun\n"), testCatalog)
	if err != nil || got.Runner.Name != RunnerTorchrun || len(got.Models) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = ReadCampaign("f.yaml", []byte("name: a\nmodels: [llama7]\nspace: {measured: true}\nrunner: {name: replay, source: rubick}\n"), nil)
	if err != nil || !got.Space.Measured || got.Models[0].Name != "llama7" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadAnyGPU(t *testing.T) {
	got, err := ReadCampaign("f.yaml", []byte("name: a\nmodels: GPT\naccelerator: GPU\n"), testCatalog)
	if err != nil || got.Space.Accelerator != AnyGPU {
		t.Errorf("%q, %v", got.Space.Accelerator, err)
	}
	_, err = ReadCampaign("f.yaml", []byte("name: a\naccelerator: gpu\nspace: {measured: true}\nrunner: {name: replay, source: rubick}\n"), nil)
	if want := "f.yaml:2:14: accelerator: gpu has no effect with measured: true"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestReadErrors: each text gives all of its errors, in order.
func TestReadErrors(t *testing.T) {
	const head = "name: a\nmodels: [GPT]\n"
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"", []string{":1:1: the file is empty"}},
		{"# only this", []string{":1:1: the file is empty"}},
		{"- a\n- b\n", []string{":1:1: a list, want a mapping with keys of name, description"}},
		{"name: a\nmodels: [GPT]\n---\nname: b\n", []string{":4:1: a second document"}},
		{"name: [a\n", []string{":1:7: "}},
		{"models: [GPT]\n", []string{":1:1: the campaign has no name"}},
		{"name: a\n", []string{"the campaign has no models"}},
		{"name: ''\nmodels: [GPT]\n", []string{":1:7: empty text"}},
		{"name:\nmodels: [GPT]\n", []string{":1:1: name has no value"}},
		{"name: ../x\nmodels: [GPT]\n", []string{`:1:7: name "../x" is not 1 to 64 letters`}},
		{"name: a b\nmodels: [GPT]\n", []string{`:1:7: name "a b" is not 1 to 64`}},
		{head + "modles: [GPT]\n", []string{`:3:1: unknown key "modles", nearest is models`}},
		{head + "name: b\n", []string{`:3:1: `}},
		{head + "? [a]\n: 1\n", []string{`:4:1: found an invalid key`}},
		{"name: a\nmodels: [GTP]\n", []string{`:2:10: catalog: unknown model "GTP"`}},
		{"name: a\nmodels: [GPT, BERT, GPT]\n", []string{`:2:21: model GPT is listed twice`}},
		{"name: a\nmodels: []\n", []string{`:2:9: an empty list`}},
		{"name: a\nmodels:\n  - GPT\n  -\n", []string{`an element of the list is empty`}},
		{"name: a\nmodels: [{kind: decoder}]\n", []string{`:2:10: the model has neither`, `:2:10: the model has no name`}[1:]},
		{"name: a\nmodels: [{name: GPT, params: 5}]\n", []string{`:2:17: GPT is a model of the catalog`}},
		{"name: a\nmodels: [{name: x, layers: 2, hidden: 64, ffn: 64, heads: 4, seq_len: 8}]\n", []string{`:2:10: model x has no kind`}},
		{"name: a\nmodels: [{name: x, kind: decoder, layers: 2, hidden: 64, ffn: 64, heads: 5, seq_len: 8}]\n", []string{`:2:10: model x: heads=5 does not divide hidden=64`}},
		{"name: a\nmodels: [{name: x, kind: decoder, layers: 2, hidden: 64, ffn: 64, heads: 4, kv_heads: 3, seq_len: 8}]\n", []string{`:2:10: model x: kv_heads=3 does not divide heads=4`}},
		{"name: a\nmodels: [{name: x, kind: decoder, layers: 2, hidden: 64, ffn: 64, heads: 4}]\n", []string{`:2:10: model x has no seq_len`}},
		{"name: a\nmodels: [{name: x, kind: decoder, seq_len: 8}]\n", []string{`:2:10: model x has neither layers and hidden size`}},
		{"name: a\nmodels: [{name: x, kind: decodr, layers: 0, hidden: 1.5, gated_mlp: 1}]\n",
			[]string{`:2:26: "decodr" is not one of decoder, encoder, encoder-decoder, vision, opaque; nearest is decoder`,
				`:2:42: 0 is not in 1..`, `:2:53: 1.5 is not a whole number`, `:2:69: 1 is not true or false`}},
		{head + "space:\n  tp: [3, x]\n", []string{`:4:11: "x" is not a whole number`}},
		{head + "space:\n  shapes: [6]\n  tp: [1, 3]\n", []string{`:5:11: GPT: tp=3 does not divide 4 heads`}},
		{"name: a\nmodels: [GPT, BERT]\nspace:\n  shapes: [5]\n  pp: [5]\n", []string{`:5:8: GPT: pp=5 x vp=1 exceeds 4 layers, and none of the other 1 models can either`}},
		{head + "space: {tp: [2]}\n", []string{`:3:14: tp=2 needs 2 devices, the largest shape has 1`}},
		{head + "space: {shapes: [0, 8y8, [1]]}\n", []string{`:3:18: shape "0"`, `:3:21: shape "8y8"`, `:3:26: a list, want text`}},
		{head + "space: {micro_batch: [0, -1, 99999999999], zero: 4, sp: [1]}\n",
			[]string{`:3:23: 0 is not in 1..`, `:3:26: -1 is not in`, `:3:30: 99999999999 is not in`, `:3:50: 4 is not in 0..3`, `:3:58: 1 is not true or false`}},
		{head + "space: {recompute: [all], offload: gpu, precision: [bf61]}\n",
			[]string{`:3:21: "all" is not one of none, selective, full`, `:3:36: "gpu" is not one of none, optimizer, params`, `nearest is bf16`}},
		{head + "space:\n  plans:\n    - dp=2,mb=1\n    - mb=4\n    - tq=4\n", []string{`:7:7: plan "tq=4": unknown key "tq"`}},
		{head + "space:\n  plans:\n    - dp=2,mb=1\n    - mb=4\n", []string{`:5:7: plan dp=2,tp=1,pp=1,mb=1,ga=1 is for 2 devices, the shapes are 1`}},
		{head + "space:\n  shapes: [2, 6]\n  plans:\n    - tp=3,dp=2\n    - zero=3,pp=2\n    - pp=2,offload=optimizer\n    - tp=2,vp=2\n",
			[]string{`:6:7: plan dp=2,tp=3,pp=1,mb=1,ga=1: GPT: tp=3 does not divide 4 heads`, `:7:7: plan dp=1,tp=1,pp=2,mb=1,ga=1,zero=3: GPT: zero=3 with pp=2`,
				`:8:7: plan dp=1,tp=1,pp=2,mb=1,ga=1,offload=optimizer: GPT: offload=optimizer needs pp=1`, `:9:7: plan dp=1,tp=2,pp=1,vp=2,mb=1,ga=1: GPT: vp=2 needs pp > 1`}},
		{head + "space:\n  shapes: [1, 2]\n  tp: \n", []string{`:5:3: tp has no value`}},
		{head + "choose: greedy\nfamily: rubik\n", []string{`:3:9: "greedy" is not one of adaptive, random, grid`, `:4:9: "rubik" is not one of`}},
		{head + "until: {interval: 0}\n", []string{`:3:19: 0 is not above 0`}},
		{head + "until: 0.1\n", []string{`:3:8: 0.1, want a mapping with keys of interval`}},
		{head + "budget: {points: 0, device_hours: -2, wall: 30}\n", []string{`:3:18: 0 is not in 1..1000000`, `:3:35: -2 is not above 0`, `:3:45: 30 has no unit`}},
		{head + "budget: {device_hours: .inf, wall: soon, points: many}\n", []string{`:3:24: `, `:3:36: "soon" is not a duration`, `:3:50: "many" is not a whole number`}},
		{head + "budget: {wall: -5m}\n", []string{`:3:16: -5m is not above 0`}},
		{head + "point: {min_steps: 10, max_steps: 5}\n", []string{`:3:35: min_steps=10 exceeds max_steps=5`}},
		{head + "point: {min_time: 6s, max_time: 5s}\n", []string{`:3:19: min_time=6s exceeds max_time=5s`}},
		{head + "point: {timeout: 10s, max_time: 20s}\n", []string{`:3:33: max_time=20s leaves no time within timeout=10s`}},
		{head + "runner: mpirun\n", []string{`:3:9: "mpirun" is not one of torchrun, command, replay, synthetic`}},
		{head + "runner: command\n", []string{`:3:9: runner command needs the command`}},
		{head + "runner:\n  name: command\n  command: train --mb {mbs} {{dp}} ${X}\n",
			[]string{`:5:12: unknown placeholder {mbs}, nearest is {mb}; write {{mbs}} for the text {mbs}`}},
		{head + "runner:\n  name: command\n  command:\n    - train\n    - '{DP}'\n  warmup_steps: 0\n  noise: 1\n  env: {A-B: 1, C: '{d}'}\n",
			[]string{`:7:7: unknown placeholder {DP}, nearest is {dp}`, `:8:17: 0`, `:9:3: noise has no effect with runner command`,
				`:10:14: "A-B" is not the name`, `:10:20: unknown placeholder {d}`}},
		{head + "point: {max_steps: 9}\nrunner: {name: command, command: 'train {emit}'}\n", []string{`nothing is emitted: give emit one of`}},
		{head + "point: {max_steps: 9, timeout: 1m}\nrunner: {name: command, command: train}\n", []string{`:3:9: max_steps has no effect with runner command`}},
		{head + "runner: {name: torchrun, command: train}\n", []string{`:3:26: command has no effect with runner torchrun`}},
		{head + "runner: {noise: 0.1}\n", []string{`the runner has no name`}},
		{head + "runner: replay\n", []string{`:3:9: runner replay needs the source`}},
		{head + "runner: {name: torchrun, noise: 0.1}\n", []string{`:3:26: noise has no effect with runner torchrun`}},
		{head + "runner: {name: synthetic, source: s, delay: 3}\n", []string{`:3:27: source has no effect with runner synthetic`, `:3:45: 3 has no unit`}},
		{head + "space: {measured: true, tp: [1]}\n", []string{`:3:9: measured: true needs a table`, `:3:25: tp has no effect with measured: true`}},
		{head + "description: &x text\n", []string{`:3:14: an anchor or alias`}},
		{head + "description: !!int 3\n", []string{`:3:14: a tag`}},
		{head + strings.Repeat("[", 200), []string{`brackets or lists nested more than 100 deep`}},
		{head + strings.Repeat("- ", 1e5), []string{`brackets or lists nested more than 100 deep`}},
		{head + "space: {shapes: [1, 2, 4, 8], micro_batch: [" + strings.Repeat("1,", 400) + "2], seq: [" + strings.Repeat("1,", 1000) + "2]}\n", []string{`the space has 1605604 combinations`}},
		{head + "space: {micro_batch: [" + strings.Repeat("x,", 40) + "y]}\n", append(repeated("is not a whole number", yamlfile.MaxMessages), "and 21 more")},
	} {
		_, err := ReadCampaign("f.yaml", []byte(tc.text), testCatalog)
		if err == nil {
			t.Errorf("%q: no error, want %q", tc.text, tc.want)
			continue
		}
		lines := strings.Split(err.Error(), "\nprofiler: ")
		if len(lines) != len(tc.want) {
			t.Errorf("%.200q:\n%v\nis %d errors, want %d", tc.text, err, len(lines), len(tc.want))
			continue
		}
		for i, w := range tc.want {
			if !strings.Contains(lines[i], w) || !strings.Contains(lines[i], "f.yaml:") {
				t.Errorf("%.200q: error %q, want %q", tc.text, lines[i], w)
			}
		}
	}
}

func repeated(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// TestReadErrorsWrap: errors of the catalog are wrapped.
func TestReadErrorsWrap(t *testing.T) {
	mark := errors.New("no such model")
	_, err := ReadCampaign("f.yaml", []byte("name: a\nmodels: [x]\n"), func(string) (spec.Model, error) { return spec.Model{}, mark })
	if !errors.Is(err, mark) {
		t.Errorf("%v does not wrap the error of the catalog", err)
	}
}

func FuzzReadCampaign(f *testing.F) {
	for _, s := range []string{
		"name: a\nmodels: [GPT]\nspace: {shapes: [1, 2], tp: [1, 2], plans: [\"dp=2,mb=4\"]}\nbudget: {wall: 5m}\n",
		"name: a\nmodels:\n  - {name: m, kind: vision, layers: 2, hidden: 64, ffn: 64, heads: 4, seq_len: 8}\nrunner: {name: replay, source: s}\n",
		"space: {measured: true}\n? a\n: - b\n--- \n", "a: &b [*b, <<: *b]", "\"\\x00\": |\n  x\n", "{[}", "name: 0x1_0\nuntil: {interval: .nan}",
	} {
		f.Add([]byte(s))
	}
	m := cpuMachine(2)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ReadCampaign("f.yaml", text, testCatalog)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "profiler: f.yaml:") {
				t.Errorf("error without a place: %v", err)
			}
			return
		}
		if c.Space.combinations(len(c.Models)) > 1e4 {
			return
		}
		points, _, err := c.Points(m)
		if err == nil {
			for _, p := range points {
				if err := p.Config.Check(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
