package report

import (
	"fmt"
	"math"

	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// front is the section of the Pareto front.
type front struct {
	Speed string // what is traded against memory and devices
	Note  string // on what the chart leaves out
	Table *table
	chart frontChart
}

// frontChart is a line for each number of devices, from the plan that needs
// most memory to the one that needs least.
type frontChart struct {
	Speed     string      `json:"speed"` // name of the y axis
	DeviceGiB figure      `json:"device_gib"`
	Counts    []frontLine `json:"counts"` // by ascending number of devices
	Best      *frontPoint `json:"best"`   // the best plan of the page, on a line or not
}

// frontPoint is where a plan is on the chart.
type frontPoint struct {
	GiB   figure `json:"gib"`
	Speed figure `json:"speed"`
}

type frontLine struct {
	Devices int      `json:"n"`
	GiB     []figure `json:"gib"`
	Speed   []figure `json:"speed"`
	Plans   []string `json:"plans"`
}

// frontLines is the largest number of lines that a chart can distinguish.
const frontLines = 12

// newFront returns nil without a front or without predicted memory.
func newFront(in *Input) *front {
	choices := in.Front.Choices
	if len(choices) == 0 || choices[0].Prediction.MemoryBytes <= 0 {
		return nil
	}
	groups := byDevices(choices)
	shown := spread(groups, frontLines)
	f := &front{Speed: speedName(&in.Request), chart: frontChart{Speed: speedName(&in.Request), DeviceGiB: nothing()}}
	f.Table = plansTable("Plans no other beats", &in.Request, choices)
	if len(shown) < len(groups) {
		f.Note = fmt.Sprintf("The chart shows %d of the %d numbers of devices, of neighbouring ones the one with the best speed per device; the table has all.", len(shown), len(groups))
	}
	if b := in.Request.Accelerator.MemBytes; b > 0 {
		f.chart.DeviceGiB = figure(b / memory.GiB)
	}
	for _, g := range shown {
		f.chart.Counts = append(f.chart.Counts, newFrontLine(&in.Request, g))
	}
	if best := fitting(in.Ranking.Choices); len(best) > 0 {
		p := newFrontPoint(&in.Request, &best[0])
		f.chart.Best = &p
	}
	return f
}

func newFrontPoint(r *planner.Request, c *planner.Choice) frontPoint {
	return frontPoint{figure(c.Prediction.MemoryBytes / memory.GiB), figure(speed(r, c))}
}

func newFrontLine(r *planner.Request, group []planner.Choice) frontLine {
	l := frontLine{Devices: devices(&group[0])}
	for i := range group {
		p := newFrontPoint(r, &group[i])
		l.GiB = append(l.GiB, p.GiB)
		l.Speed = append(l.Speed, p.Speed)
		l.Plans = append(l.Plans, group[i].Config.Plan.String())
	}
	return l
}

// byDevices groups choices, which are ordered by devices, by their devices.
func byDevices(choices []planner.Choice) [][]planner.Choice {
	var out [][]planner.Choice
	from := 0
	for i := 1; i <= len(choices); i++ {
		if i == len(choices) || devices(&choices[i]) != devices(&choices[from]) {
			out = append(out, choices[from:i])
			from = i
		}
	}
	return out
}

// spread returns at most n of the groups, n at least 2, spread evenly over the
// logarithm of their devices: the first, the last, and of neighbouring ones between
// them the one with the best speed per device of its fastest choice.
func spread(groups [][]planner.Choice, n int) [][]planner.Choice {
	if len(groups) <= n {
		return groups
	}
	last := len(groups) - 1
	from, to := math.Log(count(groups[0])), math.Log(count(groups[last]))
	out, bin := groups[:1:1], -1
	for _, g := range groups[1:last] {
		b := min(int((math.Log(count(g))-from)/(to-from)*float64(n-2)), n-3)
		if b != bin {
			out, bin = append(out, g), b
		} else if kept := out[len(out)-1]; perDevice(g) > perDevice(kept) {
			out[len(out)-1] = g
		}
	}
	return append(out, groups[last])
}

func count(group []planner.Choice) float64 { return float64(devices(&group[0])) }

func perDevice(group []planner.Choice) float64 {
	return group[0].Prediction.Throughput * group[0].Efficiency / count(group)
}
