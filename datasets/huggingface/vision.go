package huggingface

import (
	"encoding/json"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// vision are encoders of images, and pairs of an encoder of images and one of text. From transformers 4.57.
func vision() map[string]arch {
	alone := map[string]any{"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 224, "patch_size": 16, "num_channels": 3}
	dino := arch{kind: spec.Vision, defaults: map[string]any{"num_channels": 3, "image_size": 518, "patch_size": 14}, adjust: dinov2}
	return map[string]arch{
		"clip_text_model": {kind: spec.Encoder, tied: true, adjust: clip, defaults: map[string]any{"vocab_size": 49408, "max_position_embeddings": 77, "hidden_size": 512,
			"intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8, "projection_dim": 512}},
		"siglip_text_model": {kind: spec.Encoder, tied: true, adjust: sigLIP, defaults: map[string]any{"vocab_size": 32000, "max_position_embeddings": 64, "hidden_size": 768,
			"intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}},
		"siglip_vision_model":   {kind: spec.Vision, defaults: alone, adjust: imagesAlone},
		"clip_vision_model":     {kind: spec.Vision, defaults: alone, adjust: imagesAlone},
		"dinov2":                dino,
		"dinov2_with_registers": dino,
		"dinov3_vit":            {kind: spec.Vision, defaults: alone, adjust: dinov3},
		"beit":                  {kind: spec.Vision, defaults: alone, adjust: beit},
		"data2vec-vision":       {kind: spec.Vision, defaults: alone, adjust: beit},
	}
}

// pairs are the model_types of text encoders beside an encoder of images, by the model_type of both.
var pairs = map[string]string{"clip": "clip_text_model", "siglip": "siglip_text_model", "siglip2": "siglip_text_model"}

// pairDefaults are the sizes of the vision_config of pairs, by its model_type, which files leave out.
var pairDefaults = map[string]map[string]any{
	"clip_vision_model":   {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 224, "patch_size": 32},
	"siglip_vision_model": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 224, "patch_size": 16},
}

// patches sets the tokens of m to those of its patches and others, and returns the number of patches; 0 is an error.
func (c *config) patches(m *spec.Model, others int) int {
	image, patch := c.count(maxWidth, "image_size"), c.count(maxWidth, "patch_size")
	if image == 0 || patch == 0 || patch > image || image/patch > 1<<12 {
		c.fail("image_size=%d and patch_size=%d give no number of patches", image, patch)
		return 0
	}
	n := (image / patch) * (image / patch)
	m.SeqLen, m.Vocab, m.KVHeads = n+others, 0, 0
	return n
}

// vit has a token per patch and a class token.
func vit(c *config, m *spec.Model) {
	if ratio := c.ratio("mlp_ratio", 0); ratio > 0 && !c.has("intermediate_size") {
		m.FFN = min(int(ratio*float64(m.Hidden)), maxWidth)
	}
	n := c.patches(m, 1)
	if n == 0 {
		return
	}
	h, classes := float64(m.Hidden), float64(c.classes())
	extra(m, c.patchParams(h)+(float64(n)+3+classes)*h) // positions, the class token and the bias of patches
	vectors(m, classes)
}

// classes returns the number of classes of a classifier, 0 for other models.
func (c *config) classes() int {
	var labels map[string]json.RawMessage
	if json.Unmarshal(c.fields["id2label"], &labels) == nil && len(labels) > 0 {
		return len(labels)
	}
	return c.count(maxVocab, "num_labels")
}

// beit is vit with a scale of each residual, no bias of the keys, and positions that are biases of attention (Bao et
// al. 2022, arXiv 2106.08254).
func beit(c *config, m *spec.Model) {
	vit(c, m)
	h, l := float64(m.Hidden), float64(m.Layers)
	more := -l * h
	if c.ratio("layer_scale_init_value", 0.1) > 0 {
		more += 2 * l * h
	}
	if !c.flag("use_absolute_position_embeddings", false) {
		more -= float64(m.SeqLen) * h
	}
	if c.flag("use_mask_token", false) {
		more += h
	}
	side := 2*c.width("image_size")/max(c.width("patch_size"), 1) - 1
	biases := (side*side + 3) * float64(m.Heads)
	if c.flag("use_relative_position_bias", false) {
		more += l * biases
	}
	if c.flag("use_shared_relative_position_bias", false) {
		more += biases
	}
	extra(m, more)
}

// dinov2 is vit with a mask token, registers in one form, and a scale of each residual (Oquab et al. 2023, arXiv
// 2304.07193). Its largest form has a gated MLP of two thirds of the width, a multiple of 8.
func dinov2(c *config, m *spec.Model) {
	if c.flag("use_swiglu_ffn", false) {
		m.GatedMLP = true
		m.FFN = min((int(c.ratio("mlp_ratio", 4)*float64(m.Hidden))*2/3+7)/8*8, maxWidth)
		c.fields["intermediate_size"] = nil
		c.fields["mlp_ratio"] = nil
	}
	vit(c, m)
	registers := 0
	if c.modelType == "dinov2_with_registers" {
		registers = 4
		if c.has("num_register_tokens") {
			registers = c.count(maxTokens, "num_register_tokens")
		}
	}
	h, l := float64(m.Hidden), float64(m.Layers)
	m.SeqLen += registers
	more := (1+float64(registers))*h + l*2*h
	if m.GatedMLP {
		more += l * float64(m.FFN)
	}
	extra(m, more)
}

// dinov3 has rotary positions, four registers, a mask token, and a scale of each residual (Siméoni et al. 2025, arXiv
// 2508.10104).
func dinov3(c *config, m *spec.Model) {
	registers := 0
	if c.has("num_register_tokens") {
		registers = c.count(maxTokens, "num_register_tokens")
	}
	if c.patches(m, 1+registers) == 0 {
		return
	}
	m.GatedMLP = c.flag("use_gated_mlp", false)
	h, f := float64(m.Hidden), float64(m.FFN)
	layer := 6 * h // norms and scales
	for key, def := range map[string]bool{"query_bias": true, "key_bias": false, "value_bias": true, "proj_bias": true} {
		if c.flag(key, def) {
			layer += h
		}
	}
	if c.flag("mlp_bias", true) {
		layer += f + h
		if m.GatedMLP {
			layer += f
		}
	}
	extra(m, c.patchParams(h)+(float64(registers)+3)*h+2*h+float64(m.Layers)*layer)
}

// imagesAlone is the encoder of images of CLIP or SigLIP.
func imagesAlone(c *config, m *spec.Model) {
	others := 0
	if c.modelType == "clip_vision_model" {
		others = 1
	}
	n := c.patches(m, others)
	if n == 0 {
		return
	}
	t := spec.Tower{Layers: m.Layers, Hidden: m.Hidden, FFN: m.FFN}
	more := towerKinds[c.modelType].besides(c, &t, float64(n))
	if c.modelType == "siglip_vision_model" && c.flag("vision_use_head", true) {
		more += poolingHead(&t)
	}
	extra(m, more)
}

// clip has a projection of each encoder to a common width (Radford et al. 2021, arXiv 2103.00020).
func clip(c *config, m *spec.Model) {
	learnedPositions(c, m)
	to := float64(c.count(maxWidth, "projection_dim"))
	c.imagesBeside(m, "clip_vision_model", func(_ *config, t *spec.Tower) float64 { return to * float64(t.Hidden+m.Hidden) })
}

// sigLIP has a head of attention over the patches, and one matrix after the text (Zhai et al. 2023, arXiv 2303.15343).
func sigLIP(c *config, m *spec.Model) {
	learnedPositions(c, m)
	to := m.Hidden
	if n := c.count(maxWidth, "projection_size"); n > 0 {
		to = n
	}
	extra(m, float64(to)*float64(m.Hidden+1))
	c.imagesBeside(m, "siglip_vision_model", func(v *config, t *spec.Tower) float64 {
		if !v.flag("vision_use_head", true) {
			return 0
		}
		return poolingHead(t)
	})
}

// poolingHead is an attention of one query, a norm and an MLP.
func poolingHead(t *spec.Tower) float64 {
	h, f := float64(t.Hidden), float64(t.FFN)
	return h + 4*h*h + 4*h + 2*h + 2*h*f + f + h
}

// imagesBeside adds the encoder of images of a vision_config to an encoder of text, with other parameters.
func (c *config) imagesBeside(m *spec.Model, kind string, others func(*config, *spec.Tower) float64) {
	v := c.vision()
	if v.fields == nil {
		c.fail("vision_config is missing or no object")
		return
	}
	for field, def := range pairDefaults[kind] {
		if !v.has(field) {
			v.set(field, def)
		}
	}
	t := spec.Tower{Layers: v.count(maxLayers, "num_hidden_layers"), Hidden: v.count(maxWidth, "hidden_size"), FFN: v.count(maxWidth, "intermediate_size"), Heads: v.count(maxWidth, "num_attention_heads")}
	image, patch := v.count(maxWidth, "image_size"), v.count(maxWidth, "patch_size")
	if v.err != nil || t.Layers == 0 || t.Hidden == 0 || patch == 0 || patch > image || image/patch > 1<<12 {
		c.fail("vision_config: layers=%d, width=%d, image_size=%d and patch_size=%d give no tower", t.Layers, t.Hidden, image, patch)
		return
	}
	patches := (image / patch) * (image / patch)
	if n := v.count(maxTokens, "num_patches"); n > 0 { // of SigLIP 2 with any aspect ratio
		patches = n
	}
	if t.Tokens = patches; kind == "clip_vision_model" {
		t.Tokens++
	}
	projector := towerKinds[kind].besides(v, &t, float64(patches)) + others(v, &t)
	if v.err != nil || !(projector < maxProjector) {
		c.fail("vision_config: %g parameters beside the layers", projector)
		return
	}
	t.Projector = int(projector)
	m.Tower = t
	extra(m, t.Params())
}
