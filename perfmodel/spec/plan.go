package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Recompute is the part of the forward pass that the backward pass computes again to save activation memory
// ("activation checkpointing").
type Recompute string

const (
	RecomputeNone      Recompute = "none"
	RecomputeSelective Recompute = "selective" // the attention core only (Korthikanti et al. 2022)
	RecomputeFull      Recompute = "full"      // every layer from its input
)

// Offload is the part of the training state that is kept in host memory.
type Offload string

const (
	OffloadNone      Offload = "none"
	OffloadOptimizer Offload = "optimizer" // ZeRO-Offload: optimizer states and step on the CPU
	OffloadParams    Offload = "params"    // ZeRO-Infinity: parameters too
)

// Schedule is the order in which a pipeline's stages run the forward and
// backward passes of micro-batches.
type Schedule string

const (
	// ScheduleDefault is one forward, one backward, interleaved with virtual stages (Narayanan et al., SC 2021,
	// section 2.2).
	ScheduleDefault Schedule = ""
	Schedule1F1B    Schedule = "1f1b"  // name of the default; Normal turns it into ScheduleDefault
	ScheduleGPipe   Schedule = "gpipe" // all forward passes, then all backward ones (Huang et al., NeurIPS 2019)

	// Zero-bubble schedules split the backward pass in two: one part for the gradients of inputs (B) and one
	// for the gradients of weights (W). The second part fills the pipeline bubble (Qi et al., "Zero Bubble
	// Pipeline Parallelism", ICLR 2024).
	ScheduleZBH1 Schedule = "zb-h1" // with the memory of 1F1B (section 2.3)
	ScheduleZBH2 Schedule = "zb-h2" // with twice that memory and almost no bubble (section 2.3)
	ScheduleZBV  Schedule = "zb-v"  // two chunks per stage in V order: the first stage holds the first and the last layers (section 6)

	// ScheduleDualPipeV has the chunks of ScheduleZBV, and overlaps the forward pass of one micro-batch with the backward pass
	// of another (DualPipeV, github.com/deepseek-ai/DualPipe, from DeepSeek-V3, 2024, section 3.2.1).
	ScheduleDualPipeV Schedule = "dualpipe-v"
)

// Schedules lists the named schedules, the default first.
func Schedules() []Schedule {
	return []Schedule{Schedule1F1B, ScheduleGPipe, ScheduleZBH1, ScheduleZBH2, ScheduleZBV, ScheduleDualPipeV}
}

// ZeroBubble reports whether s splits the backward pass.
func (s Schedule) ZeroBubble() bool { return s == ScheduleZBH1 || s == ScheduleZBH2 || s.VShaped() }

// VShaped reports whether each stage has two chunks, so that the first stage holds the first and the last layers.
func (s Schedule) VShaped() bool { return s == ScheduleZBV || s == ScheduleDualPipeV }

// Plan is an execution plan: how one training step is split over devices and memory. A degree or count of 0
// means 1, except for ParamServers and Shard; an empty mode means none. Normal writes these defaults out.
// DP·TP·PP·CP is the number of devices.
type Plan struct {
	DP int `json:"dp"`           // data parallel degree: replicas
	TP int `json:"tp"`           // tensor parallel degree
	PP int `json:"pp"`           // pipeline parallel degree: stages
	CP int `json:"cp,omitempty"` // context parallel degree
	EP int `json:"ep,omitempty"` // expert parallel degree, divides DP·CP·TP

	VirtualStages int      `json:"vp,omitempty"`       // model chunks per pipeline stage (interleaved 1F1B)
	Schedule      Schedule `json:"schedule,omitempty"` // of the pipeline, "" = 1F1B

	// ParamServers is the number of parameter servers, to which replicas send gradients and from which they
	// fetch weights (Li et al., OSDI 2014). They run on CPUs and use no devices. 0 = none: the replicas
	// all-reduce gradients.
	ParamServers int `json:"ps,omitempty"`
	// Async lets each replica update the parameter servers without waiting for the others. One step then is as
	// many updates as there are replicas, so that its global batch equals that of a synchronous step.
	Async bool `json:"async,omitempty"`

	MicroBatch int `json:"mb"` // samples per forward pass per replica
	AccumSteps int `json:"ga"` // micro-batches per optimizer step

	ZeRO int `json:"zero,omitempty"` // 0..3 (Rajbhandari et al. 2020)
	// Shard is the number of devices, out of DP·CP, over which ZeRO shards states. Each of the DP·CP/Shard
	// groups holds a full copy (Zhang et al., "MiCS", VLDB 2022; HYBRID_SHARD of PyTorch FSDP, Zhao et al.,
	// VLDB 2023). The devices of a group are neighbours. 0 = all DP·CP devices.
	Shard            int       `json:"shard,omitempty"`
	Offload          Offload   `json:"offload,omitempty"`
	Recompute        Recompute `json:"recompute,omitempty"`
	SequenceParallel bool      `json:"sp,omitempty"` // Megatron sequence parallelism, with TP
	Precision        Precision `json:"precision,omitempty"`
}

