package spec

import (
	"cmp"
	"fmt"
)

// broken returns the first legality rule that a normal plan breaks for m, or "".
func (p *Plan) broken(m *Model) string {
	return cmp.Or(p.belowOne(), divides("tp", p.TP, m.Heads, "heads"), p.uneven(m.KV()), divides("tp", p.TP, m.FFN, "ffn width"),
		p.tooManyStages(m), p.badSchedule(m), p.badVirtual(), p.badExperts(m), p.badModes(), p.badShard(), p.badServers())
}

// uneven returns why a normal plan cannot split kv key/value heads, or "". Each of fewer heads than ranks is replicated on
// TP/kv ranks.
func (p *Plan) uneven(kv int) string {
	switch {
	case kv >= p.TP || kv <= 0:
		return divides("tp", p.TP, kv, "key/value heads")
	case p.TP%kv != 0:
		return fmt.Sprintf("tp=%d is not a multiple of %d key/value heads", p.TP, kv)
	}
	return ""
}

// badVirtual returns why a normal plan cannot have its virtual stages, or "".
func (p *Plan) badVirtual() string {
	switch {
	case p.VirtualStages > 1 && p.PP == 1:
		return fmt.Sprintf("vp=%d needs pp > 1", p.VirtualStages)
	case p.VirtualStages > 1 && p.AccumSteps%p.PP != 0:
		return fmt.Sprintf("vp=%d needs ga=%d to be a multiple of pp=%d", p.VirtualStages, p.AccumSteps, p.PP)
	}
	return ""
}

// badExperts returns why a normal plan cannot split the experts of m, or "".
func (p *Plan) badExperts(m *Model) string {
	if p.EP > 1 && m.Experts == 0 {
		return fmt.Sprintf("ep=%d needs a mixture of experts", p.EP)
	}
	if ranks := p.DP * p.CP * p.TP; p.EP > 1 && ranks%p.EP != 0 && m.Experts%p.EP == 0 {
		return fmt.Sprintf("ep=%d does not divide the %d ranks of dp x cp x tp", p.EP, ranks)
	}
	return divides("ep", p.EP, m.Experts, "experts")
}

// badModes returns which modes of a normal plan exclude each other, or "".
func (p *Plan) badModes() string {
	switch {
	case p.SequenceParallel && p.TP == 1:
		return "sp=1 needs tp > 1"
	case p.Offload == OffloadParams && p.ZeRO != 3:
		return fmt.Sprintf("offload=params needs zero=3, not %d", p.ZeRO)
	case p.ZeRO >= 2 && p.PP > 1:
		return fmt.Sprintf("zero=%d with pp=%d: gradients would be reduced with every micro-batch", p.ZeRO, p.PP)
	}
	return ""
}

// tooManyStages returns why a normal plan splits m into too many stages or chunks, or "". Stages and chunks
// need not have equal numbers of layers. With virtual stages, a chunk may hold only the embedding, or only the
// head: NVIDIA's Megatron-Bridge recipes for GB200 train Llama 3 405B (126 layers) in 128 chunks of one.
// Megatron Core calls this accounting for embedding and loss in the pipeline split.
func (p *Plan) tooManyStages(m *Model) string {
	switch {
	case m.Layers <= 0:
	case p.VirtualStages == 1 && p.PP > m.Layers:
		return fmt.Sprintf("pp=%d x vp=1 exceeds %d layers", p.PP, m.Layers)
	case p.VirtualStages > 1 && p.PP*p.VirtualStages > m.Layers+2:
		return fmt.Sprintf("pp=%d x vp=%d exceeds %d layers plus embedding and head", p.PP, p.VirtualStages, m.Layers)
	}
	return ""
}

