package rowfile

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// kind is the type of a column.
type kind int

const (
	textKind   kind = iota // UTF-8
	wholeKind              // 64-bit integer
	numberKind             // 64-bit float
	flagKind               // true or false
	timeKind               // nanoseconds since 1970, UTC
	listKind               // list of 64-bit floats
)

func (k kind) String() string {
	return [...]string{"text", "a whole number", "a number", "true or false", "a timestamp", "a list of numbers"}[k]
}

// cell is one value of a column. The kind of the column determines which field is set: wholeKind, flagKind (0
// or 1) and timeKind use n.
type cell struct {
	null bool
	s    string
	n    int64
	f    float64
	fs   []float64
}

// column maps a column of an exported file to a field. A zero field is written as null, unless the column is
// required: a required column is never null, and a file without it is an error.
type column struct {
	name, unit, doc string
	kind            kind
	required        bool
	part            part                                               // of a measurement that it is from
	add             func(*columnBuilder, *spec.Measurement, int) error // adds the value n times
	set             func(*spec.Measurement, cell) error
}

// The columns in file order. FORMAT.md has the same list; a test compares them.
var columns = withParts([]column{
	required(textColumn("model", "name of the model trained", func(m *spec.Measurement) *string { return &m.Config.Model.Name })),
	textColumn("model_kind", "decoder, encoder, encoder-decoder, vision or opaque", func(m *spec.Measurement) *spec.Kind { return &m.Config.Model.Kind }),
	wholeColumn("model_layers", "", "transformer layers", func(m *spec.Measurement) *int { return &m.Config.Model.Layers }),
	wholeColumn("model_hidden", "", "hidden width", func(m *spec.Measurement) *int { return &m.Config.Model.Hidden }),
	wholeColumn("model_ffn", "", "inner width of the MLP", func(m *spec.Measurement) *int { return &m.Config.Model.FFN }),
	wholeColumn("model_heads", "", "query heads", func(m *spec.Measurement) *int { return &m.Config.Model.Heads }),
	wholeColumn("model_kv_heads", "", "key/value heads, null = model_heads", func(m *spec.Measurement) *int { return &m.Config.Model.KVHeads }),
	wholeColumn("model_head_dim", "", "width of a head, null = model_hidden / model_heads", func(m *spec.Measurement) *int { return &m.Config.Model.HeadDim }),
	wholeColumn("model_vocab", "", "vocabulary", func(m *spec.Measurement) *int { return &m.Config.Model.Vocab }),
	wholeColumn("model_seq_len", "tokens", "sample length when seq_len is null", func(m *spec.Measurement) *int { return &m.Config.Model.SeqLen }),
	wholeColumn("model_q_rank", "", "compressed width of queries in multi-head latent attention", func(m *spec.Measurement) *int { return &m.Config.Model.QRank }),
	wholeColumn("model_kv_rank", "", "compressed width of keys and values in multi-head latent attention, null = other attention", func(m *spec.Measurement) *int { return &m.Config.Model.KVRank }),
	wholeColumn("model_window", "tokens", "tokens that attention with a sliding window sees", func(m *spec.Measurement) *int { return &m.Config.Model.Window }),
	wholeColumn("model_window_layers", "", "layers with a sliding window", func(m *spec.Measurement) *int { return &m.Config.Model.WindowLayers }),
	wholeColumn("model_ssm_layers", "", "layers with a state-space mixer instead of attention", func(m *spec.Measurement) *int { return &m.Config.Model.SSMLayers }),
	wholeColumn("model_ssm_heads", "", "heads of a state-space mixer", func(m *spec.Measurement) *int { return &m.Config.Model.SSMHeads }),
	wholeColumn("model_ssm_head_dim", "", "width of such a head", func(m *spec.Measurement) *int { return &m.Config.Model.SSMHeadDim }),
	wholeColumn("model_ssm_state", "", "width of the state of such a head", func(m *spec.Measurement) *int { return &m.Config.Model.SSMState }),
	wholeColumn("model_ssm_groups", "", "groups of such heads that share B and C", func(m *spec.Measurement) *int { return &m.Config.Model.SSMGroups }),
	wholeColumn("model_mlp_layers", "", "layers that are an MLP alone, null = every layer has one", func(m *spec.Measurement) *int { return &m.Config.Model.MLPLayers }),
	flagColumn("model_gated_mlp", "three MLP matrices instead of two", func(m *spec.Measurement) *bool { return &m.Config.Model.GatedMLP }),
	flagColumn("model_tied_embeddings", "input and output embedding shared", func(m *spec.Measurement) *bool { return &m.Config.Model.TiedEmbeddings }),
	wholeColumn("model_experts", "", "routed experts per MoE layer", func(m *spec.Measurement) *int { return &m.Config.Model.Experts }),
	wholeColumn("model_experts_per_token", "", "experts a token is routed to", func(m *spec.Measurement) *int { return &m.Config.Model.ExpertsPerToken }),
	wholeColumn("model_expert_ffn", "", "inner width of an expert", func(m *spec.Measurement) *int { return &m.Config.Model.ExpertFFN }),
	wholeColumn("model_shared_experts", "", "experts every token visits", func(m *spec.Measurement) *int { return &m.Config.Model.SharedExperts }),
	wholeColumn("model_dense_layers", "", "layers with a dense MLP in an MoE model, the first ones without model_moe_every", func(m *spec.Measurement) *int { return &m.Config.Model.DenseLayers }),
	wholeColumn("model_moe_every", "", "every n-th layer has experts, null = all but the first model_dense_layers", func(m *spec.Measurement) *int { return &m.Config.Model.MoEEvery }),
	wholeColumn("model_expert_hidden", "", "width to which tokens are projected before routed experts, null = model_hidden", func(m *spec.Measurement) *int { return &m.Config.Model.ExpertHidden }),
	wholeColumn("model_mtp_layers", "", "modules for multi-token prediction", func(m *spec.Measurement) *int { return &m.Config.Model.MTPLayers }),
	wholeColumn("model_tower_layers", "", "layers of a vision tower", func(m *spec.Measurement) *int { return &m.Config.Model.Tower.Layers }),
	wholeColumn("model_tower_hidden", "", "hidden width of the tower", func(m *spec.Measurement) *int { return &m.Config.Model.Tower.Hidden }),
	wholeColumn("model_tower_ffn", "", "inner width of its MLP", func(m *spec.Measurement) *int { return &m.Config.Model.Tower.FFN }),
	wholeColumn("model_tower_heads", "", "its attention heads", func(m *spec.Measurement) *int { return &m.Config.Model.Tower.Heads }),
	wholeColumn("model_tower_tokens", "", "its patches per sample", func(m *spec.Measurement) *int { return &m.Config.Model.Tower.Tokens }),
	wholeColumn("model_tower_projector", "", "parameters of its patch embedding and projector", func(m *spec.Measurement) *int { return &m.Config.Model.Tower.Projector }),
	flagColumn("model_tower_gated_mlp", "three matrices in its MLP instead of two", func(m *spec.Measurement) *bool { return &m.Config.Model.Tower.GatedMLP }),
	wholeColumn("model_packed", "tokens", "mean length of the documents that are packed into a sample, null = one document", func(m *spec.Measurement) *int { return &m.Config.Model.Packed }),
	adapterColumn(),
	wholeColumn("model_node_limit", "", "nodes on which the experts of a token are at most, null = any number", func(m *spec.Measurement) *int { return &m.Config.Model.NodeLimit }),
	numberColumn("model_imbalance", "", "tokens that the experts of the busiest device receive, over the mean, null = 1", func(m *spec.Measurement) *float64 { return &m.Config.Model.Imbalance }),
	numberColumn("model_param_count", "", "published parameter count", func(m *spec.Measurement) *float64 { return &m.Config.Model.ParamCount }),
	numberColumn("model_active_param_count", "", "published parameter count per token", func(m *spec.Measurement) *float64 { return &m.Config.Model.ActiveParamCount }),
	numberColumn("model_flops_per_sample", "FLOP", "one forward pass of one sample, opaque models", func(m *spec.Measurement) *float64 { return &m.Config.Model.FLOPsPerSample }),

	wholeColumn("seq_len", "tokens", "sample length, null = model_seq_len", func(m *spec.Measurement) *int { return &m.Config.SeqLen }),
	required(wholeColumn("dp", "", "data parallel degree; in this and all degrees 0 or null is 1", func(m *spec.Measurement) *int { return &m.Config.Plan.DP })),
	required(wholeColumn("tp", "", "tensor parallel degree", func(m *spec.Measurement) *int { return &m.Config.Plan.TP })),
	required(wholeColumn("pp", "", "pipeline parallel degree", func(m *spec.Measurement) *int { return &m.Config.Plan.PP })),
	wholeColumn("cp", "", "context parallel degree", func(m *spec.Measurement) *int { return &m.Config.Plan.CP }),
	wholeColumn("ep", "", "expert parallel degree", func(m *spec.Measurement) *int { return &m.Config.Plan.EP }),
	wholeColumn("virtual_stages", "", "model chunks per pipeline stage", func(m *spec.Measurement) *int { return &m.Config.Plan.VirtualStages }),
	textColumn("schedule", "of the pipeline: gpipe, zb-h1, zb-h2, zb-v or dualpipe-v; null = 1f1b, interleaved with virtual_stages", func(m *spec.Measurement) *spec.Schedule { return &m.Config.Plan.Schedule }),
	wholeColumn("param_servers", "", "parameter servers, which use no devices; null = the replicas all-reduce gradients", func(m *spec.Measurement) *int { return &m.Config.Plan.ParamServers }),
	flagColumn("async", "replicas update the parameter servers without waiting for each other", func(m *spec.Measurement) *bool { return &m.Config.Plan.Async }),
	required(wholeColumn("micro_batch", "samples", "samples per forward pass per replica", func(m *spec.Measurement) *int { return &m.Config.Plan.MicroBatch })),
	required(wholeColumn("accum_steps", "", "micro-batches per optimizer step", func(m *spec.Measurement) *int { return &m.Config.Plan.AccumSteps })),
	wholeColumn("zero", "", "ZeRO stage, null = 0", func(m *spec.Measurement) *int { return &m.Config.Plan.ZeRO }),
	wholeColumn("shard", "", "devices over which ZeRO shards, replicated over the others; null = all of dp x cp", func(m *spec.Measurement) *int { return &m.Config.Plan.Shard }),
	textColumn("offload", "none, optimizer or params; null = none", func(m *spec.Measurement) *spec.Offload { return &m.Config.Plan.Offload }),
	textColumn("recompute", "none, selective or full; null = none", func(m *spec.Measurement) *spec.Recompute { return &m.Config.Plan.Recompute }),
	flagColumn("sequence_parallel", "Megatron sequence parallelism", func(m *spec.Measurement) *bool { return &m.Config.Plan.SequenceParallel }),
	textColumn("precision", "fp32, tf32, fp16, bf16, fp8 or fp4; null = not recorded", func(m *spec.Measurement) *spec.Precision { return &m.Config.Plan.Precision }),

	required(textColumn("accelerator", "name of the device type", func(m *spec.Measurement) *string { return &m.Config.Accelerator.Name })),
	textColumn("accelerator_vendor", "", func(m *spec.Measurement) *string { return &m.Config.Accelerator.Vendor }),
	textColumn("accelerator_arch", "", func(m *spec.Measurement) *string { return &m.Config.Accelerator.Arch }),
	numberColumn("accelerator_fp32_flops", "FLOP/s", "dense peak rate", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.FP32 }),
	numberColumn("accelerator_tf32_flops", "FLOP/s", "dense peak rate", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.TF32 }),
	numberColumn("accelerator_fp16_flops", "FLOP/s", "dense peak rate", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.FP16 }),
	numberColumn("accelerator_bf16_flops", "FLOP/s", "dense peak rate", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.BF16 }),
	numberColumn("accelerator_fp8_flops", "FLOP/s", "dense peak rate", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.FP8 }),
	numberColumn("accelerator_fp4_flops", "FLOP/s", "dense peak rate", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.FP4 }),
	numberColumn("accelerator_mem_bytes", "bytes", "device memory", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.MemBytes }),
	numberColumn("accelerator_mem_bps", "bytes/s", "device memory bandwidth", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.MemBps }),
	numberColumn("accelerator_scale_up_bps", "bytes/s", "NVLink or alike, one direction per device", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.ScaleUpBps }),
	numberColumn("accelerator_host_bps", "bytes/s", "PCIe, one direction per device", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.HostBps }),
	numberColumn("accelerator_watts", "W", "board power limit", func(m *spec.Measurement) *float64 { return &m.Config.Accelerator.Watts }),

	textColumn("devices", "devices on each node, most first, as 8+8", func(m *spec.Measurement) *string { return &m.Config.Shape.Devices }),
	wholeColumn("cpus", "threads", "CPU threads in all", func(m *spec.Measurement) *int { return &m.Config.Shape.CPUs }),
	numberColumn("host_bytes", "bytes", "host memory in all", func(m *spec.Measurement) *float64 { return &m.Config.Shape.HostBytes }),
	numberColumn("link_intra_bps", "bytes/s", "device to device inside a node, per device", func(m *spec.Measurement) *float64 { return &m.Config.Link.IntraBps }),
	numberColumn("link_inter_bps", "bytes/s", "out of one node", func(m *spec.Measurement) *float64 { return &m.Config.Link.InterBps }),
	numberColumn("link_host_bps", "bytes/s", "device to host memory, per device", func(m *spec.Measurement) *float64 { return &m.Config.Link.HostBps }),
	wholeColumn("alone_stage", "", "the row is of one rank of this pipeline stage, from 1, without the others: step_sec and peak_bytes are its own work, without communication; null = a whole step", func(m *spec.Measurement) *int { return &m.Config.AloneStage }),
	textColumn("framework", "training stack", func(m *spec.Measurement) *string { return &m.Config.Framework }),

	required(textColumn("outcome", "ok, oom, timeout or failed", func(m *spec.Measurement) *spec.Outcome { return &m.Outcome })),
	textColumn("reason", "why it is not ok", func(m *spec.Measurement) *string { return &m.Reason }),
	doubtColumn("doubt", "rule of the source by which an ok row is neither fitted nor scored; quarantined: REASON where the user of the store said so; it begins with alone: for a row of one rank"),
	stepColumn(),
	jsonColumn("phase_sec", "s", "mean time of each phase, a JSON object", func(m *spec.Measurement) *map[string]float64 { return &m.PhaseSec }),
	numberColumn("peak_bytes", "bytes", "device memory, largest over devices", func(m *spec.Measurement) *float64 { return &m.PeakBytes }),
	required(textColumn("source", "data set the row is from", func(m *spec.Measurement) *string { return &m.Source })),
	textColumn("origin", "where in it", func(m *spec.Measurement) *string { return &m.Origin }),
	atColumn(),
	jsonColumn("env", "", "other facts as recorded, a JSON object of texts; wrong_config says why the row ran another configuration than it records", func(m *spec.Measurement) *map[string]string { return &m.Env }),
})

