package datasets

import (
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// rubickPrecision is the format of matrix products. The artifact's configurations disable fp16 and
// its logs say float32, the format of weights, gradients and activations. But up to 56 TFLOP/s per
// device were reached, and the A800's fp32 units peak at 19.5: the products ran on tensor cores as
// tf32.
const rubickPrecision = spec.TF32

// ParseRubickPlan decodes an execution plan as Rubick's tables and workloads
// write it, for a number of devices and the model's global batch:
//
//	ga               data parallel
//	gc               data parallel with full recomputation
//	zero-dp          ZeRO stage 2
//	zero-offload     ZeRO stage 2, optimizer on the CPU
//	zero-offload+gc  the same with full recomputation
//	tp+ga            tensor parallel over all devices
//	PTD              three digits: pipeline, tensor and data parallel degree
//
// Micro-batch and accumulation are not recorded. Every row is assumed to run
// its share of the batch as one micro-batch: MicroBatch = batch / DP, AccumSteps
// = 1. One sample per micro-batch would contradict the times: a deeper pipeline
// on more devices would be faster, but llama7 at TP 8 takes as long with two,
// four or eight stages, as it does with a single micro-batch. Where
// DP does not divide the batch, MicroBatch is rounded up and the plan's
// GlobalBatch differs from batch.
func ParseRubickPlan(s string, devices, batch int) (spec.Plan, error) {
	if devices < 1 || batch < 1 {
		return spec.Plan{}, fmt.Errorf("%d devices and global batch %d, both must be at least 1", devices, batch)
	}
	p := spec.Plan{DP: devices, TP: 1, PP: 1, AccumSteps: 1, Precision: rubickPrecision}
	switch s {
	case "ga":
	case "gc":
		p.Recompute = spec.RecomputeFull
	case "zero-dp":
		p.ZeRO = 2
	case "zero-offload":
		p.ZeRO, p.Offload = 2, spec.OffloadOptimizer
	case "zero-offload+gc":
		p.ZeRO, p.Offload, p.Recompute = 2, spec.OffloadOptimizer, spec.RecomputeFull
	case "tp+ga":
		p.DP, p.TP = 1, devices
	default:
		if err := p3D(&p, s, devices); err != nil {
			return spec.Plan{}, err
		}
	}
	p.MicroBatch = (batch + p.DP - 1) / p.DP
	return p.Normal(), nil
}

// p3D reads the three digits of a Megatron-LM plan.
func p3D(p *spec.Plan, s string, devices int) error {
	if len(s) != 3 || !isDigits(s) {
		return fmt.Errorf("is not a plan, want ga, gc, zero-dp, zero-offload, zero-offload+gc, tp+ga or three digits")
	}
	p.PP, p.TP, p.DP = int(s[0]-'0'), int(s[1]-'0'), int(s[2]-'0')
	if n := p.PP * p.TP * p.DP; n != devices {
		return fmt.Errorf("is pp=%d x tp=%d x dp=%d = %d devices, the row has %d", p.PP, p.TP, p.DP, n, devices)
	}
	return nil
}

// parseRubickPlacement decodes a placement: one digit per node, the devices
// used there; "44" is 4+4. The order of nodes does not matter.
func parseRubickPlacement(s string) (spec.Shape, error) {
	if s == "" || !isDigits(s) {
		return spec.Shape{}, fmt.Errorf("is not one digit per node")
	}
	nodes := make([]int, len(s))
	for i := range len(s) {
		if nodes[i] = int(s[i] - '0'); nodes[i] == 0 {
			return spec.Shape{}, fmt.Errorf("has a node with no devices")
		}
	}
	return spec.NewShape(nodes...), nil
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
