package learn

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/planner/report/chart"
)

// WriteCSV writes a learning curve, one row per point. avg_jct_s and teacher_avg_jct_s are empty without validation.
func WriteCSV(w io.Writer, points []Point) error {
	c := csv.NewWriter(w)
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	tried := func(p Point, v float64) string {
		if p.JCTSec == 0 || v == 0 {
			return ""
		}
		return number(v)
	}
	if err := c.Write([]string{"phase", "update", "policy_loss", "value_loss", "entropy", "reward_per_job", "avg_jct_s", "teacher_avg_jct_s", "best"}); err != nil {
		return err
	}
	for _, p := range points {
		if err := c.Write([]string{p.Phase, strconv.Itoa(p.Update), number(p.Losses.Policy), number(p.Losses.Value), number(p.Losses.Entropy), number(p.Reward),
			tried(p, p.JCTSec), tried(p, p.Teacher), strconv.FormatBool(p.Best)}); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// Sizes of the picture, in pixels.
const (
	curveWidth, curveHeight = 720, 320
	marginLeft, marginRight = 70, 20
	marginTop, marginBottom = 30, 50
)

// WriteSVG plots the mean completion times of a learning curve by validation, with the teacher's as a dashed line.
func WriteSVG(w io.Writer, points []Point) error {
	tried := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.JCTSec == 0 })
	p := &chart.Picture{Width: curveWidth, Height: curveHeight, Title: "mean completion time on validation workloads, as dl2 learns"}
	axis := curveAxis(tried)
	x := func(i int) float64 {
		return marginLeft + (float64(i)+0.5)/float64(len(tried))*(curveWidth-marginLeft-marginRight)
	}
	y := func(v float64) float64 {
		return curveHeight - marginBottom - axis.At(v)*(curveHeight-marginTop-marginBottom)
	}
	for _, v := range axis.Marks() {
		p.Row(y(v), marginLeft, curveWidth-marginRight)
		p.Text(chart.Soft, chart.End, marginLeft-6, y(v)+4, fmt.Sprintf("%g s", v))
	}
	p.Heading(marginLeft, 18, "mean completion time on validation workloads")
	var line strings.Builder
	for i, t := range tried {
		if i == 0 || tried[i-1].Phase != t.Phase {
			p.Text(chart.Soft, chart.Start, x(i), curveHeight-marginBottom+20, t.Phase+" from here")
		}
		fmt.Fprintf(&line, "%c%.1f %.1f", "ML"[min(i, 1)], x(i), y(t.JCTSec))
	}
	p.Begin(0)
	for i, t := range tried {
		p.Printf("<g><title>%s %d: %.0f s</title>", t.Phase, t.Update, t.JCTSec)
		p.Dot(x(i), y(t.JCTSec), 2.5)
		p.End()
	}
	p.Line(line.String(), false)
	p.End()
	if len(tried) > 0 && tried[0].Teacher > 0 {
		v := y(tried[0].Teacher)
		p.Begin(1)
		p.Line(fmt.Sprintf("M%d %.1fH%d", marginLeft, v, curveWidth-marginRight), true)
		p.End()
		p.Text(chart.Soft, chart.End, curveWidth-marginRight, v-5, "the teacher")
	}
	return p.Write(w)
}

// curveAxis covers all completion times with a margin.
func curveAxis(tried []Point) chart.Axis {
	if len(tried) == 0 {
		return chart.Axis{Lo: 0, Hi: 1}
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, t := range tried {
		for _, v := range []float64{t.JCTSec, t.Teacher} {
			if v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	return chart.Axis{Lo: max(lo-0.05*(hi-lo)-1, 0), Hi: hi + 0.05*(hi-lo) + 1}
}