// Normal returns p with every default written out: degrees and counts at least 1, modes named. Precision stays
// as it is. Two plans with the same meaning have the same normal form.
func (p Plan) Normal() Plan {
	for _, f := range []*int{&p.DP, &p.TP, &p.PP, &p.CP, &p.EP, &p.VirtualStages, &p.MicroBatch, &p.AccumSteps} {
		if *f == 0 {
			*f = 1
		}
	}
	if p.Offload == "" {
		p.Offload = OffloadNone
	}
	if p.Recompute == "" {
		p.Recompute = RecomputeNone
	}
	if p.Schedule == Schedule1F1B {
		p.Schedule = ScheduleDefault
	}
	if p.Shard == p.DP*p.CP {
		p.Shard = 0
	}
	return p
}

// Devices returns DP·TP·PP·CP.
func (p Plan) Devices() int {
	return max(p.DP, 1) * max(p.TP, 1) * max(p.PP, 1) * max(p.CP, 1)
}

// Shards returns the number of devices over which ZeRO shards states: Shard, or DP·CP if that is 0.
func (p *Plan) Shards() int {
	if p.Shard > 0 {
		return p.Shard
	}
	return max(p.DP, 1) * max(p.CP, 1)
}

// Chunks returns the number of model chunks of each pipeline stage: two if the schedule is V-shaped, else VirtualStages.
func (p *Plan) Chunks() int {
	if p.Schedule.VShaped() {
		return 2
	}
	return max(p.VirtualStages, 1)
}

// StageLayers returns the number of layers of a pipeline stage, numbered from 0. If PP does not divide the
// layers, each stage gets the quotient, rounded down, and the stages just before the last get one of the
// remaining layers each. So the last stage, with the vocabulary head, has fewer layers, and next the first,
// with the embedding and the most micro-batches in flight. If PP divides layers + 2, embedding and head count
// as a layer each, as in BLOOM (BigScience, 2022) and Llama 3 405B (2024, section 3.3.2).
//
// In a stack with more layers in the middle (stack.Middle) four or more stages that divide eight or more layers are not
// even: the last min(PP-1, layers/PP) get one more each, and the very last what is left (_init_placement_group in LiBai's
// libai/utils/distributed.py).
func (p *Plan) StageLayers(layers, stage int, middle bool) int {
	pp := max(p.PP, 1)
	share, over := layers/pp, layers%pp
	if middle && pp >= 4 && layers >= 8 && over == 0 {
		moved := min(pp-1, share)
		switch {
		case stage == pp-1:
			return share + 1 - moved
		case stage >= pp-moved:
			return share + 1
		}
		return share
	}
	if over > 0 && stage >= pp-1-over && stage < pp-1 {
		share++
	}
	return share
}

