package spec

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// Counts yields the whole numbers of m by the names of their JSON fields.
func (m Model) Counts() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, f := range [...]struct {
			name string
			v    int
		}{{"layers", m.Layers}, {"hidden", m.Hidden}, {"ffn", m.FFN}, {"heads", m.Heads}, {"kv_heads", m.KVHeads},
			{"head_dim", m.HeadDim}, {"vocab", m.Vocab}, {"seq_len", m.SeqLen}, {"q_rank", m.QRank}, {"kv_rank", m.KVRank},
			{"window", m.Window}, {"window_layers", m.WindowLayers}, {"ssm_layers", m.SSMLayers}, {"ssm_heads", m.SSMHeads},
			{"ssm_head_dim", m.SSMHeadDim}, {"ssm_state", m.SSMState}, {"ssm_groups", m.SSMGroups}, {"mlp_layers", m.MLPLayers},
			{"experts", m.Experts}, {"experts_per_token", m.ExpertsPerToken}, {"expert_ffn", m.ExpertFFN},
			{"shared_experts", m.SharedExperts}, {"dense_layers", m.DenseLayers}, {"moe_every", m.MoEEvery},
			{"expert_hidden", m.ExpertHidden}, {"mtp_layers", m.MTPLayers}, {"node_limit", m.NodeLimit}, {"packed", m.Packed},
			{"tower.layers", m.Tower.Layers}, {"tower.hidden", m.Tower.Hidden}, {"tower.ffn", m.Tower.FFN}, {"tower.heads", m.Tower.Heads},
			{"tower.tokens", m.Tower.Tokens}, {"tower.projector", m.Tower.Projector}} {
			if !yield(f.name, f.v) {
				return
			}
		}
	}
}

// Validate reports why no plan can be made for m.
func (m Model) Validate() error {
	if m.Name == "" {
		return errors.New("spec: model has no name")
	}
	for name, v := range m.Counts() {
		if v < 0 {
			return fmt.Errorf("spec: model %s: %s=%d is negative", m.Name, name, v)
		}
	}
	for _, f := range []float64{m.ParamCount, m.ActiveParamCount, m.FLOPsPerSample} {
		if !(f >= 0) || math.IsInf(f, 0) {
			return fmt.Errorf("spec: model %s: a count of %g is not finite and >= 0", m.Name, f)
		}
	}
	if err := m.CheckAdapter(); err != nil {
		return fmt.Errorf("spec: model %s: adapter %s %w", m.Name, m.Adapter, err)
	}
	if m.Packed > 0 && !m.HasShape() {
		return fmt.Errorf("spec: model %s: packed=%d needs layers and widths", m.Name, m.Packed)
	}
	if m.SSMLayers == 0 && m.HasShape() && (m.Heads == 0 || m.FFN == 0 && m.ExpertFFN == 0) {
		return fmt.Errorf("spec: model %s: heads=%d and ffn=%d must be positive", m.Name, m.Heads, m.FFN)
	}
	if err := m.checkHybrid(); err != nil {
		return err
	}
	if !m.HasShape() && m.ParamCount <= 0 {
		return fmt.Errorf("spec: model %s has neither layers and hidden size nor a parameter count", m.Name)
	}
	if m.Experts > 0 && (m.ExpertsPerToken <= 0 || m.ExpertsPerToken > m.Experts) {
		return fmt.Errorf("spec: model %s: experts_per_token=%d is not in 1..%d", m.Name, m.ExpertsPerToken, m.Experts)
	}
	if m.NodeLimit > 0 && m.Experts == 0 {
		return fmt.Errorf("spec: model %s: node_limit=%d needs routed experts, and it has none: leave node_limit out", m.Name, m.NodeLimit)
	}
	if err := m.CheckImbalance(); err != nil {
		return err
	}
	if dense := m.InterleavedDense(); m.Experts > 0 && m.MoEEvery > 1 && m.DenseLayers != dense {
		return fmt.Errorf("spec: model %s: moe_every=%d of %d layers needs dense_layers=%d, not %d", m.Name, m.MoEEvery, m.Layers, dense, m.DenseLayers)
	}
	return nil
}

// checkHybrid reports why the layers of a hybrid, or its windows, cannot be counted.
func (m Model) checkHybrid() error {
	switch {
	case m.SSMLayers+m.MLPLayers > m.Layers:
		return fmt.Errorf("spec: model %s: ssm_layers=%d and mlp_layers=%d exceed layers=%d", m.Name, m.SSMLayers, m.MLPLayers, m.Layers)
	case m.SSMLayers > 0 && (m.SSMHeads == 0 || m.SSMHeadDim == 0 || m.SSMState == 0):
		return fmt.Errorf("spec: model %s: ssm_heads=%d, ssm_head_dim=%d and ssm_state=%d must be positive with ssm_layers",
			m.Name, m.SSMHeads, m.SSMHeadDim, m.SSMState)
	case m.SSMLayers > 0 && m.AttentionLayers() > 0 && m.Heads == 0:
		return fmt.Errorf("spec: model %s: heads=0, but %d layers have attention", m.Name, m.AttentionLayers())
	case m.WindowLayers > m.AttentionLayers():
		return fmt.Errorf("spec: model %s: window_layers=%d exceeds %d layers with attention", m.Name, m.WindowLayers, m.AttentionLayers())
	case m.WindowLayers > 0 && m.Window == 0:
		return fmt.Errorf("spec: model %s: window_layers=%d without a window", m.Name, m.WindowLayers)
	}
	return nil
}
