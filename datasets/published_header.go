package datasets

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// configColumns are the columns that describe the configuration, and the origin of the row.
var configColumns = []string{"row_id", "source", "framework", "stack", "adapter", "model", "params_b", "layers", "hidden", "heads",
	"kv_heads", "head_dim", "ffn", "q_rank", "kv_rank", "experts", "experts_per_token", "expert_ffn", "shared_experts", "dense_layers", "node_limit", "mtp_layers", "vocab", "seq_len", "packed", "imbalance", "config",
	"accelerator", "num_nodes", "gpus_per_node", "num_gpus", "network_gbps", "dp", "tp", "pp", "cp", "ep", "vpp", "alone_stage", "schedule", "sp", "zero_stage", "shard", "offload", "recompute",
	"precision", "micro_batch", "global_batch", "grad_accum", "notes", "source_path", "source_commit", "source_date"}

// unknownColumns names the unknown columns of a header, each with a known column that it resembles and that is
// missing. Without outcomes, columns that resemble an outcome are left out.
func unknownColumns(cols map[string]int, outcomes bool) []string {
	var out []string
	for name := range cols {
		if slices.Contains(configColumns, name) || slices.Contains(OutcomeColumns, name) {
			continue
		}
		note := fmt.Sprintf("column %q is not known and ignored", name)
		like := looksLike(name, slices.Concat(configColumns, OutcomeColumns))
		if !outcomes && slices.Contains(OutcomeColumns, like) {
			continue
		}
		switch _, there := cols[like]; {
		case there:
			note += ", since there is a column " + like
		case like != "":
			note += ", did you mean " + like + "?"
		default:
			if part := stackPart(name); part != "" {
				note += ": a part of the training stack is written in column stack, as " + part + "=VALUE (pacer ls parts)"
			}
		}
		out = append(out, note)
	}
	slices.Sort(out)
	return out
}

// stackPart returns the part of a training stack that the name of a column stands for, "" if it stands for none.
func stackPart(name string) string {
	fold := named.Fold(name)
	for _, k := range stack.Kinds() {
		if fold == k.Name {
			return k.Name
		}
	}
	return usualParts[fold]
}

// usualParts are other names of parts, folded.
var usualParts = map[string]string{
	"attn": "attention", "attnimplementation": "attention", "attentionimpl": "attention", "attentionbackend": "attention", "attentionkernel": "attention", "flashattention": "attention", "flashattn": "attention",
	"compile": "launch", "torchcompile": "launch", "cudagraph": "launch", "cudagraphs": "launch", "crossentropy": "loss", "optim": "optimizer",
	"bucket": "overlap", "bucketsize": "overlap", "bucketcapmb": "overlap", "overlapgradreduce": "overlap",
}

// misspelt returns the unknown column that resembles a missing one: equal but for case and
// punctuation, a prefix with more than half of the letters, or within two edits. "" if there is
// none.
func misspelt(cols map[string]int, column string) string {
	want := named.Fold(column)
	for _, name := range slices.Sorted(maps.Keys(cols)) {
		if slices.Contains(configColumns, name) || slices.Contains(OutcomeColumns, name) {
			continue
		}
		have := named.Fold(name)
		cutShort := strings.HasPrefix(want, have) && 2*len(have) > len(want)
		if cutShort || strings.HasPrefix(have, want) || named.Distance(name, column) <= 2 {
			return name
		}
	}
	return ""
}

// usualNames are other names of columns, folded.
var usualNames = map[string]string{
	"gpus": "num_gpus", "ngpus": "num_gpus", "devices": "num_gpus", "worldsize": "num_gpus", "nodes": "num_nodes", "nnodes": "num_nodes",
	"gpu": "accelerator", "gputype": "accelerator", "mbs": "micro_batch", "gbs": "global_batch", "gas": "grad_accum", "gradientaccumulationsteps": "grad_accum",
	"lorarank": "adapter", "lorar": "adapter", "lora": "adapter", "qlora": "adapter", "peft": "adapter",
	"topk": "experts_per_token", "moetopk": "experts_per_token", "moeroutertopk": "experts_per_token", "numexpertspertok": "experts_per_token", "moeexperts": "experts", "numexperts": "experts", "nroutedexperts": "experts",
	"moeintermediatesize": "expert_ffn", "moeffnhiddensize": "expert_ffn", "nsharedexperts": "shared_experts", "numsharedexperts": "shared_experts", "firstkdensereplace": "dense_layers",
	"intermediatesize": "ffn", "ffnhiddensize": "ffn", "ffnhidden": "ffn", "dff": "ffn", "dmodel": "hidden", "numlayers": "layers", "numhiddenlayers": "layers", "nlayers": "layers",
	"numheads": "heads", "nheads": "heads", "numattentionheads": "heads", "numkeyvalueheads": "kv_heads", "numkvheads": "kv_heads", "numquerygroups": "kv_heads", "qlorarank": "q_rank", "kvlorarank": "kv_rank",
	"sequencelength": "seq_len", "contextlength": "seq_len", "ac": "recompute", "activationcheckpointing": "recompute", "gradientcheckpointing": "recompute", "dtype": "precision",
}

// looksLike returns the known name that name resembles: another name of it, equal but for case, punctuation and a word at
// its end, a prefix, or within two edits; "" if there is none. Edits do not count in short names, where they make another word.
func looksLike(name string, known []string) string {
	fold := named.Fold(name)
	if usual := usualNames[fold]; usual != "" {
		return usual
	}
	for _, k := range known {
		if rest, ok := strings.CutPrefix(fold, named.Fold(k)); ok && (rest == "" || rest == "size" || rest == "degree") {
			return k
		}
	}
	for _, k := range known {
		if len(fold) >= 2 && strings.HasPrefix(named.Fold(k), fold) {
			return k
		}
	}
	for _, k := range named.Nearest(name, known, 1) {
		if min(len(name), len(k)) > 4 && named.Distance(name, k) <= 2 {
			return k
		}
	}
	return ""
}