// ChunkLayers returns the number of layers of a chunk of a pipeline stage, both numbered from 0. The stage's
// layers are spread evenly. Remaining layers go to its last chunks, but on the last stage to its first chunks.
// So the chunks with the embedding and the vocabulary head have fewer layers.
func (p *Plan) ChunkLayers(layers, stage, chunk int) int {
	n, v := p.StageLayers(layers, stage, false), p.Chunks()
	share, over := n/v, n%v
	from := v - over
	if stage == max(p.PP, 1)-1 {
		from = 0
	}
	if chunk >= from && chunk < from+over {
		share++
	}
	return share
}

// GlobalBatch returns the samples of one optimizer step, DP x MicroBatch x
// AccumSteps.
func (p Plan) GlobalBatch() int {
	return max(p.DP, 1) * max(p.MicroBatch, 1) * max(p.AccumSteps, 1)
}

// String writes p in the form that ParsePlan reads, such as "dp=2,tp=4,pp=1,mb=2,ga=8,zero=1,recompute=full".
// DP, TP, PP, micro-batch and accumulation are always present, other fields only if they differ from the
// default.
func (p Plan) String() string {
	p = p.Normal()
	b := make([]byte, 0, 64)
	num := func(k string, v int) {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, k...)
		b = append(b, '=')
		b = strconv.AppendInt(b, int64(v), 10)
	}
	word := func(k, v string) { b = append(append(append(append(b, ','), k...), '='), v...) }
	num("dp", p.DP)
	num("tp", p.TP)
	num("pp", p.PP)
	if p.CP > 1 {
		num("cp", p.CP)
	}
	if p.EP > 1 {
		num("ep", p.EP)
	}
	if p.VirtualStages > 1 {
		num("vp", p.VirtualStages)
	}
	if p.Schedule != ScheduleDefault {
		word("schedule", string(p.Schedule))
	}
	if p.ParamServers != 0 {
		num("ps", p.ParamServers)
	}
	if p.Async {
		num("async", 1)
	}
	num("mb", p.MicroBatch)
	num("ga", p.AccumSteps)
	if p.ZeRO != 0 {
		num("zero", p.ZeRO)
	}
	if p.Shard != 0 {
		num("shard", p.Shard)
	}
	if p.Offload != OffloadNone {
		word("offload", string(p.Offload))
	}
	if p.Recompute != RecomputeNone {
		word("recompute", string(p.Recompute))
	}
	if p.SequenceParallel {
		num("sp", 1)
	}
	if p.Precision != "" {
		word("precision", string(p.Precision))
	}
	return string(b)
}

// ParsePlan reads the form that String writes: comma-separated key=value pairs in any order, each key at most
// once. Absent degrees are 1, absent modes none. It does not apply Check, but it does apply CheckBounds.
func ParsePlan(s string) (Plan, error) {
	var p Plan
	seen := make([]string, 0, 32) // on the stack
	if strings.TrimSpace(s) == "" {
		return p, fmt.Errorf("spec: empty plan, want a form like dp=2,tp=4,pp=1,mb=2,ga=8")
	}
	if words := strings.Fields(s); len(words) > 1 && !strings.Contains(s, ",") && strings.Count(s, "=") == len(words) {
		return p, fmt.Errorf("spec: plan %q: items are separated by commas, not blanks: %s", s, strings.Join(words, ","))
	}
	for item := range strings.SplitSeq(s, ",") {
		k, v, ok := strings.Cut(item, "=")
		k, v = strings.ToLower(strings.TrimSpace(k)), strings.ToLower(strings.TrimSpace(v))
		if !ok || v == "" {
			return Plan{}, fmt.Errorf("spec: plan %q: %q is not key=value", s, item)
		}
		if slices.Contains(seen, k) {
			return Plan{}, fmt.Errorf("spec: plan %q: %s is given twice", s, k)
		}
		seen = append(seen, k)
		if err := p.set(k, v); err != nil {
			return Plan{}, fmt.Errorf("spec: plan %q: %w", s, err)
		}
	}
	p = p.Normal()
	if err := p.CheckBounds(); err != nil {
		return Plan{}, fmt.Errorf("spec: plan %q: %w", s, err)
	}
	return p, nil
}

