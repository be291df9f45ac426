package ask

import (
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Plans is the JSON of pacer plan and, with one row, of pacer predict.
type Plans struct {
	Plans     []PlanRow `json:"plans" doc:"Best first."`
	Evaluated int       `json:"evaluated" doc:"Legal plans looked at, whether they fit or not."`
	ElapsedS  float64   `json:"elapsed_s"`
}

// PlanRow is one plan of Plans. Seconds, samples/s, GiB; lo and hi bound a 90 %
// interval.
type PlanRow struct {
	Plan         string   `json:"plan" example:"dp=8,tp=2,pp=1,mb=1,ga=8,zero=1"`
	StepTimeSec  float64  `json:"step_time_s"`
	StepTimeLo   float64  `json:"step_time_lo_s"`
	StepTimeHi   float64  `json:"step_time_hi_s"`
	SamplesPerS  float64  `json:"samples_per_s"`
	MemGiB       float64  `json:"mem_gib" doc:"Peak of the fullest device."`
	Fits         bool     `json:"fits"`
	TFLOPsPerGPU float64  `json:"tflops_per_gpu"`
	Shape        string   `json:"shape" doc:"Devices of each node." example:"8+8"`
	By           string   `json:"by" doc:"The performance model that says so."`
	Why          string   `json:"why,omitempty" doc:"Why it does not fit."`
	Warnings     []string `json:"warnings"`
	// Explain is where time and memory go, where that was asked for.
	Explain map[string]map[string]float64 `json:"explain,omitempty"`
}

// NewPlanRow writes a choice out.
func NewPlanRow(ch planner.Choice) PlanRow {
	sec, lo, hi := ch.Prediction.StepSec(ch.Config.Plan.GlobalBatch())
	return PlanRow{
		Plan: ch.Config.Plan.String(), StepTimeSec: sec, StepTimeLo: lo, StepTimeHi: hi,
		SamplesPerS: ch.Prediction.Throughput, MemGiB: ch.Prediction.MemoryBytes / memory.GiB, Fits: ch.Fits,
		TFLOPsPerGPU: tflopsPerDevice(&ch.Config, ch.Prediction),
		Shape:        ch.Config.Shape.Devices, By: ch.Prediction.By, Why: ch.Why, Warnings: Texts(ch.Prediction.Warnings),
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
// that do not fit; and how many fit in all. top 0 is all.
func PlanRows(rk planner.Ranking, top int, rejected bool) (rows []PlanRow, fitting int) {
	rows = []PlanRow{}
	shown, refused := 0, 0
	for _, ch := range rk.Choices {
		switch {
		case ch.Fits:
			fitting++
			if top == 0 || shown < top {
				shown++
				rows = append(rows, NewPlanRow(ch))
			}
		case rejected && (top == 0 || refused < top):
			refused++
			rows = append(rows, NewPlanRow(ch))
		}
	}
	return rows, fitting
}
