package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Parts are the properties of a training stack. It is comparable. Every field has one of the values that Kinds
// lists.
type Parts struct {
	Attention string `json:"attention"`
	Launch    string `json:"launch"`
	Adapters  string `json:"adapters"`
	Loss      string `json:"loss"`
	Weights   string `json:"weights"`
	Gradients string `json:"gradients"`
	Reduce    string `json:"reduce"`
	Overlap   string `json:"overlap"`
	Optimizer string `json:"optimizer"`
	ZeRO      string `json:"zero"`
	TP        string `json:"tp"`
	Sequence  string `json:"sequence"`
	CP        string `json:"cp"`
	EP        string `json:"ep"`
	Dispatch  string `json:"dispatch"`
	Routing   string `json:"routing"`
	Sends     string `json:"sends"`
	Stages    string `json:"stages"`
	Recompute string `json:"recompute"` // several values are joined by +

	Activations string `json:"activations"`

	Gathered string `json:"gathered"`
	Outputs  string `json:"outputs"`
}

// Values of Parts.
const (
	Unfused = "unfused"
	Torch   = "torch"
	Flash   = "flash"
	Flash3  = "flash-3"
	CuDNN   = "cudnn"

	Eager    = "eager"
	Fused    = "fused"
	Compiled = "compiled"
	Graphs   = "graphs"
	Blocking = "blocking"
	Dropout  = "dropout"

	Plain    = "plain"
	Parallel = "parallel"
	Chunked  = "chunked"

	FP32     = "fp32"
	Half     = "16bit"
	Autocast = "autocast"
	FP8      = "fp8"
	FP8Once  = "fp8-once"

	None     = "none"
	Backward = "backward"
	Async    = "async"

	Adam      = "adam"
	Adam8     = "adam-8bit"
	AdamBF16  = "adam-bf16"
	Adafactor = "adafactor"
	Muon      = "muon"
	SGD       = "sgd"

	Buckets   = "buckets"
	FSDP      = "fsdp"
	HSDP      = "hsdp"
	DeepSpeed = "deepspeed"

	Plan   = "plan"
	Always = "always"

	AllToAll = "all-to-all"
	PerNode  = "per-node"

	Ring = "ring"
	A2A  = "a2a"

	After = "after"
	Ahead = "ahead"

	Even   = "even"
	Middle = "middle"

	Offloaded = "offloaded"
	Experts   = "experts"

	Core      = "core"
	Operators = "operators"
	Blocks    = "blocks"

	Again = "again"
	Kept  = "kept"
	Freed = "freed"
)

// Kind is one part of a stack, with the values that it can have.
type Kind struct {
	Name, Doc string
	Values    []Value
	at        func(*Parts) *string
}

// Value is one value of a Kind.
type Value struct {
	Name, Doc string
	also      string // another name
	joins     bool   // a part may have several such values, joined by +
}

// Of returns the value of the part in p.
func (k *Kind) Of(p *Parts) string { return *k.at(p) }

// Kinds returns every part of a stack.
func Kinds() []Kind { return kinds }

