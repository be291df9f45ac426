package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// pageBars bounds the bars of a page, over all its runs.
const pageBars = 40000

// ganttChart is the Gantt chart of a run as a page draws it: bars per device, or
// rows of nodes coloured by the share of devices held.
type ganttChart struct {
	EndSec Number `json:"end_s"`
	About  string `json:"about"` // explains the chart

	Lanes   int      `json:"lanes,omitempty"` // devices
	Nodes   []int    `json:"nodes,omitempty"` // first lane of each
	Jobs    []string `json:"jobs,omitempty"`
	UnitSec Number   `json:"unit_s,omitempty"` // unit of from and to in Bars
	Bars    []int    `json:"bars,omitempty"`   // five numbers per bar: lane, lanes, from, to, index of the job or -1 = down

	StepSec Number   `json:"step_s,omitempty"`
	Rows    []string `json:"rows,omitempty"`  // a base-36 digit per step: 0 = no device held, z = all
	Names   []string `json:"names,omitempty"` // names of the rows
}

// chart returns the chart that a page draws, with at most limit bars. ok is false
// for a run without events.
func (g *Gantt) chart(limit int) (c ganttChart, ok bool) {
	if g == nil || g.now <= 0 {
		return c, false
	}
	c.EndSec = seconds(g.now)
	if !g.over && len(g.bars) <= limit {
		g.drawBars(&c)
		return c, true
	}
	g.drawRows(&c, limit)
	return c, true
}

func (g *Gantt) drawBars(c *ganttChart) {
	nodes := len(g.first) - 1
	c.Lanes, c.Nodes = g.first[nodes], g.first[:nodes]
	c.About = "A row for every device, by node; a bar is a job, or two that share devices."
	if slices.ContainsFunc(g.bars, func(b bar) bool { return b.down }) {
		c.About += " Nodes that were down are hatched."
	}
	unit := math.Pow(10, math.Ceil(math.Log10(g.now.Seconds()/1e6)))
	c.UnitSec = Number(unit)
	index := map[spec.JobID]int{}
	for _, b := range sortedBars(g.bars) {
		k, known := index[b.job]
		switch {
		case b.down:
			k = -1
		case !known:
			k = len(c.Jobs)
			index[b.job] = k
			c.Jobs = append(c.Jobs, string(b.job))
		}
		c.Bars = append(c.Bars, b.lane, b.n, int(math.Round(b.from.Seconds()/unit)), int(math.Round(b.to.Seconds()/unit)), k)
	}
}

// sortedBars returns bars by begin, then lane.
func sortedBars(bars []bar) []bar {
	return slices.SortedFunc(slices.Values(bars), func(a, b bar) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.lane, b.lane))
	})
}

const base36 = "0123456789abcdefghijklmnopqrstuvwxyz"

func (g *Gantt) drawRows(c *ganttChart, limit int) {
	nodes, devices := len(g.row), 0
	c.StepSec = seconds(g.bucket)
	steps := int((g.now + g.bucket - 1) / g.bucket)
	next := 0
	for i := range g.rows {
		r := &g.rows[i]
		devices += r.devices
		var b strings.Builder
		for k := range steps {
			width := min(g.bucket, g.now-g.bucket*time.Duration(k)).Seconds()
			share := r.sums[k] / width / float64(r.devices)
			b.WriteByte(base36[int(math.Round(min(max(share, 0), 1)*35))])
		}
		c.Rows = append(c.Rows, b.String())
		c.Names = append(c.Names, nodeNames(next, r.nodes))
		next += r.nodes
	}
	c.About = fmt.Sprintf("The %d devices of %d nodes in %d rows of neighbouring nodes, since there are more than %d devices or %d bars to draw. "+
		"The stronger the colour, the more of a row's devices are held, as means over equal steps of time. The file of --events-out has single jobs.",
		devices, nodes, len(g.rows), ganttLanes, min(limit, ganttBars))
}

func nodeNames(first, n int) string {
	if n == 1 {
		return fmt.Sprintf("node %d", first)
	}
	return fmt.Sprintf("nodes %d to %d", first, first+n-1)
}
