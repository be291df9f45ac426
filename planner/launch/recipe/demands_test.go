package recipe

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A file that asks for what a device does not run is changed to what it runs, and nothing else is said to be lacking.
func TestDemands(t *testing.T) {
	v100 := spec.Accelerator{Name: "V100", Arch: "Volta"}
	a100 := spec.Accelerator{Name: "A100", Arch: "Ampere"}
	const trainer = "model_name_or_path: a/b\ncutoff_len: 512\nfinetuning_type: full\nper_device_train_batch_size: 2\nbf16: true\n"
	const megatron = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 8 --bf16 "
	for _, tc := range []struct {
		name, text string
		on         spec.Accelerator
		lacks      string // "" = nothing
		wants      []string
		gone       string
	}{
		{"a.yaml", trainer + "flash_attn: fa2\n", v100, "flash_attn=fa2: FlashAttention 2 needs Ampere or later, and V100 is Volta: flash_attn=sdpa takes its place", []string{"flash_attn: sdpa"}, ""},
		{"a.yaml", trainer + "flash_attn: fa2\n", a100, "", []string{"flash_attn: fa2"}, ""},
		{"a.yaml", trainer + "attn_implementation: flash_attention_3\ntf32: true\n", a100, "attn_implementation=flash_attention_2 takes its place", []string{"attn_implementation: flash_attention_2", "tf32: true"}, ""},
		{"a.yml", "base_model: a/b\nsequence_len: 512\nmicro_batch_size: 2\nbf16: true\nflash_attention: true\n", v100, "flash_attention=false takes its place", []string{"flash_attention: false", "sdp_attention: true"}, ""},
		{"a.sh", megatron + "--use-flash-attn --use-distributed-optimizer\n", v100, "--use-flash-attn: FlashAttention 2 needs Ampere or later, and V100 is Volta: nothing takes its place", nil, "--use-flash-attn"},
		{"a.sh", megatron + "--fp8-format hybrid --fp8-recipe mxfp8\n", h100, "--fp8-recipe=delayed takes its place", []string{"--fp8-recipe delayed"}, "mxfp8"},
		{"a.yaml", trainer + "flash_attn: fa2\n", spec.Accelerator{Name: "ours"}, "", nil, ""},
	} {
		r, err := Read(tc.name, []byte(tc.text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Lacks(tc.on), "\n"); got != "" != (tc.lacks != "") || !strings.Contains(got, tc.lacks) {
			t.Errorf("%s on %s lacks %q, want %q", tc.text, tc.on.Name, got, tc.lacks)
		}
		p, _, err := r.Plan(8)
		if err != nil {
			t.Fatal(err)
		}
		from := spec.Config{Model: networks[0], Accelerator: tc.on, Plan: p, Shape: spec.Packed(8, 8), SeqLen: 512}
		to := from
		to.Plan.MicroBatch, to.Plan.AccumSteps = 1, p.MicroBatch*p.AccumSteps
		edited, why := r.edit(&from, &to, Options{})
		if why != "" && (tc.lacks != "" || from != to) {
			t.Errorf("%s: no diff: %s", tc.text, why)
		}
		for _, want := range tc.wants {
			if !strings.Contains(edited, want) {
				t.Errorf("%s on %s: the edited file has no %q\n%s", tc.text, tc.on.Name, want, edited)
			}
		}
		if tc.gone != "" && strings.Contains(edited, tc.gone) {
			t.Errorf("%s on %s: the edited file still has %q\n%s", tc.text, tc.on.Name, tc.gone, edited)
		}
	}
}

// Every generation of the catalog runs what its maker says. For what it does not run, there is a replacement.
func TestDemandsOfGenerations(t *testing.T) {
	file := "model_name_or_path: a/b\ncutoff_len: 512\nper_device_train_batch_size: 2\nbf16: true\n"
	for _, tc := range []struct {
		line string
		runs []string // of the generations
	}{
		{"tf32: true\n", []string{"Ampere", "Ada", "Hopper", "Blackwell", "Blackwell Ultra", "Rubin", "CDNA3"}},
		{"flash_attn: fa2\n", []string{"Ampere", "Ada", "Hopper", "Blackwell", "Blackwell Ultra", "Rubin", "CDNA3"}},
		{"flash_attn: fa3\n", []string{"Hopper"}},
		{"fp8_recipe: mxfp8\n", []string{"Blackwell", "Blackwell Ultra", "Rubin"}},
	} {
		r, err := Read("a.yaml", []byte(file+tc.line), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range []string{"Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell", "Blackwell Ultra", "Rubin", "CDNA3"} {
			lacks := r.Lacks(spec.Accelerator{Name: "ours", Arch: arch})
			if runs := slices.Contains(tc.runs, arch); runs != (len(lacks) == 0) {
				t.Errorf("%q on %s lacks %q, want it to run: %v", tc.line, arch, lacks, runs)
			}
		}
	}
}