// badSchedule returns why a normal plan cannot use its pipeline schedule for m, or "". Zero-bubble schedules
// delay the computation of weight gradients, which needs the input of every multiplication. With full
// recomputation, these inputs would have to be kept until then or computed a third time, so recomputation would
// save nothing.
func (p *Plan) badSchedule(m *Model) string {
	switch s := p.Schedule; {
	case s == ScheduleDefault:
		return ""
	case s != ScheduleGPipe && !s.ZeroBubble():
		return fmt.Sprintf("schedule=%s is not one of %v", s, Schedules())
	case p.PP == 1:
		return fmt.Sprintf("schedule=%s needs pp > 1", s)
	case p.VirtualStages > 1:
		return fmt.Sprintf("schedule=%s needs vp=1, not %d", s, p.VirtualStages)
	case s.ZeroBubble() && p.Recompute == RecomputeFull:
		return fmt.Sprintf("schedule=%s needs recompute=none or selective: weight gradients are computed later, so the recomputed inputs would have to be kept", s)
	case s == ScheduleDualPipeV && p.AccumSteps < 2*p.PP:
		return fmt.Sprintf("schedule=%s needs 2 x pp=%d micro-batches or more, not ga=%d", s, p.PP, p.AccumSteps)
	case s.VShaped() && m.Layers > 0 && m.Layers%(2*p.PP) != 0:
		return fmt.Sprintf("schedule=%s has two chunks per stage, but 2 x pp=%d does not divide %d layers", s, p.PP, m.Layers)
	}
	return ""
}

// badShard returns why the number of shards of a normal plan is invalid, or "".
func (p *Plan) badShard() string {
	switch n := p.DP * p.CP; {
	case p.Shard == 0:
		return ""
	case p.ZeRO == 0:
		return fmt.Sprintf("shard=%d needs zero >= 1", p.Shard)
	case p.Shard < 2 || p.Shard > n || n%p.Shard != 0:
		return fmt.Sprintf("shard=%d is not a divisor of dp x cp=%d above 1", p.Shard, n)
	}
	return ""
}

// ShardInside changes a normal plan of ZeRO stage 3 so that states are sharded inside a domain of devices, and replicated
// across domains (hybrid sharding: Zhao et al., VLDB 2023, section 3.2.2). A plan that states its shards, or has no whole
// number of such groups, keeps those that it has.
func (p *Plan) ShardInside(domain int) {
	n := p.DP * p.CP
	inside := max(min(domain/p.TP, n), 1)
	if p.ZeRO == 3 && p.Shard == 0 && inside < n && n%inside == 0 {
		p.Shard = inside
	}
}

// badServers returns why a normal plan cannot use its parameter servers or be asynchronous, or "". Parameter
// servers hold the parameters and run the optimizer, so a plan with them cannot split or offload these in
// another way.
func (p *Plan) badServers() string {
	switch {
	case p.ParamServers < 0:
		return fmt.Sprintf("ps=%d is below 0", p.ParamServers)
	case p.Async && p.ParamServers == 0:
		return "async=1 needs ps > 0"
	case p.ParamServers == 0:
		return ""
	case p.TP > 1 || p.PP > 1 || p.CP > 1 || p.EP > 1:
		return fmt.Sprintf("ps=%d needs tp, pp, cp and ep of 1", p.ParamServers)
	case p.ZeRO > 0:
		return fmt.Sprintf("ps=%d needs zero=0, not %d", p.ParamServers, p.ZeRO)
	case p.Offload != OffloadNone:
		return fmt.Sprintf("ps=%d needs offload=none, not %s", p.ParamServers, p.Offload)
	}
	return ""
}

// belowOne names the first degree or count of a normal plan that is below 1.
func (p *Plan) belowOne() string {
	for _, f := range []struct {
		key string
		v   int
	}{{"dp", p.DP}, {"tp", p.TP}, {"pp", p.PP}, {"cp", p.CP}, {"ep", p.EP}, {"vp", p.VirtualStages},
		{"mb", p.MicroBatch}, {"ga", p.AccumSteps}} {
		if f.v < 1 {
			return fmt.Sprintf("%s=%d is below 1", f.key, f.v)
		}
	}
	return ""
}

func divides(name string, d, n int, what string) string {
	if d > 1 && n > 0 && n%d != 0 {
		return fmt.Sprintf("%s=%d does not divide %d %s", name, d, n, what)
	}
	return ""
}

// Check returns the first legality rule that p breaks for m, as an error such as "tp=16 does not divide 12
// heads", or nil. Zero fields of m break no rule. Proposed plans must pass Check. A measurement with a plan
// that does not pass is kept, with the error as a warning.
func (p Plan) Check(m Model) error {
	p = p.Normal()
	if why := p.broken(&m); why != "" {
		return fmt.Errorf("spec: %s: %s", m.Name, why)
	}
	return nil
}
