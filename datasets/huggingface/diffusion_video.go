package huggingface

import (
	"encoding/json"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// wan has one modulation for all blocks, which have a vector each, and cross attention to text, and to an image in its
// forms for image to video (Wan Team 2025, arXiv 2503.20314).
func wan(c *config, m *spec.Model) {
	tokens, size := 21*30*52, "832 x 480 pixels and 81 frames"
	if c.count(maxWidth, "in_channels") == 48 { // of an autoencoder with 16 x 16 pixels to a latent
		tokens, size = 31*22*40, "1280 x 704 pixels and 121 frames"
	}
	patch := c.patchVolume()
	t := c.denoiser(m, m.Layers, tokens, 0)
	t.wide(m, c.width("ffn_dim"))
	t.block(t.layers, t.image)
	t.crossAttention(textTokens)
	t.params += t.layers*(4*t.h+6*t.h) + 2*t.h // norms of queries and keys, modulation
	if c.flag("cross_attn_norm", true) {
		t.params += t.layers * 2 * t.h
	}
	if image := c.width("image_dim"); image > 0 {
		const views = 257 // tokens of CLIP
		t.embedImage(image, views)
		if added := c.width("added_kv_proj_dim"); added > 0 {
			t.linear(2*t.layers, added, t.h, views)
			t.params += t.layers * t.h
			t.scores(t.layers, t.image, views)
		}
	}
	t.embed(max(c.width("freq_dim"), 1), t.h)
	t.linear(1, t.h, 6*t.h, 1)
	t.linear(1, c.width("text_dim"), t.h, textTokens)
	t.linear(1, t.h, t.h, textTokens)
	t.linear(1, patch*c.width("in_channels"), t.h, t.image)
	t.linear(1, t.h, patch*c.width("out_channels"), t.image)
	t.done(m)
	c.warn("a sample is a video of %s: %d latent patches, and %d text tokens", size, tokens, textTokens)
}

// embedImage adds the MLP and norms that bring the tokens of an image encoder to the hidden size.
func (t *denoiser) embedImage(in, tokens float64) {
	t.linear(1, in, in, tokens)
	t.linear(1, in, t.h, tokens)
	t.params += 2*in + 2*t.h
}

// patchVolume returns the values of one channel in a patch that a list of three widths states.
func (c *config) patchVolume() float64 {
	sides := []float64{1, 2, 2}
	if raw := c.value("patch_size"); raw != nil && (json.Unmarshal(raw, &sides) != nil || len(sides) != 3) {
		c.fail("patch_size=%s is not a list of three widths", truncate(raw))
		return 1
	}
	volume := 1.
	for _, side := range sides {
		volume *= side
	}
	if !(volume >= 1 && volume <= maxWidth) {
		c.fail("patch_size=%s gives no patch", truncate(c.value("patch_size")))
	}
	return volume
}

// cogVideoX has common weights for video and text, and modulations from a narrow vector (Yang et al. 2024, arXiv
// 2408.06072).
func cogVideoX(c *config, m *spec.Model) {
	count := func(key string, def int) int {
		if !c.has(key) {
			c.set(key, def)
		}
		return c.count(maxWidth, key)
	}
	patch, deep := count("patch_size", 2), max(c.count(maxWidth, "patch_size_t"), 1)
	frames := (count("sample_frames", 49)-1)/max(count("temporal_compression_ratio", 4), 1) + 1
	video := (frames + deep - 1) / deep * (count("sample_height", 60) / max(patch, 1)) * (count("sample_width", 90) / max(patch, 1))
	if patch == 0 || video <= 0 || video > maxTokens {
		c.fail("patch_size=%d and the sample's %d frames give no number of patches", patch, frames)
		return
	}
	t := c.denoiser(m, m.Layers, video, count("max_text_seq_length", 226))
	vector, values := float64(count("time_embed_dim", 512)), float64(patch*patch*deep)
	t.block(t.layers, t.image+t.text)
	t.linear(2*t.layers, vector, 6*t.h, 1)
	t.params += t.layers*(4*t.h+4*t.d) + 4*t.h // norms
	t.linear(1, t.h, vector, 1)
	t.linear(1, vector, vector, 1)
	if ofs := c.width("ofs_embed_dim"); ofs > 0 {
		t.embed(ofs, ofs)
	}
	t.linear(1, vector, 2*t.h, 1)
	t.linear(1, float64(count("text_embed_dim", 4096)), t.h, t.text)
	t.linear(1, values*c.width("in_channels"), t.h, t.image)
	t.linear(1, t.h, values*c.width("out_channels"), t.image)
	t.done(m)
	c.warn("a sample is a video of %d latent patches, and %g text tokens", video, t.text)
}

// refineText adds the embedding of text by two blocks over it.
func (t *denoiser) refineText() {
	refiners, in := t.c.width("num_refiner_layers"), t.c.width("text_embed_dim")
	t.block(refiners, t.text)
	t.scores(refiners, t.text, t.text)
	t.linear(refiners, t.h, 2*t.h, 1)
	t.params += refiners * 4 * t.h
	t.linear(1, in, t.h, t.text)
	t.embed(256, t.h)
	t.embed(in, t.h)
}

// hunyuanVideo has the blocks of FLUX.1, and two blocks over the text before them (Kong et al. 2024, arXiv 2412.03603).
func hunyuanVideo(c *config, m *spec.Model) {
	const tokens, text = 33 * 45 * 80, 256
	double, single := c.count(maxLayers, "num_layers"), c.count(maxLayers, "num_single_layers")
	t := c.denoiser(m, double+single, tokens, text)
	t.wide(m, c.ratio("mlp_ratio", 4)*t.h)
	t.fluxBlocks(double, single)
	t.refineText()
	patch := c.width("patch_size")
	values := patch * patch * max(c.width("patch_size_t"), 1)
	t.ends(values*c.width("in_channels"), values*c.width("out_channels"))
	t.conditions(c.flag("guidance_embeds", true))
	t.done(m)
	c.warn("a sample is a video of 1280 x 720 pixels and 129 frames: %d latent patches, and %d text tokens", tokens, text)
}

// hunyuanVideo15 has only blocks with separate weights for video and text, and a second encoder of text and one of
// images (Tencent 2025, HunyuanVideo 1.5, arXiv 2511.18870).
func hunyuanVideo15(c *config, m *spec.Model) {
	const tokens, text, glyphs, views = 31 * 30 * 53, 1000, 256, 729
	t := c.denoiser(m, m.Layers, tokens, text)
	t.wide(m, c.ratio("mlp_ratio", 4)*t.h)
	t.refineText()
	t.text, m.SeqLen = text+glyphs+views, tokens+text+glyphs+views
	t.joint(t.layers)
	t.params += 4*t.layers*t.d + 3*t.h // norms of queries and keys, a vector for each kind of token
	second, inner := c.width("text_embed_2_dim"), 2048.
	t.params += 2 * second
	t.linear(1, second, inner, glyphs)
	t.linear(1, inner, inner, glyphs)
	t.linear(1, inner, t.h, glyphs)
	t.embedImage(c.width("image_embed_dim"), views)
	patch := c.width("patch_size")
	values := patch * patch * max(c.width("patch_size_t"), 1)
	t.ends(values*c.width("in_channels"), values*c.width("out_channels"))
	t.embed(256, t.h)
	if c.flag("use_meanflow", false) {
		t.embed(256, t.h)
	}
	t.done(m)
	c.warn("a sample is a video of 848 x 480 pixels and 121 frames: %d latent patches, and %g tokens of text and image", tokens, t.text)
}

// ltxVideo has the blocks of PixArt over latents of 32 x 32 pixels and 8 frames (HaCohen et al. 2024, arXiv
// 2501.00103).
func ltxVideo(c *config, m *spec.Model) {
	const tokens, text = 16 * 16 * 24, 128
	t := c.denoiser(m, m.Layers, tokens, 0)
	if cross := c.width("cross_attention_dim"); cross != t.h {
		c.fail("cross_attention_dim=%g is not the hidden size %g", cross, t.h)
	}
	t.params += 4 * t.layers * t.h // norms of queries and keys
	t.modulated(text)
	t.linear(1, c.width("in_channels"), t.h, t.image)
	t.linear(1, t.h, c.width("out_channels"), t.image)
	t.done(m)
	c.warn("a sample is a video of 768 x 512 pixels and 121 frames: %d latent patches, and %d text tokens", tokens, text)
}