// part is the part of a measurement that a column is from.
type part int

const (
	rowPart part = iota // any
	modelPart
	acceleratorPart
	settingPart // what most rows of a source have in common
	numParts
)

// same reports whether two rows have an equal part.
func (p part) same(a, b *spec.Measurement) bool {
	x, y := &a.Config, &b.Config
	switch p {
	case modelPart:
		return x.Model == y.Model
	case acceleratorPart:
		return x.Accelerator == y.Accelerator
	case settingPart:
		return x.Link == y.Link && x.Framework == y.Framework && x.AloneStage == y.AloneStage &&
			a.Outcome == b.Outcome && a.Reason == b.Reason && a.Doubt == b.Doubt && a.Source == b.Source
	}
	return false
}

func withParts(of []column) []column {
	for i := range of {
		switch {
		case strings.HasPrefix(of[i].name, "model"):
			of[i].part = modelPart
		case strings.HasPrefix(of[i].name, "accelerator"):
			of[i].part = acceleratorPart
		case strings.HasPrefix(of[i].name, "link_"), slices.Contains([]string{"framework", "alone_stage", "outcome", "reason", "doubt", "source"}, of[i].name):
			of[i].part = settingPart
		}
	}
	return of
}

func required(c column) column { c.required = true; return c }

func textColumn[T ~string](name, doc string, at func(*spec.Measurement) *T) column {
	return column{name: name, doc: doc, kind: textKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error { b.addText(string(*at(m)), n); return nil },
		set: func(m *spec.Measurement, c cell) error { *at(m) = T(c.s); return nil }}
}

