package planner

import (
	"fmt"
	"slices"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// SingleChange is a plan that differs from another one in one respect.
type SingleChange struct {
	Name string // such as mb=2,ga=8
	Plan spec.Plan
}

// SingleChanges returns the plans that differ from p in one respect, on as many devices with the same global batch: the
// micro-batch, one degree of parallelism against data parallelism, or one mode. r gives the model and the accelerator. Plans
// that break a rule are left out.
func SingleChanges(p spec.Plan, r *Request) []SingleChange {
	p = p.Normal()
	var out []SingleChange
	add := func(name string, change func(q *spec.Plan)) {
		q := p
		change(&q)
		q = q.Normal()
		if q == p || q.Devices() != p.Devices() || q.GlobalBatch() != p.GlobalBatch() || q.Check(r.Model) != nil ||
			first(redundant(&q), offloadable(&q)) != noViolation {
			return
		}
		if !slices.ContainsFunc(out, func(s SingleChange) bool { return s.Plan == q }) {
			out = append(out, SingleChange{name, q})
		}
	}
	changeBatch(&p, add)
	changeDegrees(&p, add)
	for _, v := range []spec.Recompute{spec.RecomputeNone, spec.RecomputeSelective, spec.RecomputeFull} {
		add("recompute="+string(v), func(q *spec.Plan) { q.Recompute = v })
	}
	for z := range 4 {
		add(fmt.Sprintf("zero=%d", z), func(q *spec.Plan) { q.ZeRO = z; q.Shard = 0 })
	}
	if !r.Accelerator.IsCPU() {
		for _, v := range []spec.Offload{spec.OffloadNone, spec.OffloadOptimizer, spec.OffloadParams} {
			add("offload="+string(v), func(q *spec.Plan) { q.Offload = v })
		}
	}
	add("sp=1", func(q *spec.Plan) { q.SequenceParallel = q.TP > 1 })
	add("shard=0", func(q *spec.Plan) { q.Shard = 0 })
	for _, v := range r.Accelerator.Formats() {
		if v.Bytes() < p.Precision.Bytes() && v.Format() != spec.FP4 && r.Model.Adapter.Kind != spec.QLoRA { // quantized weights are multiplied in 16 bits
			add("precision="+string(v), func(q *spec.Plan) { q.Precision = v })
		}
	}
	return out
}

// changeBatch halves and doubles the micro-batch.
func changeBatch(p *spec.Plan, add func(string, func(*spec.Plan))) {
	for _, mb := range []int{p.MicroBatch / 2, p.MicroBatch * 2, p.MicroBatch * 4, 1} {
		if total := p.MicroBatch * p.AccumSteps; mb >= 1 && total%mb == 0 {
			add(fmt.Sprintf("mb=%d,ga=%d", mb, total/mb), func(q *spec.Plan) { q.MicroBatch, q.AccumSteps = mb, total/mb })
		}
	}
}

// changeDegrees halves and doubles each degree of parallelism; data parallelism and accumulation take up the rest.
func changeDegrees(p *spec.Plan, add func(string, func(*spec.Plan))) {
	for _, degree := range []struct {
		name string
		of   func(*spec.Plan) *int
	}{
		{"tp", func(q *spec.Plan) *int { return &q.TP }}, {"pp", func(q *spec.Plan) *int { return &q.PP }}, {"cp", func(q *spec.Plan) *int { return &q.CP }},
	} {
		was := *degree.of(p)
		for _, n := range []int{was / 2, was * 2, 1} {
			if n < 1 || p.DP*was%n != 0 {
				continue
			}
			add(fmt.Sprintf("%s=%d,dp=%d", degree.name, n, p.DP*was/n), func(q *spec.Plan) {
				*degree.of(q) = n
				q.DP = p.DP * was / n
				if samples := p.GlobalBatch(); samples%(q.DP*q.MicroBatch) == 0 {
					q.AccumSteps = samples / (q.DP * q.MicroBatch)
				}
				q.SequenceParallel = q.SequenceParallel && q.TP > 1
				if q.PP > 1 && q.ZeRO > 1 {
					q.ZeRO = 1
				}
				if q.PP == 1 {
					q.VirtualStages, q.Schedule = 1, spec.ScheduleDefault
				}
				if q.DP*q.CP == 1 {
					q.ZeRO, q.Shard = 0, 0
				}
			})
		}
	}
	for _, n := range []int{p.VirtualStages / 2, p.VirtualStages * 2} {
		if n >= 1 && p.PP > 1 {
			add(fmt.Sprintf("vp=%d", n), func(q *spec.Plan) { q.VirtualStages = n })
		}
	}
	for _, n := range []int{p.EP / 2, p.EP * 2} {
		if n >= 1 {
			add(fmt.Sprintf("ep=%d", n), func(q *spec.Plan) { q.EP = n })
		}
	}
}
