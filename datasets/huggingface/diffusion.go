package huggingface

import "github.com/pacer-ml/pacer/perfmodel/spec"

// diffusion are diffusion transformers of the diffusers library, by their _class_name. From diffusers 0.35.
func diffusion() map[string]arch {
	image, video := map[string]any{"out_channels": 16, "in_channels": 16, "patch_size": 2}, map[string]any{"in_channels": 16, "out_channels": 16}
	out := map[string]arch{
		"FluxTransformer2DModel":           {adjust: flux},
		"SD3Transformer2DModel":            {defaults: image, adjust: sd3},
		"DiTTransformer2DModel":            {adjust: dit},
		"PixArtTransformer2DModel":         {adjust: pixArt},
		"Transformer2DModel":               {adjust: patched},
		"WanTransformer3DModel":            {defaults: video, adjust: wan},
		"CogVideoXTransformer3DModel":      {defaults: video, adjust: cogVideoX},
		"HunyuanVideoTransformer3DModel":   {defaults: video, adjust: hunyuanVideo},
		"QwenImageTransformer2DModel":      {adjust: qwenImage},
		"LTXVideoTransformer3DModel":       {adjust: ltxVideo},
		"HunyuanVideo15Transformer3DModel": {adjust: hunyuanVideo15},
		"Lumina2Transformer2DModel":        {adjust: lumina2},
		"ZImageTransformer2DModel":         {adjust: zImage},
		"Flux2Transformer2DModel":          {adjust: flux2},
	}
	for name, a := range out {
		a.kind = spec.Vision
		out[name] = a
	}
	return out
}

// Sizes of samples that configs do not state: latent patches of an image of 1024 x 1024 pixels, and text tokens.
const (
	patchesOf1024 = 4096
	textTokens    = 512
)

// denoiser counts the parameters of a diffusion transformer, and its multiplications for one sample. A matrix that only
// some of the tokens pass counts for those; modulation (adaLN) is computed once a sample.
type denoiser struct {
	c                 *config
	h, f, d, layers   float64 // hidden size, width of the MLP, width of a head, blocks
	image, text       float64 // tokens
	params, multiples float64
}

// denoiser sets the shape of m to joint self-attention over image and text in all layers.
func (c *config) denoiser(m *spec.Model, layers, image, text int) *denoiser {
	if d := c.count(maxWidth, "attention_head_dim"); d > 0 {
		m.HeadDim = d
		m.Hidden = min(m.Heads*d, maxWidth)
	}
	m.Layers, m.FFN, m.Vocab, m.KVHeads, m.SeqLen = layers, min(4*m.Hidden, maxWidth), 0, 0, image+text
	if m.SeqLen == 0 {
		c.fail("the config gives no number of tokens")
	}
	return &denoiser{c: c, h: float64(m.Hidden), f: float64(m.FFN), d: float64(m.HeadDim), layers: float64(layers), image: float64(image), text: float64(text)}
}

// linear adds n matrices with a bias that a number of tokens pass.
func (t *denoiser) linear(n, in, out, tokens float64) {
	t.params += n * (in + 1) * out
	t.multiples += n * in * out * tokens
}

// weights adds n matrices without a bias that a number of tokens pass.
func (t *denoiser) weights(n, in, out, tokens float64) {
	t.params += n * in * out
	t.multiples += n * in * out * tokens
}

// embed adds the MLP of two matrices that makes a vector of width to of a timestep or pooled text, once a sample.
func (t *denoiser) embed(in, to float64) {
	t.linear(1, in, to, 1)
	t.linear(1, to, to, 1)
}

// conditions adds the MLPs of timestep and pooled text, and that of the guidance scale if the model has it as input.
func (t *denoiser) conditions(guidance bool) {
	t.embed(256, t.h)
	t.embed(t.c.width("pooled_projection_dim"), t.h)
	if guidance {
		t.embed(256, t.h)
	}
}

// scores adds n attentions with queries and keys that are not those of the joint self-attention.
func (t *denoiser) scores(n, queries, keys float64) { t.multiples += 2 * n * t.h * queries * keys }

// block adds n attentions and MLPs that a number of tokens pass.
func (t *denoiser) block(n, tokens float64) {
	t.linear(4*n, t.h, t.h, tokens)
	t.mlp(n, tokens)
}

