package catalog

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// ModelEntry is one model of the catalog.
type ModelEntry struct {
	Model   spec.Model
	Aliases []string
	Note    string // limits of the figures
	Source  string
}

type modelTable struct {
	*index
	entries []ModelEntry
}

var loadModels = sync.OnceValue(func() *modelTable {
	t := &modelTable{index: newIndex("model", repository)}
	t.match = t.means
	named := map[string]row{}
	for _, r := range readTable("model_names.csv") {
		named[r.str("name")] = r
	}
	for _, r := range readTable("models.csv") {
		n, ok := named[r.str("name")]
		if !ok {
			panic("catalog: model_names.csv lacks " + r.str("name"))
		}
		m := modelFromRow(r, n)
		m.Window, m.WindowLayers, m.MTPLayers = n.int("window"), n.int("window_layers"), n.int("mtp_layers")
		m.QRank, m.KVRank, m.NodeLimit = n.int("q_rank"), n.int("kv_rank"), n.int("node_limit")
		t.put(m, n, r.str("notes"))
	}
	for _, table := range []string{"more_models.csv", "recent_models.csv"} {
		for _, r := range readTable(table) {
			m := modelFromRow(r, r)
			m.FLOPsPerSample = r.num("flops_per_sample")
			if table == "recent_models.csv" {
				hybridFromRow(&m, r)
			}
			t.put(m, r, r.str("notes"))
		}
	}
	return t
})

// means is sameWords, where a name may call an entry with experts a MoE.
func (t *modelTable) means(name []string, s *spelling) bool {
	if sameWords(name, s) || t.entries[s.at].Model.Experts == 0 {
		return sameWords(name, s)
	}
	isMoE := func(w string) bool { return w == "moe" }
	return sameWords(slices.DeleteFunc(slices.Clone(name), isMoE), s)
}

func (t *modelTable) put(m spec.Model, names row, note string) {
	e := ModelEntry{Model: m, Aliases: names.list("aliases"), Note: note, Source: names.str("source")}
	t.entries = append(t.entries, e)
	t.add(m.Name, e.Aliases, m.Params())
}

// modelFromRow reads the shape from one row, and kind, sequence length and published counts from
// another or the same.
func modelFromRow(r, names row) spec.Model {
	return spec.Model{
		Name:    r.str("name"),
		Kind:    spec.Kind(names.str("kind")),
		Layers:  r.int("layers"),
		Hidden:  r.int("hidden"),
		FFN:     r.int("ffn_hidden"),
		Heads:   r.int("heads"),
		KVHeads: r.int("kv_heads"),
		HeadDim: r.int("head_dim"),
		Vocab:   r.int("vocab"),
		SeqLen:  names.int("seq_len"),

		GatedMLP:       r.bool("gated_mlp"),
		TiedEmbeddings: r.bool("tied_embeddings"),

		Experts:         r.int("experts"),
		ExpertsPerToken: r.int("experts_per_token"),
		ExpertFFN:       r.int("moe_ffn_hidden"),
		SharedExperts:   r.int("shared_experts"),
		DenseLayers:     r.int("dense_layers"),

		ParamCount:       names.num("param_count"),
		ActiveParamCount: names.num("active_param_count"),
	}
}

// hybridFromRow reads the columns that only recent_models.csv has.
func hybridFromRow(m *spec.Model, r row) {
	m.QRank, m.KVRank = r.int("q_rank"), r.int("kv_rank")
	m.Window, m.WindowLayers = r.int("window"), r.int("window_layers")
	m.SSMLayers, m.SSMHeads, m.SSMHeadDim = r.int("ssm_layers"), r.int("ssm_heads"), r.int("ssm_head_dim")
	m.SSMState, m.SSMGroups, m.MLPLayers = r.int("ssm_state"), r.int("ssm_groups"), r.int("mlp_layers")
	m.NodeLimit = r.int("node_limit")
	m.ExpertHidden, m.MoEEvery, m.MTPLayers = r.int("expert_hidden"), r.int("moe_every"), r.int("mtp_layers")
	m.Tower = spec.Tower{
		Layers: r.int("tower_layers"), Hidden: r.int("tower_hidden"), FFN: r.int("tower_ffn"), Heads: r.int("tower_heads"),
		GatedMLP: r.bool("tower_gated_mlp"), Tokens: r.int("tower_tokens"), Projector: r.int("tower_projector"),
	}
}

// Model returns the model with a name or alias, or an *UnknownError.
func Model(name string) (spec.Model, error) {
	t := loadModels()
	i, err := t.find(name)
	if err != nil {
		return spec.Model{}, err
	}
	return t.entries[i].Model, nil
}

// ModelOnHub is Model for names as people write them: with an organization, meta-llama/Llama-2-7b-hf, with family and
// size in any order, 8B Llama 3.1, and with remarks, Llama 3.1 8B Instruct, Qwen3-8B-Base, Mixtral-8x7B-v0.1. Behind a
// method of fine-tuning, Llama 3.1 8B LoRA, it is the model with adapters of UsualRank.
func ModelOnHub(name string) (spec.Model, error) {
	if bare, kind := SplitAdapter(name); kind != "" {
		if m, err := ModelOnHub(bare); err == nil && m.HasShape() {
			a, err := spec.ParseAdapter(fmt.Sprintf("%s:%d", kind, UsualRank))
			return m.Adapted(a), err
		}
	}
	t := loadModels()
	i, err := t.findWritten(name)
	for more := name; err != nil; {
		shorter := ending.ReplaceAllString(more, "")
		if shorter == more {
			return spec.Model{}, err
		}
		more = shorter
		if found := t.written(more); len(found) == 1 {
			i, err = found[0], nil
		}
	}
	return t.entries[i].Model, nil
}

// CanonicalModel returns a form of name for comparisons. Two names mean one model if their forms are
// equal: names of one entry of the catalog, with or without an organization, or names that the catalog
// lacks and that are equal without case and punctuation. A name with an adapter or changed figures in brackets is
// another model.
func CanonicalModel(name string) string {
	if _, kind := SplitAdapter(name); kind != "" {
		if m, err := ModelOnHub(name); err == nil {
			name = m.Name
		}
	}
	return loadModels().canonical(name)
}

// Models returns every model, in table order.
func Models() []ModelEntry {
	out := slices.Clone(loadModels().entries)
	for i := range out {
		out[i].Aliases = slices.Clone(out[i].Aliases)
	}
	return out
}
