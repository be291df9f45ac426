package report

import (
	"fmt"

	"github.com/pacer-ml/pacer/planner"
)

// curve is the section of the sensitivity curve.
type curve struct {
	Speed string // throughput or goodput
	First int    // least number of devices
	Table *table
	Alone bool        // only the largest number of devices fits
	chart *curveChart // nil where Alone
}

// curveChart has the figures at the numbers of devices where the curve changes, the
// first and the last among them. Between two numbers the lower one holds. Speeds
// are samples/s.
type curveChart struct {
	Name      string   `json:"name"` // of the speed
	Devices   []int    `json:"n"`
	Speed     []figure `json:"speed"`
	Lo        []figure `json:"lo"` // of the 90 % interval
	Hi        []figure `json:"hi"`
	Linear    []figure `json:"linear"`     // the first point's, in proportion to the devices
	PerDevice []figure `json:"per_device"` // speed over devices
	Gain      []figure `json:"gain"`       // speed per device added since the change before
	Plans     []string `json:"plans"`
	Target    figure   `json:"target"`
}

// newCurve returns nil without a curve or with one of a single device.
func newCurve(in *Input) *curve {
	points := in.Curve.Points
	if len(points) == 0 || points[len(points)-1].Devices == 1 {
		return nil
	}
	r := &in.Request
	out := &curve{Speed: speedName(r), First: points[0].Devices}
	at := changes(points)
	out.Table = curveTable(r, at)
	if last := points[len(points)-1]; last.Devices > at[len(at)-1].Devices {
		at = append(at, last)
	}
	if out.Alone = len(at) == 1; !out.Alone {
		out.chart = newCurveChart(r, at)
	}
	return out
}

// changes returns the points with another choice than the point before.
func changes(points []planner.CurvePoint) []planner.CurvePoint {
	var out []planner.CurvePoint
	for i, p := range points {
		if i == 0 || p.Choice.Config != points[i-1].Choice.Config {
			out = append(out, p)
		}
	}
	return out
}

func newCurveChart(r *planner.Request, at []planner.CurvePoint) *curveChart {
	c := &curveChart{Name: speedName(r), Target: nothing()}
	if r.Objective == planner.MinDevices {
		c.Target = figure(r.TargetThroughput)
	}
	first := perCount(r, &at[0])
	for i := range at {
		p := &at[i]
		v := speed(r, &p.Choice)
		lo, hi := bounds(r, &p.Choice)
		gain := nothing()
		if i > 0 {
			gain = figure(gained(r, at, i))
		}
		c.Devices = append(c.Devices, p.Devices)
		c.Speed = append(c.Speed, figure(v))
		c.Lo = append(c.Lo, lo)
		c.Hi = append(c.Hi, hi)
		c.Linear = append(c.Linear, figure(first*float64(p.Devices)))
		c.PerDevice = append(c.PerDevice, figure(perCount(r, p)))
		c.Gain = append(c.Gain, gain)
		c.Plans = append(c.Plans, p.Choice.Config.Plan.String())
	}
	return c
}

// bounds returns the 90 % interval of a choice's speed.
func bounds(r *planner.Request, c *planner.Choice) (lo, hi figure) {
	if !interval(c) {
		return nothing(), nothing()
	}
	share := speed(r, c) / c.Prediction.Throughput
	return figure(c.Prediction.Lo * share), figure(c.Prediction.Hi * share)
}

// perCount returns the speed per device of a point.
func perCount(r *planner.Request, p *planner.CurvePoint) float64 {
	return speed(r, &p.Choice) / float64(p.Devices)
}

// gained returns the speed added per device from point i-1 to i.
func gained(r *planner.Request, at []planner.CurvePoint, i int) float64 {
	return (speed(r, &at[i].Choice) - speed(r, &at[i-1].Choice)) / float64(at[i].Devices-at[i-1].Devices)
}

func curveTable(r *planner.Request, at []planner.CurvePoint) *table {
	choices := make([]planner.Choice, len(at))
	for i := range at {
		choices[i] = at[i].Choice
	}
	t := newTable("The sensitivity curve", choices, []column{
		{speedName(r), "samples/s", func(c *planner.Choice) string { return sig(speed(r, c), 4) }},
		{"90 % interval", "samples/s", func(c *planner.Choice) string {
			lo, hi := bounds(r, c)
			return intervalText(c, float64(lo), float64(hi))
		}},
	})
	t.Head = append(t.Head, head{"per device", "samples/s"}, head{"gain", "samples/s per device added"})
	t.Head = append([]head{{Name: "devices"}}, t.Head...)
	for i := range at {
		gain := none
		if i > 0 {
			gain = sig(gained(r, at, i), 3)
		}
		row := append([]cell{{Text: fmt.Sprint(at[i].Devices)}}, t.Rows[i]...)
		t.Rows[i] = append(row, cell{Text: sig(perCount(r, &at[i]), 3)}, cell{Text: gain})
	}
	return t
}
