package query

import (
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// Curve is the JSON of pacer curve.
type Curve struct {
	Points   []CurveRow `json:"points" doc:"One per number of devices from the first feasible one; of a surface, for every combination of its axes. Throughput, or goodput under that objective, never falls with devices."`
	Warnings []string   `json:"warnings,omitempty" doc:"Accelerators of a surface on which nothing fits."`
}

// CurveRow is one point of a Curve; lo and hi bound a 90 % interval. The axes of
// a surface are set if the request has them.
type CurveRow struct {
	Accelerator string  `json:"accelerator,omitempty"`
	NetworkGbps float64 `json:"network_gbps,omitempty" doc:"Network of one node, one direction."`
	HostGiB     float64 `json:"host_gib,omitempty" doc:"Host memory per device."`
	CPUs        int     `json:"cpus,omitempty" doc:"CPU threads per device."`

	Devices     int       `json:"devices"`
	Plan        string    `json:"plan"`
	PlanParts   spec.Plan `json:"plan_parts" doc:"The plan with every value written out."`
	SamplesPerS float64   `json:"samples_per_s"`
	Lo          float64   `json:"lo"`
	Hi          float64   `json:"hi"`
	Used        int       `json:"used" doc:"Devices the plan uses."`
	By          string    `json:"by"`
	Warnings    []string  `json:"warnings"`
	Marginal    float64   `json:"marginal_samples_per_s" doc:"Throughput added per device since the last change of plan, or goodput under that objective; 0 where the plan is that of fewer devices."`
	GlobalBatch int       `json:"global_batch" doc:"Samples per step."`
	GoodputPerS float64   `json:"goodput_samples_per_s" doc:"samples_per_s times the statistical efficiency, which is 1 without a noise scale."`
}

// CurveRows returns the rows of a curve.
func CurveRows(curve planner.Curve) []CurveRow {
	rows := make([]CurveRow, 0, len(curve.Points))
	for _, pt := range curve.Points {
		rows = append(rows, newCurveRow(pt.Devices, pt.Choice))
	}
	addMargins(rows, curve.Request.Objective)
	return rows
}

// newCurveRow is the row of the best choice on at most n devices.
func newCurveRow(n int, ch planner.Choice) CurveRow {
	pr, plan := ch.Prediction, ch.Config.Plan
	row := CurveRow{Devices: n, Plan: plan.String(), PlanParts: plan.Normal(), SamplesPerS: pr.Throughput, Lo: pr.Lo, Hi: pr.Hi,
		Used: plan.Devices(), By: pr.By, Warnings: Texts(pr.Warnings), GlobalBatch: plan.GlobalBatch(), GoodputPerS: ch.Goodput()}
	if row.Lo <= 0 || row.Hi <= 0 {
		row.Lo, row.Hi = pr.Throughput, pr.Throughput
	}
	return row
}

// addMargins fills in the margins of rows of ascending device counts.
func addMargins(rows []CurveRow, o planner.Objective) {
	speed := func(r *CurveRow) float64 {
		if o == planner.Goodput {
			return r.GoodputPerS
		}
		return r.SamplesPerS
	}
	var last CurveRow // with another plan than the row
	for i := range rows {
		row := &rows[i]
		if i > 0 && row.Plan == rows[i-1].Plan {
			continue
		}
		row.Marginal = (speed(row) - speed(&last)) / float64(row.Devices-last.Devices)
		last = *row
	}
}

// SurfaceRows returns the rows of a surface. A row is new if its plan differs from that with
// fewer devices or CPUs, less host memory, or the next slower network. Rows have the axes that
// are in given.
func SurfaceRows(s *planner.Surface, given planner.Axes) (rows []CurveRow, isNew []bool) {
	axes := &s.Axes
	for m, machine := range axes.Machines {
		for b := range axes.InterBps {
			for h := range axes.HostBytes {
				for c := range axes.CPUs {
					line := surfaceLine(s, m, b, h, c)
					for i := range line {
						line[i].Accelerator = machine.Accelerator.Name
						line[i].name(given, b, h, c)
						isNew = append(isNew, newPoint(s, m, b, h, c, line[i].Devices))
					}
					rows = append(rows, line...)
				}
			}
		}
	}
	return rows, isNew
}

// surfaceLine is a surface along the devices.
func surfaceLine(s *planner.Surface, m, b, h, c int) (line []CurveRow) {
	for n := 1; n <= s.Request.Devices; n++ {
		if ch, ok := s.At(m, b, h, c, n); ok {
			line = append(line, newCurveRow(n, ch))
		}
	}
	addMargins(line, s.Request.Objective)
	return line
}

// name fills in the place of a row on the axes of the request.
func (r *CurveRow) name(given planner.Axes, b, h, c int) {
	if len(given.InterBps) > 0 {
		r.NetworkGbps = given.InterBps[b] * 8 / 1e9
	}
	if len(given.HostBytes) > 0 {
		r.HostGiB = given.HostBytes[h] / memory.GiB
	}
	if len(given.CPUs) > 0 {
		r.CPUs = given.CPUs[c]
	}
}

// newPoint reports whether no neighbour of a point with less of one thing has
// the same plan at the same speed.
func newPoint(s *planner.Surface, m, b, h, c, n int) bool {
	here, _ := s.At(m, b, h, c, n)
	for _, less := range [][4]int{{b, h, c, n - 1}, {b, h, c - 1, n}, {b, h - 1, c, n}, {b - 1, h, c, n}} {
		if min(less[0], less[1], less[2]) < 0 || less[3] < 1 {
			continue
		}
		there, ok := s.At(m, less[0], less[1], less[2], less[3])
		if ok && there.Config.Plan == here.Config.Plan && there.Prediction.Throughput == here.Prediction.Throughput {
			return false
		}
	}
	return true
}
