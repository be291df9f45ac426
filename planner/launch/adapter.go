package launch

import (
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// adapterNote says what the program does to the model where the file does not describe it.
func adapterNote(c *spec.Config, p *stack.Parts) string {
	return fmt.Sprintf("adapter=%s: the program freezes the model and adds adapters, to matrices with their names in Llama here: %s",
		c.Model.Adapter, strings.Join(adapterCode(c, p), "; "))
}

// adapterCode returns the Python code that freezes a model and adds the adapters of c, by the library peft. Quantized
// weights are stored in the format that FSDP shards.
func adapterCode(c *spec.Config, p *stack.Parts) (out []string) {
	a := &c.Model.Adapter
	if a.Kind == spec.QLoRA {
		compute := dtype(c.Plan.Precision)
		storage := ""
		if c.Plan.ZeRO > 1 {
			storage = ", bnb_4bit_quant_storage=" + compute
		}
		out = append(out, fmt.Sprintf(`base = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=%s%s)`, compute, storage),
			"model = transformers.AutoModelForCausalLM.from_pretrained(name, quantization_config=base)")
	}
	options := ""
	if a.Kind == spec.DoRA {
		options += ", use_dora=True"
	}
	if p.Adapters == stack.Dropout {
		options += ", lora_dropout=0.1"
	}
	return append(out, fmt.Sprintf("model = peft.get_peft_model(model, peft.LoraConfig(r=%d, target_modules=[%s]%s))", a.Rank, strings.Join(adapterModules(&c.Model), ", "), options))
}

// adapterModules returns the matrices that m adapts, by the names that transformers has for Llama and DeepSeek.
func adapterModules(m *spec.Model) (out []string) {
	add := func(names string) {
		for _, name := range strings.Fields(names) {
			out = append(out, `"`+name+`"`)
		}
	}
	_, latent := m.Latent()
	switch {
	case !m.Adapter.Has(spec.AdaptQKV):
	case latent && m.QRank > 0:
		add("q_a_proj q_b_proj kv_a_proj_with_mqa kv_b_proj")
	case latent:
		add("q_proj kv_a_proj_with_mqa kv_b_proj")
	default:
		add("q_proj k_proj v_proj")
	}
	if m.Adapter.Has(spec.AdaptO) {
		add("o_proj")
	}
	switch {
	case !m.Adapter.Has(spec.AdaptMLP):
	case m.GatedMLP:
		add("gate_proj up_proj down_proj")
	default:
		add("up_proj down_proj")
	}
	return out
}