func (t *denoiser) mlp(n, tokens float64) {
	t.linear(n, t.h, t.f, tokens)
	t.linear(n, t.f, t.h, tokens)
}

// joint adds n blocks with weights of their own for image and text, and a modulation of each (Esser et al. 2024, arXiv
// 2403.03206, section 4).
func (t *denoiser) joint(n float64) {
	t.block(n, t.image)
	t.block(n, t.text)
	t.linear(2*n, t.h, 6*t.h, 1)
}

// single adds n blocks with common weights for image and text, with attention and MLP side by side (Black Forest Labs,
// FLUX.1, 2024).
func (t *denoiser) single(n float64) {
	all := t.image + t.text
	t.linear(3*n, t.h, t.h, all)
	t.linear(n, t.h, t.f, all)
	t.linear(n, t.h+t.f, t.h, all)
	t.linear(n, t.h, 3*t.h, 1)
}

// fluxBlocks adds joint blocks and single ones, with norms of queries and keys.
func (t *denoiser) fluxBlocks(double, single int) {
	t.joint(float64(double))
	t.single(float64(single))
	t.params += (4*float64(double) + 2*float64(single)) * t.d
}

// wide sets the width of the MLP.
func (t *denoiser) wide(m *spec.Model, width float64) {
	m.FFN = int(min(width, maxWidth))
	t.f = float64(m.FFN)
}

// ends adds the embedding of in values of a patch, and the modulation and matrix to out values.
func (t *denoiser) ends(in, out float64) {
	t.linear(1, in, t.h, t.image)
	t.linear(1, t.h, 2*t.h, 1)
	t.linear(1, t.h, out, t.image)
}

// done sets the counts of m.
func (t *denoiser) done(m *spec.Model) {
	if t.c.err == nil {
		m.ParamCount, m.ActiveParamCount = t.params, t.multiples/float64(m.SeqLen)
	}
}

// doneAt1024 is done for models of images and text of the sizes above.
func (t *denoiser) doneAt1024(m *spec.Model) {
	t.done(m)
	t.c.warn("a sample is an image of 1024 x 1024 pixels: %d latent patches and %d text tokens", patchesOf1024, textTokens)
}

// width reads a width as a number.
func (c *config) width(keys ...string) float64 { return float64(c.count(maxWidth, keys...)) }

// squarePatches returns the patches of the square sample that sample_size states.
func (c *config) squarePatches() int {
	size, patch := c.count(maxWidth, "sample_size"), c.count(maxWidth, "patch_size")
	if size == 0 || patch == 0 || patch > size || size/patch > 1<<12 {
		c.fail("sample_size=%d and patch_size=%d give no number of patches", size, patch)
		return 0
	}
	c.warn("a sample is an image of %d latent patches", (size/patch)*(size/patch))
	return (size / patch) * (size / patch)
}

// flux is the transformer of FLUX.1: blocks that have separate weights for image and text, and blocks that share them.
func flux(c *config, m *spec.Model) {
	double, single := c.count(maxLayers, "num_layers"), c.count(maxLayers, "num_single_layers")
	t := c.denoiser(m, double+single, patchesOf1024, textTokens)
	t.fluxBlocks(double, single)
	in := c.width("in_channels")
	t.ends(in, in)
	t.linear(1, c.width("joint_attention_dim"), t.h, t.text)
	t.conditions(c.flag("guidance_embeds", true))
	t.doneAt1024(m)
}

// sd3 is the transformer of Stable Diffusion 3, with a second attention over the image in some blocks of 3.5 Medium.
// Its last block has no use for the text after attention. Its positions are constants.
func sd3(c *config, m *spec.Model) {
	const text = 77 + 256 // of CLIP and T5
	layers, dual := m.Layers, 0
	if c.has("dual_attention_layers") {
		dual, _ = c.numbered("dual_attention_layers", 0, layers)
	}
	t := c.denoiser(m, layers, c.squarePatches(), text)
	t.joint(t.layers - 1)
	t.block(1, t.image)
	t.linear(3, t.h, t.h, t.text)
	t.linear(1, t.h, 8*t.h, 1)
	n := float64(dual)
	t.linear(4*n, t.h, t.h, t.image)
	t.linear(n, t.h, 3*t.h, 1)
	t.scores(n, t.image, t.image)
	if c.word("qk_norm") != "" {
		t.params += (4*t.layers + 2*n) * t.d
	}
	patch := c.width("patch_size")
	t.ends(patch*patch*c.width("in_channels"), patch*patch*c.width("out_channels"))
	t.linear(1, c.width("joint_attention_dim"), t.h, t.text)
	t.conditions(false)
	t.done(m)
}

