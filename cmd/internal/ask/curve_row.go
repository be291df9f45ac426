package ask

import "github.com/pacer-ml/pacer/planner"

// Curve is the JSON of pacer curve.
type Curve struct {
	Points []CurveRow `json:"points" doc:"One per device count from the first feasible one; throughput never falls."`
}

// CurveRow is one point of a Curve; lo and hi bound a 90 % interval.
type CurveRow struct {
	Devices     int      `json:"devices"`
	Plan        string   `json:"plan"`
	SamplesPerS float64  `json:"samples_per_s"`
	Lo          float64  `json:"lo"`
	Hi          float64  `json:"hi"`
	Used        int      `json:"used" doc:"Devices the plan uses."`
	By          string   `json:"by"`
	Warnings    []string `json:"warnings"`
}

// CurveRows writes a curve out.
func CurveRows(curve planner.Curve) []CurveRow {
	rows := make([]CurveRow, 0, len(curve.Points))
	for _, pt := range curve.Points {
		pr := pt.Choice.Prediction
		row := CurveRow{Devices: pt.Devices, Plan: pt.Choice.Config.Plan.String(), SamplesPerS: pr.Throughput,
			Lo: pr.Lo, Hi: pr.Hi, Used: pt.Choice.Config.Plan.Devices(), By: pr.By, Warnings: Texts(pr.Warnings)}
		if row.Lo <= 0 || row.Hi <= 0 {
			row.Lo, row.Hi = pr.Throughput, pr.Throughput
		}
		rows = append(rows, row)
	}
	return rows
}
