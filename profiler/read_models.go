package profiler

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// readModels reads the list of models: catalog names, or mappings that describe a model.
func (r *campaignReader) readModels(n yamlfile.Node) {
	for _, e := range n.List() {
		m, ok := spec.Model{}, false
		if e.IsMapping() {
			m, ok = r.ownModel(e)
		} else {
			m, ok = r.namedModel(e)
		}
		if !ok {
			continue
		}
		if slices.ContainsFunc(r.c.Models, func(o spec.Model) bool { return o.Name == m.Name }) {
			e.Fail("model %s is listed twice", m.Name)
			continue
		}
		r.c.Models = append(r.c.Models, m)
	}
	if len(r.c.Models) == 0 && r.Count() == 0 && !r.c.Space.Measured {
		r.Fail(n.Token(), "the campaign has no models, want a list like models: [GPT2-XL]")
	}
}

// namedModel looks up a name in the catalog. Measured spaces only filter their table by the name.
func (r *campaignReader) namedModel(n yamlfile.Node) (spec.Model, bool) {
	name := n.Text()
	switch {
	case name == "":
		return spec.Model{}, false
	case r.c.Space.Measured:
		return spec.Model{Name: name}, true
	case r.catalog == nil:
		n.Fail("model %s: no catalog is available, describe the model", name)
		return spec.Model{}, false
	}
	m, err := r.catalog(name)
	if err != nil {
		n.Fail("%w", err)
		return spec.Model{}, false
	}
	return m, true
}

// maxModelNumber is the largest number in the description of a model.
const maxModelNumber = 1 << 26

// ownModel reads the description of a model that is not in the catalog.
func (r *campaignReader) ownModel(n yamlfile.Node) (spec.Model, bool) {
	before := r.Count()
	var m spec.Model
	numbers := map[string]*int{"layers": &m.Layers, "hidden": &m.Hidden, "ffn": &m.FFN, "heads": &m.Heads,
		"kv_heads": &m.KVHeads, "head_dim": &m.HeadDim, "vocab": &m.Vocab, "seq_len": &m.SeqLen,
		"experts": &m.Experts, "experts_per_token": &m.ExpertsPerToken, "expert_ffn": &m.ExpertFFN,
		"shared_experts": &m.SharedExperts, "dense_layers": &m.DenseLayers}
	var name yamlfile.Node
	for _, e := range n.Entries("name", "kind", "layers", "hidden", "ffn", "heads", "kv_heads", "head_dim",
		"vocab", "seq_len", "experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "gated_mlp", "tied_embeddings", "params") {
		switch e.Key {
		case "name":
			m.Name, name = e.Value.Text(), e.Value
		case "kind":
			m.Kind = yamlfile.Word(e.Value, spec.Decoder, spec.Encoder, spec.EncoderDecoder, spec.Vision, spec.Opaque)
		case "gated_mlp":
			m.GatedMLP = e.Value.Flag()
		case "tied_embeddings":
			m.TiedEmbeddings = e.Value.Flag()
		case "params":
			m.ParamCount = e.Value.Number(0, false, 1e15)
		default:
			*numbers[e.Key] = e.Value.Whole(1, maxModelNumber)
		}
	}
	if r.Count() == before {
		r.checkModel(n, name, m)
	}
	return m, r.Count() == before
}

// checkModel reports a description from which no model can be built.
func (r *campaignReader) checkModel(n, name yamlfile.Node, m spec.Model) {
	if m.Name == "" {
		n.Fail("the model has no name")
		return
	}
	if err := checkName("model name", m.Name); err != nil {
		name.Fail("%w", err)
		return
	}
	if r.catalog != nil {
		if known, err := r.catalog(m.Name); err == nil && known.Name == m.Name {
			name.Fail("%s is a model of the catalog: list only its name, or give this model another name", m.Name)
			return
		}
	}
	if m.HasShape() && m.Kind == "" {
		n.Fail("model %s has no kind, want decoder, encoder, encoder-decoder or vision", m.Name)
		return
	}
	if m.HasShape() && m.HeadDim == 0 && m.Heads > 0 && m.Hidden%m.Heads != 0 {
		n.Fail("model %s: heads=%d does not divide hidden=%d; give head_dim", m.Name, m.Heads, m.Hidden)
		return
	}
	if m.KVHeads > 0 && m.Heads%m.KVHeads != 0 {
		n.Fail("model %s: kv_heads=%d does not divide heads=%d", m.Name, m.KVHeads, m.Heads)
		return
	}
	if err := m.Validate(); err != nil {
		n.Fail("%s", unprefixed(err))
		return
	}
	if math.IsInf(m.TrainFLOPs(0), 0) || m.SeqLen == 0 && len(r.c.Space.SeqLens) == 0 {
		n.Fail("model %s has no seq_len, and the space has no seq", m.Name)
	}
}
