package recipe

import (
	"maps"
)

// Field is something that a launch file can say. The names are those of the JSON output of pacer check.
type Field string

// Fields with numbers. A degree is 1 where a file does not give it.
const (
	Layers      Field = "layers"
	Hidden      Field = "hidden"
	Heads       Field = "heads"
	KVHeads     Field = "kv_heads"
	HeadDim     Field = "head_dim"
	FFN         Field = "ffn" // of dense layers
	Vocab       Field = "vocab"
	SeqLen      Field = "seq_len"
	DP          Field = "dp" // replicas x shards
	TP          Field = "tp"
	PP          Field = "pp"
	CP          Field = "cp"
	EP          Field = "ep"
	VPP         Field = "vpp"        // virtual stages of a pipeline rank
	ZeRO        Field = "zero_stage" // 0 to 3
	Shard       Field = "shard"      // devices of a group over which states are sharded, with replicas
	MicroBatch  Field = "micro_batch"
	GradAccum   Field = "grad_accum"
	GlobalBatch Field = "global_batch"
	LoRARank    Field = "lora_rank"
	Devices     Field = "devices"
	Nodes       Field = "nodes"
	PerNode     Field = "devices_per_node"
	SP          Field = "sequence_parallel" // 1 = yes
	Packed      Field = "packed"            // 1 = documents are packed into samples

	Experts   Field = "experts"
	TopK      Field = "experts_per_token"
	ExpertFFN Field = "expert_ffn"
	SharedFFN Field = "shared_expert_ffn"
	QRank     Field = "q_rank"
	KVRank    Field = "kv_rank"
	MTP       Field = "mtp_layers"
	Gated     Field = "gated_mlp"       // 1 = yes
	Tied      Field = "tied_embeddings" // 1 = yes, 0 = no
	Bits      Field = "weight_bits"     // of frozen weights

	// of one format, from which others follow
	perChunk   Field = "layers_per_virtual_stage"
	firstLess  Field = "first_stage_less_layers" // layers that the embedding counts as in torchtitan
	lastLess   Field = "last_stage_less_layers"  // and the output
	replicas   Field = "replicas"
	shards     Field = "shard_ranks"
	localBatch Field = "local_batch"
	instances  Field = "optimizer_instances"
	withinNode Field = "shard_within_node" // 1 = states are sharded over the devices of a node

	decoderLayers Field = "decoder_layers" // of encoder and decoder
	qkHeadDim     Field = "qk_head_dim"    // of latent attention, without the rotated part
	sharedExperts Field = "shared_experts"
	denseFirst    Field = "first_dense_layers"
	mixerHeads    Field = "mixer_heads"
	mixerHeadDim  Field = "mixer_head_dim"
	mixerState    Field = "mixer_state"
	mixerGroups   Field = "mixer_groups"
)

// Fields with text.
const (
	ModelName Field = "model"
	Offload   Field = "offload"   // none, optimizer, params, joined by +, with (nvme) after the part
	Recompute Field = "recompute" // none, selective, full
	Precision Field = "precision" // of the multiplications
	Optimizer Field = "optimizer"
	Adapter   Field = "adapter" // lora, qlora
	Modules   Field = "adapter_modules"
	Schedule  Field = "schedule"

	flavor    Field = "flavor"
	tokenizer Field = "tokenizer"
	moeFreq   Field = "moe_layer_freq"
	hybrid    Field = "hybrid_layer_pattern"
	layout    Field = "pipeline_layout"
	stages    Field = "stage_modules"
)

// internal fields are not written out.
var internal = map[Field]bool{perChunk: true, replicas: true, shards: true, localBatch: true, instances: true, withinNode: true, firstLess: true, lastLess: true, flavor: true, tokenizer: true, moeFreq: true, hybrid: true, layout: true, stages: true,
	decoderLayers: true, qkHeadDim: true, sharedExperts: true, denseFirst: true, mixerHeads: true, mixerHeadDim: true, mixerState: true, mixerGroups: true}

// Facts are the values that a file gives. Fields that it leaves open are absent.
type Facts struct {
	numbers map[Field]int
	texts   map[Field]string
}

func newFacts() Facts { return Facts{map[Field]int{}, map[Field]string{}} }

// Number returns a number; ok is false where the file does not give it.
func (f Facts) Number(of Field) (n int, ok bool) { n, ok = f.numbers[of]; return n, ok }

// Text returns a text, "" where the file does not give it.
func (f Facts) Text(of Field) string { return f.texts[of] }

// or returns a number, or another one where the file does not give it.
func (f Facts) or(of Field, otherwise int) int {
	if n, ok := f.numbers[of]; ok {
		return n
	}
	return otherwise
}

// degree is a number that is 1 where the file does not give it.
func (f Facts) degree(of Field) int { return f.or(of, 1) }

// setDefault sets a number that is not there.
func (f Facts) setDefault(of Field, n int) {
	if _, ok := f.numbers[of]; !ok {
		f.numbers[of] = n
	}
}

// Given returns the fields that are given, each a number or a text.
func (f Facts) Given() map[Field]any {
	out := map[Field]any{}
	for k, v := range f.numbers {
		out[k] = v
	}
	for k, v := range f.texts {
		out[k] = v
	}
	maps.DeleteFunc(out, func(k Field, _ any) bool { return internal[k] })
	return out
}
