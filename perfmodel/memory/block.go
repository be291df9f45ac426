package memory

import "github.com/pacer-ml/pacer/perfmodel/spec"

// block is what the layers of one kind consist of. Most models have one block in all layers without experts, and one in
// all with experts; hybrids have several.
type block struct {
	share          float64 // of the layers with experts, or of those without
	attention, ssm bool    // the mixer: attention or state-space
	mlp, routed    bool    // a dense MLP or routed experts
}

// blocksOf returns the blocks of the layers without and with experts. Mixers spread evenly over both, unless each layer
// is a mixer, an MLP or experts alone.
func blocksOf(m *spec.Model) (dense, moe []block) {
	attention, ssm, routed := float64(m.AttentionLayers()), float64(m.SSMLayers), float64(m.MoELayers())
	layers := float64(m.Layers)
	add := func(to *[]block, b block) {
		if b.share > 0 {
			*to = append(*to, b)
		}
	}
	if m.MLPLayers > 0 {
		rest := max(layers-routed, 1)
		add(&dense, block{share: attention / rest, attention: true})
		add(&dense, block{share: ssm / rest, ssm: true})
		add(&dense, block{share: (float64(m.MLPLayers) - routed) / rest, mlp: true})
		return dense, []block{{share: 1, routed: true}}
	}
	add(&dense, block{share: attention / layers, attention: true, mlp: m.FFN > 0})
	add(&dense, block{share: ssm / layers, ssm: true, mlp: m.FFN > 0})
	add(&moe, block{share: attention / layers, attention: true, routed: true})
	add(&moe, block{share: ssm / layers, ssm: true, routed: true})
	return dense, moe
}

// or returns a block with everything that b or c has.
func (b block) or(c block) block {
	return block{attention: b.attention || c.attention, ssm: b.ssm || c.ssm, mlp: b.mlp || c.mlp, routed: b.routed || c.routed}
}
