package study

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/planner/report/chart"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// WriteSVG draws rows: a panel per workload with a line per scheduler over the loads,
// with intervals. The figure is the mean JCT over its lower bound if all rows have one,
// which removes differences between the jobs of seeds; else the mean JCT in hours. The
// picture is self-contained and follows the reader's light or dark colours.
//
// Without loads it draws intervals instead.
func (s *Study) WriteSVG(w io.Writer, rows []Row) error {
	if len(s.Loads) == 0 {
		return newIntervals(s, rows).write(w)
	}
	d := newDrawing(s, rows)
	for i := range s.Workloads {
		d.panel(i)
	}
	d.legend()
	d.Picture.Width, d.Picture.Height, d.Picture.Title = panelWidth*d.columns(), d.height(), d.title()
	return d.Picture.Write(w)
}

// Sizes in the picture, in pixels at its natural size.
const (
	panelWidth, panelHeight = 440, 300
	marginLeft, marginRight = 58, 14
	marginTop, marginBottom = 44, 46
	legendLine, legendWidth = 20, 220
)

// drawing is an unfinished picture.
type drawing struct {
	*Study
	rows   []Row
	figure func(Row) report.Interval // the figure drawn, in the unit of the axis
	label  string                    // label of the axis
	scale
	chart.Picture
}

func newDrawing(s *Study, rows []Row) *drawing {
	d := &drawing{Study: s, rows: rows, label: "mean JCT over its lower bound", scale: emptyScale()}
	d.figure = func(r Row) report.Interval { return r.OverBound.AvgJCT }
	if slices.ContainsFunc(rows, func(r Row) bool { return !r.OverBound.AvgJCT.Mean.Defined() }) {
		d.label = "mean JCT, hours"
		d.figure = func(r Row) report.Interval {
			i := r.AvgJCT
			return report.Interval{Mean: i.Mean / 3600, Lo: i.Lo / 3600, Hi: i.Hi / 3600}
		}
	}
	for _, r := range rows {
		d.include(d.figure(r))
	}
	d.choose()
	return d
}

func (d *drawing) title() string {
	return fmt.Sprintf("%s: %s, by load", d.Name, d.label)
}

func (d *drawing) columns() int { return min(len(d.Workloads), 2) }

func (d *drawing) bodyHeight() int { return (len(d.Workloads) + 1) / 2 * panelHeight }

func (d *drawing) height() int {
	return d.bodyHeight() + (len(d.Schedulers)+d.perLine()-1)/d.perLine()*legendLine + 12
}

// perLine is the number of names in a line of the legend.
func (d *drawing) perLine() int { return d.columns() * panelWidth / legendWidth }

// panel draws the rows of a workload.
func (d *drawing) panel(workload int) {
	d.Printf("<g transform=\"translate(%d %d)\">\n", workload%2*panelWidth, workload/2*panelHeight)
	d.Heading(marginLeft, 18, d.Workloads[workload].Name)
	d.Text(chart.Soft, chart.Start, marginLeft, 34, d.label)
	toY := func(v float64) float64 {
		return panelHeight - marginBottom - d.At(v)*(panelHeight-marginTop-marginBottom)
	}
	for _, v := range d.Marks() {
		d.Row(toY(v), marginLeft, panelWidth-marginRight)
		d.Text(chart.Soft, chart.End, marginLeft-6, toY(v)+4, strconv.FormatFloat(v, 'g', 4, 64))
	}
	loads := len(d.Loads)
	toX := func(load, scheduler int) float64 {
		width := float64(panelWidth-marginLeft-marginRight) / float64(loads)
		apart := min(width*0.7/float64(len(d.Schedulers)), 5) // keeps intervals from covering each other
		return marginLeft + width*(float64(load)+0.5) + apart*(float64(scheduler)-float64(len(d.Schedulers)-1)/2)
	}
	for i, load := range d.Loads {
		d.Text(chart.Soft, chart.Middle, toX(i, (len(d.Schedulers)-1)/2), panelHeight-marginBottom+18, strconv.FormatFloat(load, 'g', -1, 64))
	}
	d.Text(chart.Soft, chart.End, panelWidth-marginRight, panelHeight-marginBottom+36, "load")
	first := workload * loads * len(d.Schedulers)
	for k := range d.Schedulers {
		d.line(k, loads, func(load int) Row { return d.rows[first+load*len(d.Schedulers)+k] }, func(load int) float64 { return toX(load, k) }, toY)
	}
	d.Printf("</g>\n")
}

// line draws a scheduler.
func (d *drawing) line(k, loads int, row func(int) Row, toX func(int) float64, toY func(float64) float64) {
	path, pen := "", 'M'
	d.Begin(k)
	for i := range loads {
		f := d.figure(row(i))
		if !f.Mean.Defined() {
			pen = 'M'
			continue
		}
		x, y := toX(i), toY(float64(f.Mean))
		path += fmt.Sprintf("%c%.1f %.1f", pen, x, y)
		pen = 'L'
		d.Dot(x, y, 3)
		if f.Lo.Defined() && f.Hi.Defined() {
			d.Line(fmt.Sprintf("M%.1f %.1fV%.1f", x, toY(float64(f.Lo)), toY(float64(f.Hi))), false)
		}
	}
	d.Line(path, dashed(k))
	d.End()
}

func (d *drawing) legend() {
	for k, s := range d.Schedulers {
		x := marginLeft/4 + k%d.perLine()*legendWidth
		y := d.bodyHeight() + k/d.perLine()*legendLine + 10
		d.Begin(k)
		d.Line(fmt.Sprintf("M%d %dh22", x, y), dashed(k))
		d.Dot(float64(x+11), float64(y), 3)
		d.End()
		d.Text(chart.Ink, chart.Start, float64(x+28), float64(y+4), s.Name)
	}
}

// dashed reports whether the colour of the k-th line is also that of an earlier one.
func dashed(k int) bool { return k >= 8 }
