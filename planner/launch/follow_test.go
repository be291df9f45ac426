package launch

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// TestStackIsFollowed: files have the parts of the training stack that the prediction assumes, and a note names those that
// they lack.
func TestStackIsFollowed(t *testing.T) {
	const core, moe = "Megatron Core@0.15", "dp=16,tp=2,pp=2,ep=8,mb=1,ga=16,zero=1,sp=1,precision=bf16"
	const deepEP, allToAll = "--moe-token-dispatcher-type flex\n  --moe-enable-deepep\n", "--moe-token-dispatcher-type alltoall\n"
	for _, tc := range []struct {
		framework, model, accelerator, plan, stack string
		has, lacks                                 []string
		note                                       string // parts that are not written
	}{
		{"megatron", "Mixtral-8x7B", "H100", moe, "", []string{deepEP, "--moe-permute-fusion\n", "--moe-router-fusion\n", "--cross-entropy-loss-fusion\n"}, []string{"alltoall", "--attention-backend"}, ""},
		{"megatron", "Mixtral-8x7B", "GB200", moe, "", []string{"flex\n  --moe-flex-dispatcher-backend hybridep\n"}, []string{"deepep"}, ""},
		{"megatron", "Mixtral-8x7B", "MI300X", moe, "", []string{allToAll}, []string{"deepep", "flex"}, ""},
		{"megatron", "DeepSeek-V3", "H100", "dp=64,ep=64,zero=1,precision=bf16", "", []string{"--moe-router-num-groups 8\n  --moe-router-group-topk 4\n"}, nil, ""},
		{"megatron", "DeepSeek-V3", "H100", "dp=64,ep=32,zero=1,precision=bf16", "", nil, []string{"group-topk"}, ""}, // four nodes
		{"megatron", "Mixtral-8x7B", "H100", moe, core + " dispatch=all-to-all routing=plain loss=parallel", []string{allToAll}, []string{"deepep", "fusion"}, ""},
		{"megatron", "Mixtral-8x7B", "H100", "dp=64,zero=1,precision=bf16", "", []string{allToAll}, []string{"deepep"}, ""}, // one rank has all experts
		{"megatron", "Mixtral-8x7B", "H100", moe, core + " routing=graphs loss=chunked", nil, []string{"fusion"}, "loss=chunked, routing=graphs"},
		{"megatron", "Mixtral-8x7B", "H100", moe, core + " activations=experts", []string{"--fine-grained-activation-offloading\n  --offload-modules expert_fc1 moe_act\n"}, nil, ""},
		{"megatron", "Mixtral-8x7B", "H100", moe + ",recompute=full", core + " activations=experts", nil, []string{"offload"}, "activations=experts"},
		{"megatron", "DeepSeek-V3", "H100", "dp=64,ep=64,zero=1,precision=bf16", core + " ep=backward", []string{"--overlap-moe-expert-parallel-comm\n"}, nil, ""},
		{"megatron", "DeepSeek-V3", "H100", "dp=8,pp=8,ep=8,ga=8,zero=1,precision=bf16", core + " ep=backward attention=flash", nil, []string{"expert-parallel-comm", "--attention-backend"}, "attention=flash, ep=backward"},
		{"megatron", "DeepSeek-V3", "H100", "dp=64,ep=64,zero=1,precision=bf16", core + " ep=async dispatch=all-to-all", []string{"--moe-shared-expert-overlap\n"}, nil, ""},
		{"megatron", "DeepSeek-V3", "H100", "dp=64,ep=64,zero=1,precision=bf16", core + " ep=async", nil, []string{"shared-expert-overlap"}, "ep=async"},
		// What Megatron-LM and torchtitan refuse is not written.
		{"megatron", "DeepSeek-V3", "H100", "dp=64,ep=64,zero=1,recompute=full,precision=bf16", core + " ep=backward", nil, []string{"expert-parallel-comm"}, "ep=backward"},
		{"megatron", "two ahead", "H100", "dp=64,ep=8,zero=1,precision=bf16", core + " ep=backward", nil, []string{"expert-parallel-comm"}, "ep=backward"},
		{"megatron", "Mixtral-8x7B", "H100", moe, core + " ep=async dispatch=all-to-all", nil, []string{"shared-expert-overlap"}, "ep=async"},
		{"megatron", "Llama3-8B", "H100", "dp=4,tp=4,cp=4,zero=1,sp=1,precision=bf16", core + " cp=a2a", nil, []string{"--cp-comm-type"}, "cp=a2a"},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", core + " optimizer=sgd", nil, []string{"--optimizer sgd"}, "optimizer=sgd"},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,offload=optimizer,precision=bf16", core + " gradients=16bit reduce=16bit", []string{"--grad-reduce-in-bf16\n  --main-grads-dtype bf16\n"}, nil, ""},
		{"megatron", "Mixtral-8x7B", "H100", "dp=64,zero=1,recompute=selective,precision=fp8", core + " recompute=moe_act", []string{"--fp8-recipe tensorwise\n"}, nil, ""},
		{"torchtitan", "Llama3-8B", "H100", "dp=16,tp=4,sp=1,zero=3,precision=bf16", "torchtitan@2025-10 launch=eager tp=async", nil, []string{"enable_async_tensor_parallel = true"}, "tp=async"},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", core + " overlap=none", nil, []string{"--overlap-"}, ""},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=3,precision=bf16", core + " overlap=none", nil, []string{"--overlap-"}, "overlap=none"},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", core + " gradients=16bit reduce=16bit", []string{"--grad-reduce-in-bf16\n"}, nil, ""},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", core + " reduce=16bit", nil, []string{"--grad-reduce-in-bf16"}, "reduce=16bit"},
		{"megatron", "Llama3-8B", "V100", "dp=64,zero=1,precision=fp16", "", []string{"--accumulate-allreduce-grads-in-fp32\n"}, nil, ""},
		{"megatron", "Llama3-8B", "V100", "dp=64,zero=1,precision=fp16", core + " gradients=16bit reduce=16bit", nil, []string{"--accumulate", "--grad-reduce"}, ""},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", core + " optimizer=adam-8bit attention=unfused launch=eager",
			[]string{"--exp-avg-dtype fp8\n", "--exp-avg-sq-dtype fp8\n", "--attention-backend unfused\n", "--no-rope-fusion\n"}, nil, ""},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", core + " optimizer=adam-bf16 gradients=16bit reduce=16bit", []string{"--grad-reduce-in-bf16\n  --main-grads-dtype bf16\n", "--exp-avg-dtype bf16\n"}, nil, ""},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,recompute=selective,precision=fp8", core + " recompute=layernorm", []string{"--fp8-recipe tensorwise\n", "--recompute-modules layernorm\n"}, nil, ""},
		{"megatron", "Llama3-8B", "H100", "dp=64,precision=bf16", core + " optimizer=adam-bf16", nil, []string{"--exp-avg"}, "optimizer=adam-bf16"},
		{"megatron", "Llama3-8B", "H100", "dp=64,precision=bf16", core + " optimizer=sgd", []string{"--optimizer sgd\n  --sgd-momentum 0\n"}, nil, ""},
		{"megatron", "Llama3-8B", "H100", "dp=8,tp=4,cp=2,zero=1,sp=1,precision=bf16", core + " tp=fused cp=a2a", []string{"--tp-comm-overlap\n", "--cp-comm-type a2a\n"}, nil, ""},
		{"megatron", "Llama3-8B", "H100", "dp=8,tp=4,cp=2,zero=1,precision=bf16", core + " tp=none cp=a2a", nil, []string{"--tp-comm-overlap"}, "tp=none"},
		{"megatron", "Llama3-8B", "H100", "dp=16,tp=4,zero=1,precision=bf16", core + " sequence=always", []string{"--sequence-parallel\n"}, nil, ""},
		{"megatron", "Llama3-8B", "H100", "dp=8,pp=8,vp=2,ga=8,zero=1,precision=bf16", core + " sends=after stages=middle outputs=kept", []string{"--no-overlap-p2p-communication\n"}, nil, "stages=middle, outputs=kept"},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=1,recompute=selective,precision=bf16", core + " recompute=blocks", []string{"--recompute-modules core_attn\n"}, nil, "recompute=blocks"},
		{"megatron", "Llama3-8B", "H100", "dp=64,zero=3,precision=bf16", "FSDP@2.0", nil, nil, "attention=torch, loss=plain, reduce=16bit"},
		{"torchtitan", "Llama3-8B", "H100", "dp=64,zero=3,precision=bf16", "", []string{"[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n"}, nil, ""},
		{"torchtitan", "Llama3-8B", "H100", "dp=64,zero=3,precision=bf16", "torchtitan@2025-10 launch=eager loss=plain", nil, []string{"[compile]"}, ""},
		{"torchtitan", "Llama3-8B", "H100", "dp=16,tp=4,sp=1,zero=3,precision=bf16", "torchtitan@2025-10 tp=async optimizer=muon", []string{"enable_async_tensor_parallel = true\n"}, nil, "optimizer=muon"},
		{"torchtitan", "Llama3-8B", "H100", "dp=16,pp=4,ga=16,zero=1,schedule=zb-v,precision=bf16", "", nil, []string{"[compile]"}, "launch=compiled, loss=compiled"},
		{"deepspeed", "Llama3-8B", "H100", "dp=64,zero=2,precision=bf16", "", []string{`"grad_accum_dtype": "fp32"`, `"overlap_comm": true`}, []string{"communication_data_type"}, ""},
		{"deepspeed", "Llama3-8B", "H100", "dp=64,zero=2,precision=bf16", "DeepSpeed@0.18 overlap=backward reduce=fp32 gradients=16bit", []string{`"overlap_comm": true`, `"communication_data_type": "fp32"`}, []string{"grad_accum_dtype"}, ""},
		{"deepspeed", "Llama3-8B", "H100", "dp=64,precision=bf16", "DeepSpeed@0.18 overlap=backward", nil, []string{"overlap_comm"}, "overlap=backward"},
		{"deepspeed", "Llama3-8B", "H100", "dp=64,zero=3,precision=bf16", "", []string{`"overlap_comm": true`}, nil, ""},
		{"accelerate", "Llama3-8B", "H100", "dp=64,zero=3,precision=bf16", "Accelerate@1.10 launch=compiled loss=chunked", []string{"dynamo_backend: INDUCTOR\n"}, nil, "loss=chunked"},
		{"accelerate", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", "Accelerate@1.10 zero=deepspeed", []string{"zero_stage: 1\n"}, nil, ""},
		{"torchrun", "Llama3-8B", "H100", "dp=64,zero=3,precision=bf16", "PyTorch@2.9 launch=compiled reduce=16bit optimizer=adafactor attention=flash", []string{"model.compile()", "reduce_dtype=torch.bfloat16", "torch.optim.Adafactor("}, []string{"AdamW"}, "attention=flash"},
		{"torchrun", "Llama3-8B", "H100", "dp=64,zero=1,precision=bf16", "PyTorch@2.9 reduce=16bit optimizer=sgd", []string{"bf16_compress_hook", "optimizer_class=torch.optim.SGD"}, nil, ""},
		{"torchrun", "Llama3-8B", "H100", "dp=64,precision=fp32", "PyTorch@2.9 reduce=16bit weights=16bit gradients=16bit", nil, []string{"hook"}, ""}, // all is fp32
	} {
		c := config(t, tc.model, tc.accelerator, "8x8", tc.plan)
		c.Framework = tc.stack
		s, err := emit(t, tc.framework, c)
		if err != nil {
			t.Errorf("%s %s %s: %v", tc.framework, tc.plan, tc.stack, err)
			continue
		}
		for _, want := range tc.has {
			if !strings.Contains(s.Text, want) {
				t.Errorf("%s %s %s: no %q in\n%s", tc.framework, tc.plan, tc.stack, want, s.Text)
			}
		}
		for _, not := range tc.lacks {
			if strings.Contains(s.Text, not) {
				t.Errorf("%s %s %s: %q in\n%s", tc.framework, tc.plan, tc.stack, not, s.Text)
			}
		}
		var note string
		for _, n := range s.Notes {
			if parts, ok := strings.CutPrefix(n, "the prediction has "); ok && strings.Contains(n, "not written") {
				note, _, _ = strings.Cut(parts, ":")
			}
		}
		if note != tc.note {
			t.Errorf("%s %s %s: %q is noted as not written, want %q", tc.framework, tc.plan, tc.stack, note, tc.note)
		}
	}
}

