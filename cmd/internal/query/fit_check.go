package query

import (
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// FitCheck is the JSON of pacer fit-check. Sizes are of the fullest device but
// for host_gib, which is of all devices together.
type FitCheck struct {
	Plan        string  `json:"plan" doc:"The plan of the request; without one the fastest that fits, or else the one that needs the least memory."`
	Shape       string  `json:"shape"`
	Fits        bool    `json:"fits" doc:"Whether it fits with a probability of 95 %; true where memory is unknown."`
	Verdict     string  `json:"verdict" doc:"fits, unsure or does not fit; unsure if neither has a probability of 95 %, or if a setting that the plan does not state may make it fit; empty where memory is unknown."`
	Probability float64 `json:"probability" doc:"Probability that the plan fits with the settings that it states; 1 where memory is unknown."`
	MemGiB      float64 `json:"mem_gib" doc:"Estimated peak, with context and communicators."`
	Allocated   float64 `json:"mem_allocated_gib,omitempty" doc:"Of mem_gib, what tensors use: torch.cuda.max_memory_allocated. Absent where it is not known."`
	Reserved    float64 `json:"mem_reserved_gib,omitempty" doc:"Of mem_gib, what the framework's allocator holds: torch.cuda.max_memory_reserved. Absent where it is not known."`
	BudgetGiB   float64 `json:"budget_gib" doc:"Memory a plan may need to count as fitting; 0 where the device's memory is unknown."`
	DeviceGiB   float64 `json:"device_gib" doc:"Memory of a device, by its datasheet."`
	HeadroomGiB float64 `json:"headroom_gib" doc:"budget_gib less mem_gib."`
	HostGiB     float64 `json:"host_gib" doc:"Host memory needed."`
	// Parts add up to mem_gib, but for host.
	Parts    map[string]float64 `json:"parts_gib"`
	Why      string             `json:"why,omitempty" doc:"Why it does not fit."`
	Fixes    []FitFix           `json:"fixes" doc:"Changes after which it fits, those that cost least time first."`
	Offloads bool               `json:"offloads" doc:"Only plans with offload fit."`
	By       string             `json:"by"`
	Warnings []string           `json:"warnings"`
}

// FitFix is a change after which it fits.
type FitFix struct {
	Change      string  `json:"change" example:"recompute=full"`
	Plan        string  `json:"plan"`
	Devices     int     `json:"devices"`
	MemGiB      float64 `json:"mem_gib"`
	SamplesPerS float64 `json:"samples_per_s"`
}

// Misfit says the verdict on a plan that is not sure to fit.
func Misfit(verdict string) string {
	if verdict == string(memory.Unsure) {
		return "may or may not fit"
	}
	return string(memory.Exceeds)
}

// NewFitCheck writes a report out.
func NewFitCheck(f planner.FitReport) FitCheck {
	p := f.Config.Plan
	out := FitCheck{
		Plan: p.String(), Shape: ShapeText(f.Config.Shape), Fits: f.Fits, Verdict: string(f.Verdict), Probability: f.Probability(),
		MemGiB: f.Prediction.MemoryBytes / memory.GiB, Allocated: f.Prediction.AllocatedBytes / memory.GiB, Reserved: f.Prediction.ReservedBytes / memory.GiB,
		BudgetGiB: f.Budget / memory.GiB,
		DeviceGiB: f.Config.Accelerator.MemBytes / memory.GiB, HeadroomGiB: f.Headroom() / memory.GiB,
		HostGiB: f.Memory.HostTotal(p.Devices()) / memory.GiB, Parts: byName(MemoryShares(f.Memory)),
		Why: f.Why, Fixes: []FitFix{}, Offloads: f.Offloads, By: f.Prediction.By, Warnings: Texts(f.Prediction.Warnings),
	}
	for _, fix := range f.Fixes {
		c := fix.Choice
		out.Fixes = append(out.Fixes, FitFix{fix.Change, c.Config.Plan.String(), c.Config.Plan.Devices(), c.Prediction.MemoryBytes / memory.GiB, c.Prediction.Throughput})
	}
	return out
}