func wholeColumn(name, unit, doc string, at func(*spec.Measurement) *int) column {
	return column{name: name, unit: unit, doc: doc, kind: wholeKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error { b.addWhole(int64(*at(m)), n); return nil },
		set: func(m *spec.Measurement, c cell) error { *at(m) = int(c.n); return nil }}
}

func numberColumn(name, unit, doc string, at func(*spec.Measurement) *float64) column {
	return column{name: name, unit: unit, doc: doc, kind: numberKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error { b.addNumber(*at(m), n); return nil },
		set: func(m *spec.Measurement, c cell) error { *at(m) = c.f; return nil }}
}

func flagColumn(name, doc string, at func(*spec.Measurement) *bool) column {
	return column{name: name, doc: doc, kind: flagKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error { b.addFlag(*at(m), n); return nil },
		set: func(m *spec.Measurement, c cell) error { *at(m) = c.n != 0; return nil }}
}

func adapterColumn() column {
	return column{name: "model_adapter", doc: "adapter that is trained in place of the weights, such as lora:16; null = none", kind: textKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error {
			if a := m.Config.Model.Adapter; a == (spec.Adapter{}) {
				b.null(n)
			} else {
				b.addText(a.String(), n)
			}
			return nil
		},
		set: func(m *spec.Measurement, c cell) (err error) {
			m.Config.Model.Adapter, err = spec.ParseAdapter(c.s)
			return err
		}}
}

