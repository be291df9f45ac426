package query

import (
	"context"
	"errors"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Plans is the JSON of pacer plan and, with one row, of pacer predict.
type Plans struct {
	Plans     []PlanRow `json:"plans" doc:"Best first."`
	Evaluated int       `json:"evaluated" doc:"Number of legal plans."`
	Fitting   int       `json:"fitting" doc:"Number of legal plans that fit and reach the target."`
	ElapsedS  float64   `json:"elapsed_s"`

	Pareto     []PlanRow      `json:"pareto,omitempty" doc:"Plans on the Pareto front of speed, memory and devices, with pareto."`
	Probes     []ProbeRow     `json:"probes,omitempty" doc:"Measurements with the highest expected gain, with probe."`
	Move       *MoveRow       `json:"move,omitempty" doc:"Whether to migrate to the best plan, with from."`
	Launch     *Launch        `json:"launch,omitempty" doc:"Files that start the best plan, with emit."`
	Infeasible *InfeasibleRow `json:"infeasible,omitempty" doc:"Why there is no plan."`
}

// InfeasibleRow is the reason why there is no plan.
type InfeasibleRow struct {
	Why     string     `json:"why"`
	Nearest *PlanRow   `json:"nearest,omitempty" doc:"The nearest plan."`
	Remedy  *RemedyRow `json:"remedy,omitempty" doc:"The smallest change that would help."`
}

// RemedyRow is a change to a request.
type RemedyRow struct {
	Change  string `json:"change" example:"16 devices"`
	Devices int    `json:"devices,omitempty"`
	Plan    string `json:"plan,omitempty"`
}

// NewInfeasibleRow describes an error that there is no plan; nil for other errors.
func NewInfeasibleRow(err error) *InfeasibleRow {
	var no *planner.InfeasibleError
	if !errors.As(err, &no) {
		return nil
	}
	out := &InfeasibleRow{Why: no.Why}
	if no.Nearest != nil {
		row := NewPlanRow(*no.Nearest)
		out.Nearest = &row
	}
	if r := no.Remedy; r != nil {
		out.Remedy = &RemedyRow{Change: r.Change, Devices: r.Devices}
		if r.Plan != nil {
			out.Remedy.Plan = r.Plan.String()
		}
	}
	return out
}

// PlanRow is one plan of Plans. Seconds, samples/s, GiB; lo and hi bound a 90 %
// interval.
type PlanRow struct {
	Plan          string    `json:"plan" example:"dp=8,tp=2,pp=1,mb=1,ga=8,zero=1"`
	PlanParts     spec.Plan `json:"plan_parts" doc:"The plan with every value written out."`
	StepTimeSec   float64   `json:"step_time_s"`
	StepTimeLo    float64   `json:"step_time_lo_s"`
	StepTimeHi    float64   `json:"step_time_hi_s"`
	SamplesPerS   float64   `json:"samples_per_s"`
	MemGiB        float64   `json:"mem_gib" doc:"Peak of the fullest device, with its context and communicators."`
	AllocatedGiB  float64   `json:"mem_allocated_gib,omitempty" doc:"Of mem_gib, what tensors use: torch.cuda.max_memory_allocated. Absent where it is not known."`
	ReservedGiB   float64   `json:"mem_reserved_gib,omitempty" doc:"Of mem_gib, what the framework's allocator holds: torch.cuda.max_memory_reserved. Absent where it is not known."`
	Fits          bool      `json:"fits" doc:"Whether it fits with a probability of 95 %; true where memory is unknown."`
	TFLOPsPerGPU  float64   `json:"tflops_per_gpu"`
	Devices       int       `json:"devices"`
	GlobalBatch   int       `json:"global_batch" doc:"Samples per step."`
	CostPerSample float64   `json:"cost_per_sample" doc:"In device-hours, or in the currency of price_per_hour."`
	GoodputPerS   float64   `json:"goodput_samples_per_s" doc:"samples_per_s times the statistical efficiency, which is 1 without a noise scale."`
	Shape         string    `json:"shape" doc:"Devices of each node; many equal nodes as 16x8." example:"8+8"`
	By            string    `json:"by" doc:"Performance model of the prediction."`
	PBeatsBest    *float64  `json:"p_beats_best,omitempty" doc:"Probability that the plan is better than the first one under the objective; from 0.1 on they cannot be distinguished. Absent for the first plan, for plans that do not fit, and where predictions have no interval."`
	Why           string    `json:"why,omitempty" doc:"Why it does not fit."`
	Verdict       string    `json:"verdict" doc:"fits, unsure or does not fit; unsure if neither has a probability of 95 %, or if a setting that the plan does not state may make it fit; empty where memory is unknown."`
	Warnings      []string  `json:"warnings"`
	Utilization
	// Explain is the time and memory by part, with explain.
	Explain *ExplanationRow `json:"explain,omitempty"`
}

// NewPlanRow writes a choice out.
func NewPlanRow(ch planner.Choice) PlanRow {
	cost := ch.Config.Model.TrainCost()
	c := &ch.Config
	row := PlanRow{Plan: c.Plan.String(), PlanParts: c.Plan.Normal(), Devices: c.Plan.Devices(), GlobalBatch: c.Plan.GlobalBatch(), Shape: ShapeText(c.Shape)}
	row.Set(&ch, &cost)
	return row
}

// Set sets all but the plan and its shape to a choice with these, of a model with that cost.
func (r *PlanRow) Set(ch *planner.Choice, cost *spec.TrainCost) {
	p := &ch.Prediction
	r.StepTimeSec, r.StepTimeLo, r.StepTimeHi = 0, 0, 0
	if p.Throughput > 0 { // else it does not fit and is not covered
		r.StepTimeSec, r.StepTimeLo, r.StepTimeHi = p.StepSec(r.GlobalBatch)
	}
	r.SamplesPerS, r.MemGiB, r.Fits, r.CostPerSample, r.GoodputPerS = p.Throughput, p.MemoryBytes/memory.GiB, ch.Fits, ch.CostPerSample, ch.Goodput()
	r.AllocatedGiB, r.ReservedGiB = p.AllocatedBytes/memory.GiB, p.ReservedBytes/memory.GiB
	r.TFLOPsPerGPU = TFLOPsAtCost(cost, &ch.Config, p.Throughput)
	r.By, r.Why, r.Verdict, r.Warnings = p.By, ch.Why, string(ch.Verdict), Texts(p.Warnings)
	r.Utilization = utilizationAt(cost, &ch.Config, p.Throughput)
}

// TFLOPsPerDevice is the TFLOP/s of a device at a throughput in samples/s.
func TFLOPsPerDevice(c *spec.Config, throughput float64) float64 {
	cost := c.Model.TrainCost()
	return TFLOPsAtCost(&cost, c, throughput)
}

// TFLOPsAtCost is TFLOPsPerDevice with the cost of the model.
func TFLOPsAtCost(cost *spec.TrainCost, c *spec.Config, throughput float64) float64 {
	return cost.FLOPs(c.Seq()) * throughput / float64(c.Plan.Devices()) / 1e12
}

// Texts makes a JSON array of warnings.
func Texts(errs []error) []string {
	out := make([]string, len(errs))
	for i, err := range errs {
		out[i] = err.Error()
	}
	return out
}

// PlanRows returns the best top rows that fit, then with rejected as many that do not fit. top
// 0 is all.
func PlanRows(rk planner.Ranking, top int, rejected bool) []PlanRow {
	rows := []PlanRow{}
	shown, refused := 0, 0
	for _, ch := range rk.Choices {
		switch {
		case ch.Fits:
			if top == 0 || shown < top {
				shown++
				rows = append(rows, NewPlanRow(ch))
			}
		case rejected && (top == 0 || refused < top):
			refused++
			rows = append(rows, NewPlanRow(ch))
		}
	}
	return rows
}

// SetBeatsBest fills in PBeatsBest of rows, which are PlanRows of rk, the answer to r.
func SetBeatsBest(ctx context.Context, pl *planner.Planner, r planner.Request, rk planner.Ranking, rows []PlanRow) error {
	fitting := 0
	for fitting < len(rows) && rows[fitting].Fits {
		fitting++
	}
	beats, err := pl.BeatsBest(ctx, r, rk.Choices[:fitting])
	for i, p := range beats {
		if !math.IsNaN(p) {
			rows[i].PBeatsBest = &p
		}
	}
	return err
}

// Ties returns how many plans cannot be distinguished from the best one.
func Ties(rows []PlanRow) int {
	var beats []float64
	for i := range rows {
		if p := rows[i].PBeatsBest; p != nil {
			beats = append(beats, *p)
		}
	}
	return planner.Ties(beats)
}

// ShapeText writes the devices of each node, of more than eight nodes as runs:
// "8+8", "16x8+4". Both forms are read.
func ShapeText(s spec.Shape) string {
	if s.Nodes() <= 8 {
		return s.Devices
	}
	return s.String()
}
