package ask

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Plans is the JSON of pacer plan and, with one row, of pacer predict.
type Plans struct {
	Plans     []PlanRow `json:"plans" doc:"Best first."`
	Evaluated int       `json:"evaluated" doc:"Legal plans looked at, whether they fit or not."`
	Fitting   int       `json:"fitting" doc:"Of them, those that fit and reach the target."`
	ElapsedS  float64   `json:"elapsed_s"`

	Pareto     []PlanRow      `json:"pareto,omitempty" doc:"Plans no other beats in speed, memory and devices at once, where that was asked for."`
	Probes     []ProbeRow     `json:"probes,omitempty" doc:"Measurements that would change the choice most, where that was asked for."`
	Move       *MoveRow       `json:"move,omitempty" doc:"Whether to go over to the best plan, where that was asked."`
	Launch     *Launch        `json:"launch,omitempty" doc:"What starts the best plan, where that was asked for."`
	Infeasible *InfeasibleRow `json:"infeasible,omitempty" doc:"Why there is no plan."`
}

// InfeasibleRow is why no plan answers a question.
type InfeasibleRow struct {
	Why     string     `json:"why"`
	Nearest *PlanRow   `json:"nearest,omitempty" doc:"The plan that came nearest."`
	Remedy  *RemedyRow `json:"remedy,omitempty" doc:"The smallest change that would help."`
}

// RemedyRow is a change to a question.
type RemedyRow struct {
	Change  string `json:"change" example:"16 devices"`
	Devices int    `json:"devices,omitempty"`
	Plan    string `json:"plan,omitempty"`
}

// NewInfeasibleRow writes out what err says of there being no plan; nil if it is
// about something else.
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
	Plan          string   `json:"plan" example:"dp=8,tp=2,pp=1,mb=1,ga=8,zero=1"`
	StepTimeSec   float64  `json:"step_time_s"`
	StepTimeLo    float64  `json:"step_time_lo_s"`
	StepTimeHi    float64  `json:"step_time_hi_s"`
	SamplesPerS   float64  `json:"samples_per_s"`
	MemGiB        float64  `json:"mem_gib" doc:"Peak of the fullest device."`
	Fits          bool     `json:"fits"`
	TFLOPsPerGPU  float64  `json:"tflops_per_gpu"`
	Devices       int      `json:"devices"`
	GlobalBatch   int      `json:"global_batch" doc:"Samples per step."`
	CostPerSample float64  `json:"cost_per_sample" doc:"In device-hours, or in the currency of price_per_hour."`
	GoodputPerS   float64  `json:"goodput_samples_per_s" doc:"samples_per_s times the statistical efficiency, which is 1 where no noise scale was given."`
	Shape         string   `json:"shape" doc:"Devices of each node; of many nodes alike as 16x8." example:"8+8"`
	By            string   `json:"by" doc:"The performance model that says so."`
	Why           string   `json:"why,omitempty" doc:"Why it does not fit."`
	Warnings      []string `json:"warnings"`
	// Explain is where time and memory go, where that was asked for.
	Explain map[string]map[string]float64 `json:"explain,omitempty"`
}

// NewPlanRow writes a choice out.
func NewPlanRow(ch planner.Choice) PlanRow {
	var sec, lo, hi float64
	if ch.Prediction.Throughput > 0 { // else it does not fit and is not covered
		sec, lo, hi = ch.Prediction.StepSec(ch.Config.Plan.GlobalBatch())
	}
	return PlanRow{
		Devices: ch.Config.Plan.Devices(), GlobalBatch: ch.Config.Plan.GlobalBatch(), CostPerSample: ch.CostPerSample, GoodputPerS: ch.Goodput(),
		Plan: ch.Config.Plan.String(), StepTimeSec: sec, StepTimeLo: lo, StepTimeHi: hi,
		SamplesPerS: ch.Prediction.Throughput, MemGiB: ch.Prediction.MemoryBytes / memory.GiB, Fits: ch.Fits,
		TFLOPsPerGPU: tflopsPerDevice(&ch.Config, ch.Prediction),
		Shape:        ShapeText(ch.Config.Shape), By: ch.Prediction.By, Why: ch.Why, Warnings: Texts(ch.Prediction.Warnings),
	}
}

func tflopsPerDevice(c *spec.Config, p spec.Prediction) float64 {
	return c.Model.TrainFLOPs(c.Seq()) * p.Throughput / float64(c.Plan.Devices()) / 1e12
}

// Texts makes a JSON array of warnings.
func Texts(errs []error) []string {
	out := make([]string, len(errs))
	for i, err := range errs {
		out[i] = err.Error()
	}
	return out
}

// PlanRows returns the best top fitting rows, then, when asked for, as many
// that do not fit. top 0 is all.
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

// ShapeText writes the devices of each node, of more than eight nodes as runs:
// "8+8", "16x8+4". Both forms are read.
func ShapeText(s spec.Shape) string {
	nodes := s.PerNode()
	if len(nodes) <= 8 {
		return s.Devices
	}
	var runs []string
	for i := 0; i < len(nodes); {
		j := i
		for j < len(nodes) && nodes[j] == nodes[i] {
			j++
		}
		runs = append(runs, fmt.Sprintf("%dx%d", j-i, nodes[i]))
		i = j
	}
	return strings.Join(runs, "+")
}