// aloneDoubt begins the doubt of rows of one rank in files, so that readers that do not know alone_stage leave them out.
const aloneDoubt = "alone: not a whole step"

func doubtColumn(name, doc string) column {
	return column{name: name, doc: doc, kind: textKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error {
			text := m.Doubt
			if m.Config.Alone() && text == "" {
				text = aloneDoubt
			} else if m.Config.Alone() {
				text = aloneDoubt + "; " + text
			}
			b.addText(text, n)
			return nil
		},
		set: func(m *spec.Measurement, c cell) error {
			m.Doubt = c.s
			if rest, ok := strings.CutPrefix(c.s, aloneDoubt); ok {
				m.Doubt = strings.TrimPrefix(rest, "; ")
			}
			return nil
		}}
}

func stepColumn() column {
	return column{name: "step_sec", unit: "s", doc: "wall time of each step, one value where only a mean is known", kind: listKind, required: true,
		add: func(b *columnBuilder, m *spec.Measurement, _ int) error { b.addList(m.StepSec); return nil },
		set: func(m *spec.Measurement, c cell) error {
			m.StepSec = nil
			if len(c.fs) > 0 {
				m.StepSec = append(m.StepSec, c.fs...)
			}
			return nil
		}}
}

func atColumn() column {
	return column{name: "at", unit: "ns since 1970, UTC", doc: "when it was taken", kind: timeKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error {
			if m.At.IsZero() {
				b.null(n)
			} else {
				b.addInt(m.At.UnixNano(), n)
			}
			return nil
		},
		set: func(m *spec.Measurement, c cell) error {
			m.At = time.Time{}
			if !c.null {
				m.At = time.Unix(0, c.n).UTC()
			}
			return nil
		}}
}