var kinds = []Kind{
	{"attention", "kernel of the attention core", []Value{
		{Name: Unfused, Doc: "scores are written to memory"},
		{Name: Torch, Doc: "PyTorch's scaled_dot_product_attention"},
		{Name: Flash, Doc: "FlashAttention 1 and 2 (Dao 2022, 2023)"},
		{Name: Flash3, Doc: "FlashAttention 3 (Shah et al. 2024), on Hopper"},
		{Name: CuDNN, Doc: "cuDNN's fused attention, as Transformer Engine selects it from Hopper on"},
	}, func(p *Parts) *string { return &p.Attention }},
	{"launch", "how the host starts kernels", []Value{
		{Name: Eager, Doc: "one framework call per operator"},
		{Name: Fused, Doc: "hand-written kernels for bias, dropout, GELU and norms"},
		{Name: Compiled, Doc: "a compiler fuses operators"},
		{Name: Graphs, Doc: "captured CUDA graphs, or one call per block"},
		{Name: Blocking, Doc: "hand-written kernels, each waited for (CUDA_LAUNCH_BLOCKING=1)"},
	}, func(p *Parts) *string { return &p.Launch }},
	{"adapters", "what is done to the inputs of adapters", []Value{
		{Name: None, Doc: "nothing"},
		{Name: Dropout, Doc: "dropout, as MLPerf Training has it"},
	}, func(p *Parts) *string { return &p.Adapters }},
	{"loss", "cross entropy", []Value{
		{Name: Plain, Doc: "PyTorch's: log-softmax and gradients in fp32"},
		{Name: Parallel, Doc: "Megatron's, on logits split over TP: a 16-bit and an fp32 copy, and exponentials"},
		{Name: Fused, Doc: "one kernel that overwrites the logits"},
		{Name: Compiled, Doc: "compiled: no fp32 copy of the logits"},
		{Name: Chunked, Doc: "in chunks of tokens, so that all logits never exist (Liger, cut cross entropy)"},
	}, func(p *Parts) *string { return &p.Loss }},
	{"weights", "weights that kernels read", []Value{
		{Name: Half, Doc: "stored in 16 bits, next to fp32 masters"},
		{Name: Autocast, Doc: "fp32, cast to 16 bits on use (torch.autocast)"},
		{Name: FP8, Doc: "under fp8, the matrices of layers stored in 8 bits only, transposed too where a format or device needs both (fp8_model_init, fp8_param_gather)"},
		{Name: FP8Once, Doc: "the same, transposed on use (disable_parameter_transpose_cache)"},
	}, func(p *Parts) *string { return &p.Weights }},
	{"gradients", "format in which gradients are accumulated", []Value{
		{Name: FP32, Doc: "fp32"},
		{Name: Half, Doc: "that of the weights"},
	}, func(p *Parts) *string { return &p.Gradients }},
	{"reduce", "format in which gradients are reduced between devices", []Value{
		{Name: FP32, Doc: "fp32"},
		{Name: Half, Doc: "that of the weights"},
	}, func(p *Parts) *string { return &p.Reduce }},
	{"overlap", "what hides the gradient traffic", []Value{
		{Name: None, Doc: "nothing: it follows the backward pass"},
		{Name: Backward, Doc: "the backward pass of the last micro-batch"},
	}, func(p *Parts) *string { return &p.Overlap }},
	{"optimizer", "optimizer and the format of its state", []Value{
		{Name: Adam, Doc: "fp32 masters and two fp32 moments: 12 bytes per parameter"},
		{Name: AdamBF16, Doc: "fp32 masters and two bf16 moments: 8 bytes"},
		{Name: Adam8, Doc: "fp32 masters and two 8-bit moments: 6 bytes"},
		{Name: Muon, Doc: "fp32 masters and one fp32 momentum: 8 bytes"},
		{Name: Adafactor, Doc: "fp32 masters, factored second moments: 4 bytes"},
		{Name: SGD, Doc: "fp32 masters and no state: 4 bytes"},
	}, func(p *Parts) *string { return &p.Optimizer }},
	{"zero", "implementation of sharded training state", []Value{
		{Name: Buckets, Doc: "Megatron's distributed optimizer; other stages as fsdp"},
		{Name: FSDP, Doc: "PyTorch's FSDP: fp32 shards are the masters"},
		{Name: HSDP, Doc: "FSDP that shards inside a node and replicates across nodes"},
		{Name: DeepSpeed, Doc: "DeepSpeed's stages, with flat buckets of 5e8 elements"},
	}, func(p *Parts) *string { return &p.ZeRO }},
	{"tp", "what hides tensor parallel traffic", []Value{
		{Name: None, Doc: "nothing"},
		{Name: Async, Doc: "independent kernels on another stream"},
		{Name: Fused, Doc: "pieces inside the multiplications (Transformer Engine's userbuffers)"},
	}, func(p *Parts) *string { return &p.TP }},
	{"sequence", "sequence parallelism next to tensor parallelism", []Value{
		{Name: Plan, Doc: "as the plan says"},
		{Name: Always, Doc: "always"},
	}, func(p *Parts) *string { return &p.Sequence }},
	{"cp", "what context parallel ranks exchange", []Value{
		{Name: Ring, Doc: "keys and values, from rank to rank or gathered (Liu et al. 2023)"},
		{Name: A2A, Doc: "heads for tokens, around the attention core (Jacobs et al., DeepSpeed-Ulysses, 2023)"},
	}, func(p *Parts) *string { return &p.CP }},
	{"ep", "what hides the all-to-alls of experts", []Value{
		{Name: None, Doc: "nothing"},
		{Name: Async, Doc: "shared experts and other streams"},
		{Name: Backward, Doc: "the backward pass of another micro-batch (DualPipe, 1F1B overlap)"},
	}, func(p *Parts) *string { return &p.EP }},
	{"dispatch", "how tokens are sent to experts", []Value{
		{Name: AllToAll, Doc: "a copy for each expert"},
		{Name: PerNode, Doc: "one copy for each node, forwarded to each device with such an expert (DeepEP, HybridEP)"},
	}, func(p *Parts) *string { return &p.Dispatch }},
	{"routing", "how the host starts a layer with routed experts", []Value{
		{Name: Plain, Doc: "operator by operator, with waits for the counts of tokens"},
		{Name: Fused, Doc: "fused router and permutation"},
		{Name: Graphs, Doc: "captured CUDA graphs"},
	}, func(p *Parts) *string { return &p.Routing }},
	{"sends", "when stages send to each other", []Value{
		{Name: After, Doc: "between chunks"},
		{Name: Ahead, Doc: "while the next chunk of an interleaved pipeline computes"},
	}, func(p *Parts) *string { return &p.Sends }},
	{"stages", "how layers are spread over pipeline stages", []Value{
		{Name: Even, Doc: "evenly; those that remain are before the last stage"},
		{Name: Middle, Doc: "fewer on the last of four or more stages, which has the vocabulary head, and one more on those before it"},
	}, func(p *Parts) *string { return &p.Stages }},
	{"recompute", "what selective recomputation repeats", []Value{
		{Name: Core, Doc: "the attention core; this and the modules below, as in Megatron Core, can be joined by +", also: "core_attn", joins: true},
		{Name: moduleMLP, Doc: "dense MLPs", joins: true},
		{Name: moduleMoE, Doc: "layers of experts, with their dispatch", joins: true},
		{Name: moduleMoEAct, Doc: "the activation function of routed experts", joins: true},
		{Name: moduleNorms, Doc: "norms that are not fused with the next multiplication", joins: true},
		{Name: moduleUpProj, Doc: "the projections of latent attention from its compressed widths", joins: true},
		{Name: moduleShared, Doc: "shared experts", joins: true},
		{Name: Operators, Doc: "every other multiplication and all that is cheap"},
		{Name: Blocks, Doc: "every other block"},
	}, func(p *Parts) *string { return &p.Recompute }},
	{"activations", "where activations are until the backward pass", []Value{
		{Name: Kept, Doc: "on the device"},
		{Name: Offloaded, Doc: "on the host, but for those of two layers; with full recomputation only the inputs of layers (Megatron Core's fine-grained activation offloading, offloaded checkpoints)"},
		{Name: Experts, Doc: "likewise for what routed experts keep, the rest on the device"},
	}, func(p *Parts) *string { return &p.Activations }},
	{"gathered", "inputs of split matrices under sequence parallelism", []Value{
		{Name: Again, Doc: "gathered again in the backward pass"},
		{Name: Kept, Doc: "kept in gathered form"},
	}, func(p *Parts) *string { return &p.Gathered }},
	{"outputs", "the output of a pipeline stage until the backward pass", []Value{
		{Name: Freed, Doc: "freed once sent"},
		{Name: Kept, Doc: "kept"},
	}, func(p *Parts) *string { return &p.Outputs }},
}