// patched is the class that older files of DiT and PixArt name.
func patched(c *config, m *spec.Model) {
	switch norm := c.word("norm_type"); norm {
	case "ada_norm_zero":
		dit(c, m)
	case "ada_norm_single":
		pixArt(c, m)
	default:
		c.fail("norm_type=%q is not of a diffusion transformer that is known, want ada_norm_zero (DiT) or ada_norm_single (PixArt)", norm)
	}
}

// dit has a modulation in each block (Peebles and Xie 2023, arXiv 2212.09748). Diffusers embeds timestep and class in
// each block anew, so that it has more parameters than the paper: 750 million instead of 675 of DiT-XL/2.
func dit(c *config, m *spec.Model) {
	t := c.denoiser(m, m.Layers, c.squarePatches(), 0)
	t.block(t.layers, t.image)
	t.linear(t.layers, t.h, 6*t.h, 1)
	t.linear(t.layers, 256, t.h, 1)
	t.linear(t.layers, t.h, t.h, 1)
	t.params += t.layers * (float64(c.count(maxVocab, "num_embeds_ada_norm")) + 1) * t.h
	t.ends(c.patchesIn())
	t.done(m)
}

// patchesIn returns the values of a patch before and after a diffusion transformer of images.
func (c *config) patchesIn() (in, out float64) {
	patch := c.width("patch_size")
	return patch * patch * c.width("in_channels"), patch * patch * c.width("out_channels", "in_channels")
}

// pixArt has one modulation for all blocks, which have a vector each, and cross attention to text (Chen et al. 2023,
// PixArt-α, arXiv 2310.00426). Its form for 1024 pixels embeds resolution and aspect ratio.
func pixArt(c *config, m *spec.Model) {
	t := c.denoiser(m, m.Layers, c.squarePatches(), 0)
	text := 120.
	if !c.flag("use_additional_conditions", true) { // PixArt-Σ
		text = 300
	}
	if cross := c.width("cross_attention_dim"); cross != t.h {
		c.fail("cross_attention_dim=%g is not the hidden size %g", cross, t.h)
	}
	t.modulated(text)
	if c.flag("use_additional_conditions", c.count(maxWidth, "sample_size") == 128) {
		t.embed(256, t.h/3)
		t.embed(256, t.h/3)
	}
	in, out := c.patchesIn()
	t.linear(1, in, t.h, t.image)
	t.linear(1, t.h, out, t.image)
	t.done(m)
	c.warn("a sample has %g text tokens", text)
}

// modulated adds blocks with self-attention, cross attention to text, an MLP and a vector each, and their common
// modulation.
func (t *denoiser) modulated(text float64) {
	t.block(t.layers, t.image)
	t.crossAttention(text)
	t.params += t.layers*6*t.h + 2*t.h
	t.embed(256, t.h)
	t.linear(1, t.h, 6*t.h, 1)
	t.linear(1, t.c.width("caption_channels"), t.h, text)
	t.linear(1, t.h, t.h, text)
}

// crossAttention adds an attention of the image to text in all blocks.
func (t *denoiser) crossAttention(text float64) {
	t.linear(2*t.layers, t.h, t.h, t.image)
	t.linear(2*t.layers, t.h, t.h, text)
	t.scores(t.layers, t.image, text)
}

// qwenImage has separate weights for image and text in all blocks (Qwen Team 2025, arXiv 2508.02324).
func qwenImage(c *config, m *spec.Model) {
	t := c.denoiser(m, m.Layers, patchesOf1024, textTokens)
	t.joint(t.layers)
	t.params += 4 * t.layers * t.d
	patch, text := c.width("patch_size"), c.width("joint_attention_dim")
	t.ends(c.width("in_channels"), patch*patch*c.width("out_channels"))
	t.linear(1, text, t.h, t.text)
	t.params += text
	t.embed(256, t.h)
	t.doneAt1024(m)
}

