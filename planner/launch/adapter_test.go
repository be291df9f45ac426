package launch

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestAdapters: where the program makes the network, a note says how it adds the adapters. A file that describes the network
// would train all weights, and is refused.
func TestAdapters(t *testing.T) {
	for _, tc := range []struct {
		adapter, model, stack, plan string
		want                        []string
	}{
		{"lora:16:qkv", "Llama3-8B", "", "dp=8,zero=3", []string{`LoraConfig(r=16, target_modules=["q_proj", "k_proj", "v_proj"]))`}},
		{"lora:8", "Llama3-8B", "PyTorch adapters=dropout", "dp=8", []string{`LoraConfig(r=8, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"], lora_dropout=0.1))`}},
		{"dora:8:mlp", "Llama3-8B", "", "dp=8,zero=3", []string{`LoraConfig(r=8, target_modules=["gate_proj", "up_proj", "down_proj"], use_dora=True))`}},
		{"qlora:64:o", "Llama3-8B", "", "dp=8,zero=3", []string{"load_in_4bit=True", "bnb_4bit_quant_storage=torch.bfloat16", "quantization_config=base", `LoraConfig(r=64, target_modules=["o_proj"]))`}},
		{"lora:8:mlp", "GPT2-XL", "", "dp=8", []string{`target_modules=["up_proj", "down_proj"]`}},
		{"qlora:64:o", "Llama3-8B", "", "dp=8", []string{"bnb_4bit_compute_dtype=torch.bfloat16)"}},
		{"lora:16:qkv", "DeepSeek-V3", "", "dp=8,zero=3", []string{`["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj"]`}},
		{"lora:16:qkv+mlp", "latent", "", "dp=8,zero=3", []string{`["q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "gate_proj", "up_proj", "down_proj"]`}},
	} {
		c := config(t, tc.model, "H100", "8", tc.plan+",precision=bf16")
		a, err := spec.ParseAdapter(tc.adapter)
		if err != nil {
			t.Fatal(err)
		}
		c.Framework, c.Model = tc.stack, c.Model.Adapted(a)
		for _, f := range Frameworks() {
			s, err := f.Emit(c)
			if f.Name == "megatron" || f.Name == "torchtitan" {
				if want := "adapter=" + a.String() + ": adapters are not written"; !errors.Is(err, ErrCannotExpress) || !strings.Contains(err.Error(), want) || s.Text != "" {
					t.Errorf("%s: %v, want %q", f.Name, err, want)
				}
				continue
			}
			notes := strings.Join(s.Notes, "\n")
			for _, want := range append(tc.want, "adapter="+a.String()+": ") {
				if err != nil || !strings.Contains(notes, want) {
					t.Errorf("%s %s: %v, no %q in %q", f.Name, tc.adapter, err, want, s.Notes)
				}
			}
			if inFile := strings.Contains(s.Text, "peft.LoraConfig("); inFile != (f.Name == "torchrun") {
				t.Errorf("%s: code of adapters in the file: %v\n%s", f.Name, inFile, s.Text)
			}
		}
	}
}