// Limits within which products of a plan's numbers are exact.
const (
	maxDegree = 1 << 20 // of any degree or count, and of the devices
	maxMicro  = 1 << 26 // samples per micro-batch: recommendation models take millions
	maxBatch  = 1 << 40 // samples per step
)

// CheckBounds returns an error if a degree or count of p is below 1, or so large that products are not exact.
// Rules that depend on the model are in Check.
func (p Plan) CheckBounds() error {
	p = p.Normal()
	low := min(p.DP, p.TP, p.PP, p.CP, p.EP, p.VirtualStages, p.MicroBatch, p.AccumSteps)
	high := max(p.DP, p.TP, p.PP, p.CP, p.EP, p.VirtualStages, p.AccumSteps, p.ParamServers, p.Shard)
	switch {
	case low < 1:
		return fmt.Errorf("plan %s has a degree or count below 1", p)
	case p.ParamServers < 0:
		return fmt.Errorf("plan %s has %d parameter servers, want 0 or more", p, p.ParamServers)
	case p.Shard < 0:
		return fmt.Errorf("plan %s shards over %d devices, want 0 (all) or more", p, p.Shard)
	case high > maxDegree || p.MicroBatch > maxMicro:
		return fmt.Errorf("plan %s has a degree or count above %d, or a micro-batch above %d", p, maxDegree, maxMicro)
	}
	if n := float64(p.DP) * float64(p.TP) * float64(p.PP) * float64(p.CP); n > maxDegree {
		return fmt.Errorf("dp x tp x pp x cp is %.0f devices, want at most %d", n, maxDegree)
	}
	if n := float64(p.DP) * float64(p.MicroBatch) * float64(p.AccumSteps); n > maxBatch {
		return fmt.Errorf("dp x mb x ga is %.0f samples per step, want at most %d", n, maxBatch)
	}
	return nil
}

func (p *Plan) set(k, v string) error {
	if f := p.count(k); f != nil {
		least, most := 1, maxDegree
		switch k {
		case "ps", "shard":
			least = 0
		case "mb":
			most = maxMicro
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%s=%s is not a whole number in %d..%d", k, v, least, most)
		}
		*f = n
		return nil
	}
	switch k {
	case "zero":
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 3 {
			return fmt.Errorf("zero=%s is not 0, 1, 2 or 3", v)
		}
		p.ZeRO = n
	case "offload":
		return oneOf(k, v, &p.Offload, OffloadNone, OffloadOptimizer, OffloadParams)
	case "recompute":
		return oneOf(k, v, &p.Recompute, RecomputeNone, RecomputeSelective, RecomputeFull)
	case "schedule":
		return oneOf(k, v, &p.Schedule, Schedules()...)
	case "precision":
		return oneOf(k, v, &p.Precision, Precisions()...)
	case "sp":
		return flag(k, v, &p.SequenceParallel)
	case "async":
		return flag(k, v, &p.Async)
	default:
		return fmt.Errorf("unknown key %q, want one of dp tp pp cp ep vp schedule ps async mb ga zero shard offload recompute sp precision", k)
	}
	return nil
}

// count returns a pointer to the degree or count with key k, nil for other keys.
func (p *Plan) count(k string) *int {
	switch k {
	case "dp":
		return &p.DP
	case "tp":
		return &p.TP
	case "pp":
		return &p.PP
	case "cp":
		return &p.CP
	case "ep":
		return &p.EP
	case "vp":
		return &p.VirtualStages
	case "ps":
		return &p.ParamServers
	case "shard":
		return &p.Shard
	case "mb":
		return &p.MicroBatch
	case "ga":
		return &p.AccumSteps
	}
	return nil
}

func flag(k, v string, dst *bool) error {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("%s=%s is not 0 or 1", k, v)
	}
	*dst = b
	return nil
}

func oneOf[T ~string](k, v string, dst *T, allowed ...T) error {
	for _, a := range allowed {
		if T(v) == a {
			*dst = a
			return nil
		}
	}
	return fmt.Errorf("%s=%s is not one of %v", k, v, allowed)
}