// MomentBytes returns the bytes per parameter of what the optimizer keeps besides fp32 masters.
func (p *Parts) MomentBytes() float64 {
	switch p.Optimizer {
	case Adam:
		return 8
	case AdamBF16, Muon:
		return 4
	case Adam8:
		return 2
	}
	return 0 // Adafactor, SGD
}

// String lists all parts, "attention=flash launch=eager ...", in the order of Kinds.
func (p Parts) String() string {
	var out []string
	for i := range kinds {
		out = append(out, kinds[i].Name+"="+kinds[i].Of(&p))
	}
	return strings.Join(out, " ")
}

// Changes lists the parts in which p differs from before, in the form and order of String.
func (p Parts) Changes(before Parts) string {
	var out []string
	for i := range kinds {
		if value := kinds[i].Of(&p); value != kinds[i].Of(&before) {
			out = append(out, kinds[i].Name+"="+value)
		}
	}
	return strings.Join(out, " ")
}

// of returns the value of the part with that name.
func (p *Parts) of(name string) string {
	for i := range kinds {
		if kinds[i].Name == name {
			return kinds[i].Of(p)
		}
	}
	return ""
}

// kindNames returns the names of all parts.
func kindNames() []string {
	var out []string
	for i := range kinds {
		out = append(out, kinds[i].Name)
	}
	return out
}

