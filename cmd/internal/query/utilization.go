package query

import "github.com/pacer-ml/pacer/perfmodel/spec"

// Utilization is how well a plan uses its devices. A figure is 0 where it is not known.
type Utilization struct {
	MFU             float64 `json:"mfu,omitempty" doc:"Model FLOPs utilization: work of the model without recomputation, divided by the peak of the devices in the format of the plan (Chowdhery et al., PaLM, 2022, appendix B)."`
	HFU             float64 `json:"hfu,omitempty" doc:"Hardware FLOPs utilization: mfu with recomputation counted as work."`
	TokensPerDevice float64 `json:"tokens_per_s_per_device,omitempty" doc:"Tokens per second of one device; absent for models without tokens."`
	JoulesPerSample float64 `json:"energy_j_per_sample,omitempty" doc:"Energy of the devices at their power limit, without hosts, network and cooling: an upper bound of theirs; absent where the limit is not known."`
}

// UtilizationOf returns the utilization of c at a throughput in samples/s.
func UtilizationOf(c *spec.Config, throughput float64) Utilization {
	cost := c.Model.TrainCost()
	return utilizationAt(&cost, c, throughput)
}

// utilizationAt is UtilizationOf with the cost of the model.
func utilizationAt(cost *spec.TrainCost, c *spec.Config, throughput float64) (u Utilization) {
	devices := float64(c.Plan.Devices())
	if !(throughput > 0) || devices < 1 {
		return u
	}
	precision := c.Plan.Precision
	if precision == "" {
		precision = c.Accelerator.DefaultPrecision()
	}
	if peak := c.Accelerator.Peak(precision) * devices; peak > 0 {
		all := cost.FLOPs(c.Seq())
		u.MFU = all * throughput / peak
		u.HFU = u.MFU * (1 + recomputedShare(c, all))
	}
	if seq := c.Seq(); seq > 0 && c.Model.Kind != spec.Vision {
		u.TokensPerDevice = float64(seq) * throughput / devices
	}
	u.JoulesPerSample = c.Accelerator.Watts * devices / throughput
	return u
}

// recomputedShare returns the recomputed work as a share of that of the model. The forward pass, which full recomputation
// repeats, is one of three equal parts, or with an adapter one of two. Selective recomputation repeats the attention
// core (Korthikanti et al. 2022), a third of the work that does not grow with the parameters. all is the work in FLOPs.
func recomputedShare(c *spec.Config, all float64) float64 {
	forward := 1. / 3
	if c.Model.Adapter.Kind != spec.FullTraining {
		forward = 1. / 2
	}
	switch c.Plan.Recompute {
	case spec.RecomputeFull:
		return forward
	case spec.RecomputeSelective:
		weights := 2 / forward * c.Model.ActiveParams() * float64(c.Seq())
		if all > weights && c.Model.HasShape() && c.Model.Tower == (spec.Tower{}) {
			return forward * (all - weights) / all
		}
	}
	return 0
}
