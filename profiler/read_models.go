package profiler

import (
	"math"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// readModels reads the list of models: names of the catalog, or mappings that
// describe others.
func (r *campaignReader) readModels(n yamlNode) {
	for _, e := range n.list() {
		m, ok := spec.Model{}, false
		if e.isMapping() {
			m, ok = r.ownModel(e)
		} else {
			m, ok = r.namedModel(e)
		}
		if !ok {
			continue
		}
		if slices.ContainsFunc(r.c.Models, func(o spec.Model) bool { return o.Name == m.Name }) {
			e.fail("model %s is listed twice", m.Name)
			continue
		}
		r.c.Models = append(r.c.Models, m)
	}
	if len(r.c.Models) == 0 && len(r.errs) == 0 && !r.c.Space.Measured {
		r.fail(n.token(), "the campaign has no models, want a list like models: [GPT2-XL]")
	}
}

// namedModel looks a name up. Measured spaces filter their table by it, and
// need no more.
func (r *campaignReader) namedModel(n yamlNode) (spec.Model, bool) {
	name := n.text()
	switch {
	case name == "":
		return spec.Model{}, false
	case r.c.Space.Measured:
		return spec.Model{Name: name}, true
	case r.catalog == nil:
		n.fail("model %s: there is no catalog here, describe the model", name)
		return spec.Model{}, false
	}
	m, err := r.catalog(name)
	if err != nil {
		n.fail("%w", err)
		return spec.Model{}, false
	}
	return m, true
}

// maxModelNumber bounds the numbers that describe a model.
const maxModelNumber = 1 << 26

// ownModel reads a model the catalog does not know.
func (r *campaignReader) ownModel(n yamlNode) (spec.Model, bool) {
	before := len(r.errs)
	var m spec.Model
	numbers := map[string]*int{"layers": &m.Layers, "hidden": &m.Hidden, "ffn": &m.FFN, "heads": &m.Heads,
		"kv_heads": &m.KVHeads, "head_dim": &m.HeadDim, "vocab": &m.Vocab, "seq_len": &m.SeqLen}
	var name yamlNode
	for _, e := range n.entries("name", "kind", "layers", "hidden", "ffn", "heads", "kv_heads", "head_dim",
		"vocab", "seq_len", "gated_mlp", "tied_embeddings", "params") {
		switch e.key {
		case "name":
			m.Name, name = e.value.text(), e.value
		case "kind":
			m.Kind = word(e.value, spec.Decoder, spec.Encoder, spec.EncoderDecoder, spec.Vision, spec.Opaque)
		case "gated_mlp":
			m.GatedMLP = e.value.flag()
		case "tied_embeddings":
			m.TiedEmbeddings = e.value.flag()
		case "params":
			m.ParamCount = e.value.number(0, false, 1e15)
		default:
			*numbers[e.key] = e.value.whole(1, maxModelNumber)
		}
	}
	if len(r.errs) == before {
		r.checkModel(n, name, m)
	}
	return m, len(r.errs) == before
}

// checkModel reports a description nothing can be built from.
func (r *campaignReader) checkModel(n, name yamlNode, m spec.Model) {
	if m.Name == "" {
		n.fail("the model has no name")
		return
	}
	if err := checkName("model name", m.Name); err != nil {
		name.fail("%w", err)
		return
	}
	if r.catalog != nil {
		if known, err := r.catalog(m.Name); err == nil && known.Name == m.Name {
			name.fail("%s is a model of the catalog: list its name alone, or give this one another", m.Name)
			return
		}
	}
	if m.HasShape() && m.Kind == "" {
		n.fail("model %s has no kind, want decoder, encoder, encoder-decoder or vision", m.Name)
		return
	}
	if m.HasShape() && m.HeadDim == 0 && m.Heads > 0 && m.Hidden%m.Heads != 0 {
		n.fail("model %s: heads=%d does not divide hidden=%d; give head_dim", m.Name, m.Heads, m.Hidden)
		return
	}
	if m.KVHeads > 0 && m.Heads%m.KVHeads != 0 {
		n.fail("model %s: kv_heads=%d does not divide heads=%d", m.Name, m.KVHeads, m.Heads)
		return
	}
	if err := m.Validate(); err != nil {
		n.fail("%s", unprefixed(err))
		return
	}
	if math.IsInf(m.TrainFLOPs(0), 0) || m.SeqLen == 0 && len(r.c.Space.SeqLens) == 0 {
		n.fail("model %s has no seq_len, and space no seq", m.Name)
	}
}
