package stack

import (
	"strings"
)

// Modules that selective recomputation repeats, by their names in Megatron Core (--recompute-modules,
// megatron/core/transformer/transformer_config.py).
const (
	moduleMLP    = "mlp"
	moduleMoE    = "moe"
	moduleMoEAct = "moe_act"
	moduleNorms  = "layernorm"
	moduleUpProj = "mla_up_proj"
	moduleShared = "shared_experts"
)

// Modules are the parts of a layer that selective recomputation repeats.
type Modules struct {
	Core   bool // the attention core
	MLP    bool // a dense MLP
	MoE    bool // routed and shared experts, with router and dispatch
	MoEAct bool // the activation function of routed experts
	Norms  bool // norms before attention and before MLP or experts, unless they are fused with the next multiplication
	UpProj bool // the projections of latent attention from the compressed to all heads
	Shared bool // shared experts
}

// Modules returns what selective recomputation repeats, nothing if it repeats every other operator or block.
func (p *Parts) Modules() Modules {
	var m Modules
	for name := range strings.SplitSeq(p.Recompute, "+") {
		switch name {
		case Core:
			m.Core = true
		case moduleMLP:
			m.MLP = true
		case moduleMoE:
			m.MoE = true
		case moduleMoEAct:
			m.MoEAct = true
		case moduleNorms:
			m.Norms = true
		case moduleUpProj:
			m.UpProj = true
		case moduleShared:
			m.Shared = true
		}
	}
	if m.MoE { // which repeats these too
		m.MoEAct, m.Shared = false, false
	}
	return m
}

// ModuleNames returns the names of the modules that selective recomputation repeats in Megatron Core's arguments. For
// stacks that repeat other things it is the attention core.
func (p *Parts) ModuleNames() (out []string) {
	for _, name := range strings.Split(p.Recompute, "+") {
		switch name {
		case Core:
			out = append(out, "core_attn")
		case moduleMLP, moduleMoE, moduleMoEAct, moduleNorms, moduleUpProj, moduleShared:
			out = append(out, name)
		}
	}
	if out == nil {
		out = []string{"core_attn"}
	}
	return out
}

// OnCore reports whether s runs on Megatron Core and Transformer Engine.
func (s *Stack) OnCore() bool {
	switch s.Name {
	case "Megatron Core", "NeMo Megatron", "NeMo", "Megatron-Bridge":
		return true
	}
	return false
}
