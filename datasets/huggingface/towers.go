package huggingface

import (
	"encoding/json"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// towerKind is a kind of vision tower, by the model_type of its vision_config.
type towerKind struct {
	gated bool
	// tokens of one image, 0 = its patches
	tokens int
	// besides returns the parameters that are not matrices of layers: embeddings, positions, biases, norms.
	besides func(v *config, t *spec.Tower, patches float64) float64
}

var towerKinds = map[string]towerKind{
	"clip_vision_model":   {besides: clipTower},
	"siglip_vision_model": {besides: siglipTower},
	"siglip2_vision_model": {tokens: patchesOfImage, besides: func(v *config, t *spec.Tower, _ float64) float64 {
		return siglipTower(v, t, float64(v.count(maxTokens, "num_patches")))
	}},
	"pixtral": {gated: true, tokens: patchesOfImage, besides: func(v *config, t *spec.Tower, _ float64) float64 {
		h := float64(t.Hidden)
		return v.patchParams(h) + h + float64(t.Layers)*2*h
	}},
	"idefics3":            {besides: siglipTower},
	"idefics3_vision":     {besides: siglipTower},
	"smolvlm_vision":      {besides: siglipTower},
	"intern_vit_6b":       {besides: internTower},
	"internvl_vision":     {besides: internTower},
	"mllama_vision_model": {besides: mllamaTower},
	"qwen3_vl":            {tokens: patchesOfImage, besides: qwen3Tower},
	"qwen3_vl_moe":        {tokens: patchesOfImage, besides: qwen3Tower},
	"qwen3_5":             {tokens: patchesOfImage, besides: qwen3Tower},
	"qwen3_5_moe":         {tokens: patchesOfImage, besides: qwen3Tower},
	"glm4v":               {gated: true, tokens: patchesOfImage, besides: glmTower},
	"glm4v_vision":        {gated: true, tokens: patchesOfImage, besides: glmTower},
	"glm4v_moe":           {gated: true, tokens: patchesOfImage, besides: glmTower},
	"glm4v_moe_vision":    {gated: true, tokens: patchesOfImage, besides: glmTower},
}

// projectors return the parameters between tower and language model, by the model_type of the whole: h is the width of
// the tower, to that of the language model.
var projectors = map[string]func(c *config, h, to float64) float64{
	"llava":           llavaProjector,
	"llava_next":      func(c *config, h, to float64) float64 { return llavaProjector(c, h, to) + to }, // a vector for a new line
	"llava_onevision": func(c *config, h, to float64) float64 { return llavaProjector(c, h, to) + to },
	"gemma3":          func(_ *config, h, to float64) float64 { return h*to + h },
	"paligemma":       func(_ *config, h, to float64) float64 { return h*to + to },
	"idefics3":        shuffledProjector,
	"smolvlm":         shuffledProjector,
	"internvl_chat":   internProjector,
	"internvl":        internProjector,
	"mistral3": func(c *config, h, to float64) float64 {
		merge := float64(max(c.count(maxWidth, "spatial_merge_size"), 1))
		out := h + merge*merge*h*h + h*to + to*to
		if c.flag("multimodal_projector_bias", false) {
			out += 2 * to
		}
		return out
	},
	"mllama": func(c *config, _, to float64) float64 {
		return float64(c.vision().count(maxWidth, "vision_output_dim"))*to + to
	},
	"lfm2_vl":      lfm2Projector,
	"qwen3_vl":     qwen3Projector,
	"qwen3_vl_moe": qwen3Projector,
	"qwen3_5":      qwen3Projector,
	"qwen3_5_moe":  qwen3Projector,
	"glm4v":        glmProjector,
	"glm4v_moe":    glmProjector,
}

// vision returns the vision_config; one without fields if there is none.
func (c *config) vision() *config {
	v := &config{}
	if json.Unmarshal(c.fields["vision_config"], &v.fields) != nil {
		v.fields = nil
	}
	v.modelType = v.word("model_type")
	return v
}

// tower adds the vision tower of a network with several parts, and reports whether it is one that is known.
func (c *config) tower(m *spec.Model) bool {
	v := c.vision()
	kind, known := towerKinds[v.modelType]
	projector := projectors[c.modelType]
	if !known || projector == nil {
		return false
	}
	t := spec.Tower{Layers: v.count(maxLayers, "num_hidden_layers", "depth") + v.count(maxLayers, "num_global_layers"), Hidden: v.count(maxWidth, "hidden_size"), FFN: v.count(maxWidth, "intermediate_size"),
		Heads: v.count(maxWidth, "num_attention_heads", "attention_heads", "num_heads"), GatedMLP: kind.gated, Tokens: kind.tokens}
	image, patch := v.count(maxWidth, "image_size"), v.count(maxWidth, "patch_size")
	patches := patchesOfImage
	if patch > 0 && image >= patch && image/patch < 1<<12 {
		patches = (image / patch) * (image / patch)
	}
	if t.Tokens == 0 {
		t.Tokens = patches
	}
	if v.err != nil || t.Layers == 0 || t.Hidden == 0 || t.FFN == 0 || patch == 0 || image == 0 && kind.tokens == 0 {
		return false
	}
	more := kind.besides(v, &t, float64(patches)) + projector(c, float64(t.Hidden), float64(m.Hidden))
	if v.err != nil || c.err != nil || !(more >= 0 && more < maxProjector) {
		return false
	}
	t.Projector = int(math.Round(more))
	if m.ParamCount > 0 {
		extra(m, t.Params())
	}
	m.Tower = t
	c.warn("a sample has one image of %d patches", t.Tokens)
	return true
}

// patchParams are the weights of the convolution that embeds patches.
func (c *config) patchParams(h float64) float64 {
	p := float64(c.count(maxWidth, "patch_size"))
	return float64(max(c.count(maxWidth, "num_channels", "in_channels", "in_chans"), 3)) * float64(max(c.count(maxWidth, "temporal_patch_size"), 1)) * p * p * h
}

// layerVectors are the biases and norms of the layers of a tower with all of them.
func layerVectors(t *spec.Tower) float64 {
	return float64(t.Layers) * (9*float64(t.Hidden) + float64(t.FFN))
}

// clipTower has a class token, and norms before and after the layers (Radford et al. 2021, arXiv 2103.00020).
func clipTower(v *config, t *spec.Tower, patches float64) float64 {
	h := float64(t.Hidden)
	return v.patchParams(h) + h + (patches+1)*h + 4*h + layerVectors(t)
}

// siglipTower has no class token (Zhai et al. 2023, arXiv 2303.15343). The head is left out, as language models do.
func siglipTower(v *config, t *spec.Tower, patches float64) float64 {
	h := float64(t.Hidden)
	return v.patchParams(h) + h + patches*h + 2*h + layerVectors(t)
}

// internTower is InternViT: a class token, a scale of each residual, and no last norm (Chen et al. 2024, arXiv
// 2312.14238).
func internTower(v *config, t *spec.Tower, patches float64) float64 {
	h := float64(t.Hidden)
	layers := layerVectors(t) + float64(t.Layers)*2*h
	if !v.flag("qkv_bias", v.flag("attention_bias", true)) {
		layers -= float64(t.Layers) * 3 * h
	}
	return v.patchParams(h) + h + h + (patches+1)*h + layers
}

// mllamaTower has positions in a tile and of tiles, for each aspect ratio, and gates (Llama 3.2 Vision, transformers
// 4.57).
func mllamaTower(v *config, t *spec.Tower, patches float64) float64 {
	h, tiles, global := float64(t.Hidden), float64(v.count(maxWidth, "max_num_tiles")), float64(v.count(maxLayers, "num_global_layers"))
	var supported []json.RawMessage
	_ = json.Unmarshal(v.fields["supported_aspect_ratios"], &supported)
	ratios := float64(len(supported)) + 1
	if len(supported) == 0 {
		ratios = 9
	}
	positions := (patches+1)*h + ratios*tiles*(patches+1)*h + 1 + 2*(ratios*tiles*h+1)
	return v.patchParams(h) + h + positions + 4*h + float64(t.Layers)*(float64(t.FFN)+5*h) + 2*global
}

// qwen3Tower is that of Qwen3-VL, with learned positions.
func qwen3Tower(v *config, t *spec.Tower, _ float64) float64 {
	h := float64(t.Hidden)
	return v.patchParams(h) + h + float64(v.count(maxTokens, "num_position_embeddings"))*h + layerVectors(t)
}

// glmTower is that of GLM-4.1V: no biases but that of patches, and an MLP as wide as the language model (arXiv
// 2507.01006).
func glmTower(v *config, t *spec.Tower, patches float64) float64 {
	t.FFN = v.count(maxWidth, "out_hidden_size")
	h := float64(t.Hidden)
	return v.patchParams(h) + h + patches*h + 2*h + 2*h*float64(t.Layers)
}

// glmProjector merges patches, then has a matrix and a gated MLP.
func glmProjector(c *config, h, to float64) float64 {
	v := c.vision()
	merge := float64(max(v.count(maxWidth, "spatial_merge_size"), 1))
	return merge*merge*h*to + to + to*to + 2*to + 3*to*v.width("intermediate_size")
}

// towerInside reads the tower of a file that has the fields of the language model at its top.
func towerInside(c *config, m *spec.Model) {
	if !c.tower(m) {
		c.warn("only the language model of %s is read: other towers are left out", c.modelType)
	}
}

// qwen3Projector merges patches after the tower, and after the layers that deepstack_visual_indexes lists.
func qwen3Projector(c *config, h, to float64) float64 {
	v := c.vision()
	merge := float64(max(v.count(maxWidth, "spatial_merge_size"), 1))
	var deep []json.RawMessage
	_ = json.Unmarshal(v.fields["deepstack_visual_indexes"], &deep)
	wide := merge * merge * h
	merger := wide*wide + wide + wide*to + to
	return merger + 2*h + float64(len(deep))*(merger+2*wide)
}

// llavaProjector is an MLP of two matrices (Liu et al. 2023, arXiv 2310.03744).
func llavaProjector(c *config, h, to float64) float64 {
	out := h*to + to*to
	if c.flag("multimodal_projector_bias", true) {
		out += 2 * to
	}
	return out
}

// phi3Vision has the encoder of CLIP for 336 pixels, which its file only names, and a projector of 2 x 2 joined
// patches with separators of rows and of images (Abdin et al. 2024, arXiv 2404.14219, section 6).
func phi3Vision(c *config, m *spec.Model) {
	v := &config{modelType: "clip_vision_model", fields: map[string]json.RawMessage{"patch_size": json.RawMessage("14")}}
	t := spec.Tower{Layers: 24, Hidden: 1024, FFN: 4096, Heads: 16, Tokens: 24 * 24}
	h, wide := float64(m.Hidden), 4*float64(t.Hidden)
	t.Projector = int(clipTower(v, &t, float64(t.Tokens)) + (wide+1)*h + (h+1)*h + 2*wide)
	m.Tower = t
	c.warn("a sample has one image of %d patches", t.Tokens)
}

// shuffledProjector joins scale_factor² patches, and is one matrix (Laurençon et al. 2024, Idefics3, arXiv 2408.12637).
func shuffledProjector(c *config, h, to float64) float64 {
	scale := float64(max(c.count(maxWidth, "scale_factor"), 1))
	return scale * scale * h * to
}

// lfm2Projector joins downsample_factor² patches, then has a norm and an MLP of two matrices.
func lfm2Projector(c *config, h, to float64) float64 {
	factor := float64(max(c.count(maxWidth, "downsample_factor"), 1))
	wide, inner := factor*factor*h, c.width("projector_hidden_size")
	out := wide*inner + inner*to
	if c.flag("projector_bias", true) {
		out += inner + to
	}
	if c.flag("projector_use_layernorm", true) {
		out += 2 * wide
	}
	return out
}

// internProjector joins patches by downsample_ratio, then has a norm and an MLP of two matrices.
func internProjector(c *config, h, to float64) float64 {
	ratio := c.ratio("downsample_ratio", 0.5)
	wide := h / (ratio * ratio)
	return 2*wide + wide*to + to + to*to + to
}

// nestedDefaults are the sizes of the config classes of language models, which files of networks with several parts
// leave out. From transformers 4.57.
var nestedDefaults = map[string]map[string]any{
	"llama":       {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "max_position_embeddings": 2048},
	"mistral":     {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000},
	"qwen2":       {"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 151936},
	"gemma":       {"hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 256000},
	"gemma2":      {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "vocab_size": 256000},
	"gemma3_text": {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26},
}