// PartError reports a part that does not exist, or a value that it cannot have.
type PartError struct {
	Part, Value string
	Want        []string // known parts, or the values of a known part
	Near        string   // the nearest of Want, "" if none is near
}

func (e *PartError) Error() string {
	if slices.Contains(kindNames(), e.Part) {
		return fmt.Sprintf("stack: %s=%q: want one of %s%s", e.Part, e.Value, strings.Join(e.Want, ", "), e.hint())
	}
	return "stack: " + e.why()
}

// why is the text of e without the value of the part.
func (e *PartError) why() string {
	if slices.Contains(kindNames(), e.Part) {
		return fmt.Sprintf("want %s to be one of %s%s", e.Part, strings.Join(e.Want, ", "), e.hint())
	}
	return fmt.Sprintf("part %q is not one of %s%s", e.Part, strings.Join(e.Want, ", "), e.hint())
}

func (e *PartError) hint() string {
	if e.Near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", e.Near)
}

// canonical returns a value, or several joined by +, in the order of k.Values. ok is false if it is none of k.
func (k *Kind) canonical(value string) (text string, ok bool) {
	parts := strings.Split(value, "+")
	var out []string
	for _, v := range k.Values {
		n := len(parts)
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == v.Name || v.also != "" && p == v.also })
		switch {
		case len(parts) == n:
		case !v.joins && value != v.Name:
			return "", false
		default:
			out = append(out, v.Name)
		}
	}
	return strings.Join(out, "+"), len(parts) == 0
}

// set changes one part of p. The error is a *PartError.
func (p *Parts) set(part, value string) error {
	for i := range kinds {
		k := &kinds[i]
		if k.Name != part {
			continue
		}
		var names []string
		if canonical, ok := k.canonical(value); ok {
			*k.at(p) = canonical
			return nil
		}
		for _, v := range k.Values {
			names = append(names, v.Name)
		}
		return &PartError{Part: part, Value: value, Want: names, Near: nearest(value, names)}
	}
	return &PartError{Part: part, Want: kindNames(), Near: nearest(part, kindNames())}
}

// nearest returns the name that a misspelt one is most similar to, "" if more than a third of its letters differ.
func nearest(name string, all []string) string {
	near := named.Nearest(name, all, 1)
	if len(near) == 0 || 3*named.Dissimilarity(name, near[0]) > 4*(len(named.Fold(name))+1) { // 4 for each letter
		return ""
	}
	return near[0]
}