// TestEveryPartIsFollowedOrNoted: each value of each part that differs from a framework's own is in the file, or in a note.
func TestEveryPartIsFollowedOrNoted(t *testing.T) {
	plans := []struct{ model, plan string }{
		{"Llama3-8B", "dp=2,tp=2,pp=4,cp=2,vp=2,ga=8,zero=1,sp=1,recompute=selective,precision=bf16"},
		{"Mixtral-8x7B", "dp=32,ep=8,zero=1,precision=bf16"},
		{"Llama3-8B", "dp=32,zero=3,precision=bf16"},
		{"Llama3-8B", "dp=32,precision=fp16"},
	}
	for _, f := range Frameworks() {
		for _, plan := range plans {
			c := config(t, plan.model, "H100", "4x8", plan.plan)
			own, err := f.Emit(c)
			if err != nil {
				continue
			}
			if n := slices.IndexFunc(own.Notes, func(n string) bool { return strings.HasPrefix(n, "the prediction has") }); n >= 0 {
				t.Errorf("%s %s: note on its own stack: %s", f.Name, plan.plan, own.Notes[n])
			}
			for _, kind := range stack.Kinds() {
				for _, value := range kind.Values {
					c.Framework = f.Stack + " " + kind.Name + "=" + value.Name
					parts := f.parts(&c)
					s, err := f.Emit(c)
					if err != nil || !matters[kind.Name].holds(&c, parts) || kind.Of(parts) == kind.Of(f.parts(new(config(t, plan.model, "H100", "4x8", plan.plan)))) {
						continue
					}
					notes := strings.Join(s.Notes, "\n")
					if c.Plan.ZeRO == 3 && (kind.Name == "zero" || kind.Name == "overlap") { // alike there, or fixed
						continue
					}
					if s.Text == own.Text && !strings.Contains(notes, kind.Name+"="+value.Name) {
						t.Errorf("%s %s: nothing says %s=%s", f.Name, plan.plan, kind.Name, value.Name)
					}
				}
			}
		}
	}
}

// TestSettingsAreOfParts: settings and conditions name parts and values that exist.
func TestSettingsAreOfParts(t *testing.T) {
	values := map[string][]string{}
	for _, kind := range stack.Kinds() {
		values[kind.Name] = []string{""}
		for _, v := range kind.Values {
			values[kind.Name] = append(values[kind.Name], v.Name)
		}
	}
	for _, f := range Frameworks() {
		for _, s := range f.settings {
			if !slices.Contains(values[s.part], s.value) {
				t.Errorf("%s: no part %s=%s", f.Name, s.part, s.value)
			}
		}
	}
	for part := range matters {
		if values[part] == nil {
			t.Errorf("no part %s", part)
		}
	}
}
