package remote

import (
	"errors"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Paths of the API that a Client uses.
const (
	PathPredict = "/v1/oracle/predict"
	PathBest    = "/v1/oracle/best"
	PathRank    = "/v1/oracle/rank"
	PathCurve   = "/v1/oracle/curve"
)

// PredictRequest is the body of Client.Predict.
type PredictRequest struct {
	Config spec.Config `json:"config"`
	Family string      `json:"family,omitempty" maxLength:"64" doc:"Kind of performance model; auto, the default, is the best there is."`
}

// PlanRequest is the body of Client.Best, Rank and Curve.
type PlanRequest struct {
	Request Request `json:"request"`
	Family  string  `json:"family,omitempty" maxLength:"64" doc:"Kind of performance model; auto, the default, is the best there is."`
}

// Request is a planner.Request in JSON, field by field.
type Request struct {
	Model            spec.Model        `json:"model"`
	SeqLen           int               `json:"seq_len,omitempty"`
	GlobalBatch      int               `json:"global_batch,omitempty"`
	Accelerator      spec.Accelerator  `json:"accelerator"`
	Link             spec.Link         `json:"link,omitzero"`
	Framework        string            `json:"framework,omitempty"`
	Precision        spec.Precision    `json:"precision,omitempty"`
	MinBatch         int               `json:"min_batch,omitempty"`
	MaxBatch         int               `json:"max_batch,omitempty"`
	Devices          int               `json:"devices,omitempty"`
	MinDevices       int               `json:"min_devices,omitempty"`
	PerNode          int               `json:"per_node,omitempty"`
	NodeHostBytes    float64           `json:"node_host_bytes,omitempty"`
	Shape            spec.Shape        `json:"shape,omitzero"`
	Plan             *spec.Plan        `json:"plan,omitempty"`
	Objective        planner.Objective `json:"objective,omitempty"`
	TargetThroughput float64           `json:"target_throughput,omitempty"`
	PricePerHour     float64           `json:"price_per_hour,omitempty"`
	NoiseScale       float64           `json:"noise_scale,omitempty"`
	InitialBatch     int               `json:"initial_batch,omitempty"`
	Risk             float64           `json:"risk,omitempty"`
	Top              int               `json:"top,omitempty"`
	TopMisses        int               `json:"top_misses,omitempty"`
}

// FromRequest returns the JSON form of r.
func FromRequest(r planner.Request) Request {
	return Request{
		Model: r.Model, SeqLen: r.SeqLen, GlobalBatch: r.GlobalBatch, Accelerator: r.Accelerator, Link: r.Link,
		Framework: r.Framework, Precision: r.Precision, MinBatch: r.MinBatch, MaxBatch: r.MaxBatch, Devices: r.Devices,
		MinDevices: r.MinDevices, PerNode: r.PerNode, NodeHostBytes: r.NodeHostBytes, Shape: r.Shape, Plan: r.Plan,
		Objective: r.Objective, TargetThroughput: r.TargetThroughput, PricePerHour: r.PricePerHour,
		NoiseScale: r.NoiseScale, InitialBatch: r.InitialBatch, Risk: r.Risk, Top: r.Top, TopMisses: r.TopMisses,
	}
}

// Planner returns r as the planner's type.
func (r Request) Planner() planner.Request {
	return planner.Request{
		Model: r.Model, SeqLen: r.SeqLen, GlobalBatch: r.GlobalBatch, Accelerator: r.Accelerator, Link: r.Link,
		Framework: r.Framework, Precision: r.Precision, MinBatch: r.MinBatch, MaxBatch: r.MaxBatch, Devices: r.Devices,
		MinDevices: r.MinDevices, PerNode: r.PerNode, NodeHostBytes: r.NodeHostBytes, Shape: r.Shape, Plan: r.Plan,
		Objective: r.Objective, TargetThroughput: r.TargetThroughput, PricePerHour: r.PricePerHour,
		NoiseScale: r.NoiseScale, InitialBatch: r.InitialBatch, Risk: r.Risk, Top: r.Top, TopMisses: r.TopMisses,
	}
}

// Prediction is a spec.Prediction in JSON. Samples/s, bytes.
type Prediction struct {
	Throughput  float64  `json:"throughput"`
	Lo          float64  `json:"lo"`
	Hi          float64  `json:"hi"`
	MemoryBytes float64  `json:"memory_bytes"`
	Allocated   float64  `json:"allocated_bytes,omitempty"`
	Reserved    float64  `json:"reserved_bytes,omitempty"`
	By          string   `json:"by"`
	Warnings    []string `json:"warnings,omitempty"`
}

// FromPrediction returns the JSON form of p.
func FromPrediction(p spec.Prediction) Prediction {
	out := Prediction{Throughput: p.Throughput, Lo: p.Lo, Hi: p.Hi, MemoryBytes: p.MemoryBytes, Allocated: p.AllocatedBytes, Reserved: p.ReservedBytes, By: p.By}
	for _, w := range p.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	return out
}

// Prediction returns p as a spec.Prediction; warnings keep only their texts.
func (p Prediction) Prediction() spec.Prediction {
	out := spec.Prediction{Throughput: p.Throughput, Lo: p.Lo, Hi: p.Hi, MemoryBytes: p.MemoryBytes, AllocatedBytes: p.Allocated, ReservedBytes: p.Reserved, By: p.By}
	for _, w := range p.Warnings {
		out.Warnings = append(out.Warnings, errors.New(w))
	}
	return out
}

// Choice is a planner.Choice in JSON.
type Choice struct {
	Config        spec.Config `json:"config"`
	Prediction    Prediction  `json:"prediction"`
	Fits          bool        `json:"fits"`
	Why           string      `json:"why,omitempty"`
	CostPerSample float64     `json:"cost_per_sample"`
	Efficiency    float64     `json:"efficiency"`

	Verdict memory.Verdict `json:"verdict,omitempty"`
}

// FromChoice returns the JSON form of c.
func FromChoice(c planner.Choice) Choice {
	return Choice{c.Config, FromPrediction(c.Prediction), c.Fits, c.Why, c.CostPerSample, c.Efficiency, c.Verdict}
}

// Planner returns c as the planner's type.
func (c Choice) Planner() planner.Choice {
	return planner.Choice{Config: c.Config, Prediction: c.Prediction.Prediction(), Fits: c.Fits, Why: c.Why,
		CostPerSample: c.CostPerSample, Efficiency: c.Efficiency, Verdict: c.Verdict}
}

// Ranking is a planner.Ranking in JSON.
type Ranking struct {
	Choices   []Choice `json:"choices"`
	Evaluated int      `json:"evaluated"`
	Fitting   int      `json:"fitting"`
	Misses    int      `json:"misses"`
}

// FromRanking returns the JSON form of r.
func FromRanking(r planner.Ranking) Ranking {
	out := Ranking{Choices: make([]Choice, len(r.Choices)), Evaluated: r.Evaluated, Fitting: r.Fitting, Misses: r.Misses}
	for i, c := range r.Choices {
		out.Choices[i] = FromChoice(c)
	}
	return out
}

// Planner returns r as the planner's type.
func (r Ranking) Planner() planner.Ranking {
	out := planner.Ranking{Choices: make([]planner.Choice, len(r.Choices)), Evaluated: r.Evaluated, Fitting: r.Fitting, Misses: r.Misses}
	for i, c := range r.Choices {
		out.Choices[i] = c.Planner()
	}
	return out
}

// Curve is a planner.Curve in JSON. Points share choices by index.
type Curve struct {
	Request Request      `json:"request"`
	Choices []Choice     `json:"choices"`
	Points  []CurvePoint `json:"points"`
}

// CurvePoint is the index of the best choice for a number of devices.
type CurvePoint struct {
	Devices int `json:"devices"`
	Choice  int `json:"choice"` // index into Curve.Choices
}

// FromCurve returns the JSON form of c.
func FromCurve(c planner.Curve) Curve {
	out := Curve{Request: FromRequest(c.Request), Choices: []Choice{}, Points: make([]CurvePoint, len(c.Points))}
	for i, p := range c.Points {
		if i == 0 || p.Choice.Config != c.Points[i-1].Choice.Config {
			out.Choices = append(out.Choices, FromChoice(p.Choice))
		}
		out.Points[i] = CurvePoint{p.Devices, len(out.Choices) - 1}
	}
	return out
}

// Planner returns c as the planner's type, or an error where an index is out of
// range.
func (c Curve) Planner() (planner.Curve, error) {
	out := planner.Curve{Request: c.Request.Planner(), Points: make([]planner.CurvePoint, len(c.Points))}
	choices := make([]planner.Choice, len(c.Choices))
	for i := range choices {
		choices[i] = c.Choices[i].Planner()
	}
	for i, p := range c.Points {
		if p.Choice < 0 || p.Choice >= len(choices) {
			return planner.Curve{}, errors.New("remote: a curve names a choice it does not hold")
		}
		out.Points[i] = planner.CurvePoint{Devices: p.Devices, Choice: choices[p.Choice]}
	}
	return out, nil
}
