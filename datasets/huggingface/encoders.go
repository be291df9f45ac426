package huggingface

import "github.com/pacer-ml/pacer/perfmodel/spec"

// encoders are further encoders of text and proteins, decoders of their time, and networks for translation. From
// transformers 4.57.
func encoders() map[string]arch {
	return map[string]arch{
		"albert": {kind: spec.Encoder, tied: true, defaults: map[string]any{"vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_hidden_layers": 12,
			"num_hidden_groups": 1, "inner_group_num": 1, "num_attention_heads": 64, "intermediate_size": 16384, "max_position_embeddings": 512, "type_vocab_size": 2}, adjust: albert},
		"deberta-v2": {kind: spec.Encoder, tied: true, defaults: map[string]any{"position_buckets": 256}, adjust: deberta},
		"mpnet": {kind: spec.Encoder, tied: true, defaults: map[string]any{"vocab_size": 30527, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
			"intermediate_size": 3072, "max_position_embeddings": 512, "relative_attention_num_buckets": 32}, adjust: mpnet},
		"nomic_bert": {kind: spec.Encoder, gated: true, tied: true, adjust: nomicBERT},
		"longformer": {kind: spec.Encoder, tied: true, adjust: longformer},
		"eurobert":   {kind: spec.Encoder, gated: true},
		"esm":        {kind: spec.Encoder, tied: true, defaults: map[string]any{"position_embedding_type": `"absolute"`}, adjust: esm},

		"biogpt":     {kind: spec.Decoder, tied: true, adjust: opt},
		"openai-gpt": {kind: spec.Decoder, tied: true, adjust: firstGPT},
		"xglm":       {kind: spec.Decoder, tied: true, adjust: xglm},

		"mbart":   {kind: spec.EncoderDecoder, tied: true, adjust: mbart},
		"m2m_100": {kind: spec.EncoderDecoder, tied: true, adjust: m2m},
		"pegasus": {kind: spec.EncoderDecoder, tied: true, adjust: m2m},
	}
}

// albert shares the weights of one layer among all, or among those of each group, and has embeddings of another width (Lan
// et al. 2020, arXiv 1909.11942).
func albert(c *config, m *spec.Model) {
	groups, inner, w := c.count(maxLayers, "num_hidden_groups"), c.count(maxLayers, "inner_group_num"), float64(c.count(maxWidth, "embedding_size"))
	if groups < 1 || groups > m.Layers || inner < 1 || inner*m.Layers > maxLayers {
		c.fail("num_hidden_groups=%d and inner_group_num=%d do not share out %d layers", groups, inner, m.Layers)
		return
	}
	m.Layers *= inner
	h, f := float64(m.Hidden), float64(m.FFN)
	layer := m.AttentionParams() + m.DenseMLPParams() + 9*h + f
	positions := float64(c.count(maxTokens, "max_position_embeddings") + c.count(maxTokens, "type_vocab_size"))
	embeddings := (float64(m.Vocab)+positions+2)*w + w*h + h
	extra(m, float64(m.Layers)*(9*h+f)+h*h+h)
	reused(m, embeddings+float64(groups*inner)*layer+h*h+h)
	c.warn("%d layers share the weights of %d: they are kept once and computed %d times", m.Layers, groups*inner, m.Layers)
}

// deberta shares the weights of its relative positions among layers, and has no absolute ones (He et al. 2021, arXiv
// 2111.09543). Its largest forms have a convolution beside the first layer.
func deberta(c *config, m *spec.Model) {
	h, positions := float64(m.Hidden), 2*float64(c.count(maxTokens, "position_buckets"))
	vectors(m, (positions+2)*h)
	if kernel := float64(c.count(maxWidth, "conv_kernel_size")); kernel > 0 {
		extra(m, kernel*h*h+3*h)
	}
}

// mpnet is bert without types of tokens, and with relative positions that all layers share.
func mpnet(c *config, m *spec.Model) {
	bert(c, m)
	extra(m, float64(c.count(maxTokens, "relative_attention_num_buckets")*m.Heads)-2*float64(m.Hidden))
}

// nomicBERT has rotary positions, two types of tokens, and no biases.
func nomicBERT(c *config, m *spec.Model) {
	if act := c.word("activation_function"); act != "swiglu" {
		c.fail("activation_function=%q is not known, want swiglu", act)
	}
	if m.Experts > 0 {
		c.fail("nomic_bert with %d experts is not known", m.Experts)
	}
	h := float64(m.Hidden)
	extra(m, 4*float64(m.Layers)*h+4*h)
}

// longformer is roberta with a window, and with other projections of the tokens that see all (Beltagy et al. 2020, arXiv
// 2004.05150), which are few.
func longformer(c *config, m *spec.Model) {
	bert(c, m)
	h := float64(m.Hidden)
	m.ActiveParamCount = m.ParamCount - h
	m.ParamCount += float64(m.Layers)*(3*h*h+3*h) - h
	m.Window, m.WindowLayers = c.count(maxTokens, "attention_window"), m.Layers
	if m.Window == 0 {
		c.fail("attention_window must be there, with one number for all layers")
	}
	c.warn("tokens that see the whole sequence are left out: they are few")
}

// esm has a head for masked amino acids and one for contacts (Lin et al. 2023, ESM-2).
func esm(c *config, m *spec.Model) {
	h := float64(m.Hidden)
	head := h*h + 3*h + float64(m.Vocab) + float64(m.Layers*m.Heads) + 1
	if c.word("position_embedding_type") == "absolute" {
		head += float64(c.count(maxTokens, "max_position_embeddings")) * h
	}
	vectors(m, head)
}

// firstGPT is gpt2 without the last norm.
func firstGPT(c *config, m *spec.Model) {
	learnedPositions(c, m)
	extra(m, -2*float64(m.Hidden))
}

// xglm has no weights for positions.
func xglm(c *config, m *spec.Model) {
	m.Heads = c.count(maxWidth, "attention_heads")
	vectors(m, 0)
}