func jsonColumn[V any](name, unit, doc string, at func(*spec.Measurement) *map[string]V) column {
	return column{name: name, unit: unit, doc: doc, kind: textKind,
		add: func(b *columnBuilder, m *spec.Measurement, n int) error {
			v := *at(m)
			if len(v) == 0 {
				b.null(n)
				return nil
			}
			text, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("column %q: %w", name, err)
			}
			b.addText(string(text), n)
			return nil
		},
		set: func(m *spec.Measurement, c cell) error {
			*at(m) = nil
			if c.null || c.s == "" {
				return nil
			}
			if err := json.Unmarshal([]byte(c.s), at(m)); err != nil {
				return fmt.Errorf("%q: %w", c.s, err)
			}
			return nil
		}}
}

// fill sets the field of column c in m. Whole numbers may be stored as floats, with NaN for null, since some
// tools have no other null.
func (c column) fill(m *spec.Measurement, v cell, float bool) error {
	if float && math.IsNaN(v.f) && !c.required {
		v = cell{null: true}
	}
	switch {
	case v.null && c.required && c.kind != listKind:
		return fmt.Errorf("column %q is null", c.name)
	case v.null:
		v = cell{null: true}
	case c.kind == wholeKind && float:
		v.n = int64(v.f)
		if float64(v.n) != v.f {
			return fmt.Errorf("column %q: %g is not a whole number", c.name, v.f)
		}
	case c.kind == numberKind && !float:
		v.f = float64(v.n)
	}
	if err := c.set(m, v); err != nil {
		return fmt.Errorf("column %q: %w", c.name, err)
	}
	return nil
}