// lumina2 has common weights for image and text, gated MLPs, and blocks over each of both before (Qin et al. 2025,
// arXiv 2503.21758).
func lumina2(c *config, m *spec.Model) {
	kv := m.KVHeads
	t := c.denoiser(m, m.Layers, c.squarePatches(), 256)
	of := max(c.count(maxWidth, "multiple_of"), 1)
	t.wide(m, float64((int(c.ratio("ffn_dim_multiplier", 1)*t.f)+of-1)/of*of))
	t.refined(m, kv, c.width("num_refiner_layers"), min(t.h, 1024), min(t.h, 1024))
	in, out := c.patchesIn()
	t.linear(1, in, t.h, t.image)
	t.linear(1, t.h, out, t.image)
	t.done(m)
	c.warn("a sample has %g text tokens", t.text)
}

// zImage has the blocks of Lumina 2 with wider MLPs and narrower modulations (Z-Image Team 2025, arXiv 2511.22699).
func zImage(c *config, m *spec.Model) {
	kv := c.count(maxWidth, "n_kv_heads")
	t := c.denoiser(m, m.Layers, patchesOf1024, textTokens)
	t.wide(m, float64(8*m.Hidden/3))
	t.refined(m, kv, c.width("n_refiner_layers"), min(t.h, 256), 1024)
	patch := max(c.width("all_patch_size"), 1)
	values := patch * patch * max(c.width("all_f_patch_size"), 1) * c.width("in_channels")
	t.linear(1, values, t.h, t.image)
	t.linear(1, t.h, values, t.image)
	t.params += 2 * t.h // padding of image and text
	t.doneAt1024(m)
}

// refined adds all blocks of Lumina 2: those over image and text, and a number over each of both before. Modulations
// are made from a vector of width narrow, which an MLP of width inner makes of the timestep; text alone has none.
func (t *denoiser) refined(m *spec.Model, kv int, refiners, narrow, inner float64) {
	if m.Heads == 0 || kv == 0 || m.Hidden%m.Heads != 0 {
		t.c.fail("%d heads and %d key/value heads do not divide a hidden size of %d", m.Heads, kv, m.Hidden)
		return
	}
	m.KVHeads, m.GatedMLP = kv, true
	d := float64(m.Head())
	for _, part := range []struct{ n, tokens float64 }{{t.layers, t.image + t.text}, {refiners, t.image}, {refiners, t.text}} {
		t.weights(part.n, t.h, 2*t.h+2*float64(kv)*d+3*t.f, part.tokens)
		t.params += part.n * (4*t.h + 2*d) // norms
	}
	t.scores(refiners, t.image, t.image)
	t.scores(refiners, t.text, t.text)
	t.linear(t.layers+refiners, narrow, 4*t.h, 1)
	t.linear(1, 256, inner, 1)
	t.linear(1, inner, narrow, 1)
	caption := t.c.width("cap_feat_dim")
	t.params += caption
	t.linear(1, caption, t.h, t.text)
	t.linear(1, narrow, t.h, 1)
}

// flux2 is the transformer of FLUX.2: the blocks of FLUX.1 with gated MLPs, no biases, and one modulation for all
// blocks of a kind (Black Forest Labs, FLUX.2, 2025).
func flux2(c *config, m *spec.Model) {
	double, single := c.count(maxLayers, "num_layers"), c.count(maxLayers, "num_single_layers")
	t := c.denoiser(m, double+single, patchesOf1024, textTokens)
	m.GatedMLP = true
	t.wide(m, c.ratio("mlp_ratio", 3)*t.h)
	block := 4*t.h + 3*t.f
	t.weights(float64(double), t.h, block, t.image)
	t.weights(float64(double), t.h, block, t.text)
	t.weights(float64(single), t.h, block, t.image+t.text)
	t.params += (4*float64(double) + 2*float64(single)) * t.d // norms of queries and keys
	in, step := c.width("in_channels"), c.width("timestep_guidance_channels")
	t.weights(1, t.h, (6+6+3+2)*t.h, 1) // modulations of image, text and single blocks, and of the output
	t.weights(2, in, t.h, t.image)
	t.weights(1, c.width("joint_attention_dim"), t.h, t.text)
	embeds := 1.
	if c.flag("guidance_embeds", true) {
		embeds = 2
	}
	t.weights(embeds, step+t.h, t.h, 1)
	t.doneAt1024(m)
}
