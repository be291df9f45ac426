package study

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// WriteSVG draws rows as WriteTable lists them: a panel per workload, in it a line
// per scheduler over the loads, with the interval at each. Drawn are the mean JCTs
// over their best lower bounds where these are known everywhere, which takes out
// how much longer the jobs of one seed are than those of another; else the mean
// JCTs, in hours. The picture needs nothing else and follows the reader's colours.
//
// Without loads it is a picture of intervals, see intervals.
func (s *Study) WriteSVG(w io.Writer, rows []Row) error {
	if len(s.Loads) == 0 {
		return newIntervals(s, rows).write(w)
	}
	d := newDrawing(s, rows)
	for i := range s.Workloads {
		d.panel(i)
	}
	d.legend()
	_, err := fmt.Fprintf(w, svgFrame, panelWidth*d.columns(), d.height(), html.EscapeString(d.title()), svgStyle, d.b.String())
	return err
}

// Sizes in the picture, in its own units: pixels where it is not scaled.
const (
	panelWidth, panelHeight = 440, 300
	marginLeft, marginRight = 58, 14
	marginTop, marginBottom = 44, 46
	legendLine, legendWidth = 20, 220
)

const svgFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>%s</title>
<style>%s</style>
<rect class="page" width="100%%" height="100%%"/>
%s</svg>
`

const svgStyle = `
.page { fill: #ffffff; } .ink { fill: #1c2024; } .soft { fill: #5b636b; } .grid { stroke: #dfe3e7; fill: none; }
.c0 { --c: #0068a8; } .c1 { --c: #c8501a; } .c2 { --c: #0a7d5c; } .c3 { --c: #9a4595; } .c4 { --c: #85680a; } .c5 { --c: #00808f; } .c6 { --c: #b3264f; } .c7 { --c: #5d6166; }
.line { stroke: var(--c); fill: none; stroke-width: 1.75; } .dot { fill: var(--c); } .dashed { stroke-dasharray: 6 4; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15181b; } .ink { fill: #e6e9ec; } .soft { fill: #9ca5ad; } .grid { stroke: #333a40; }
  .c0 { --c: #5db2ee; } .c1 { --c: #ff9160; } .c2 { --c: #45cf9f; } .c3 { --c: #d99ad6; } .c4 { --c: #dcb944; } .c5 { --c: #4ccbd8; } .c6 { --c: #ff7d9d; } .c7 { --c: #b4bac0; }
}
`

// drawing is a picture under way.
type drawing struct {
	*Study
	rows   []Row
	figure func(Row) report.Interval // what is drawn, in the unit of the axis
	label  string                    // of the axis
	scale
	b strings.Builder
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
	d.settle()
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

// perLine is how many names the legend has in a line.
func (d *drawing) perLine() int { return d.columns() * panelWidth / legendWidth }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// panel draws the rows of a workload.
func (d *drawing) panel(workload int) {
	d.printf("<g transform=\"translate(%d %d)\">\n", workload%2*panelWidth, workload/2*panelHeight)
	d.printf("<text class=\"ink\" x=\"%d\" y=\"18\" font-weight=\"600\">%s</text>\n", marginLeft, html.EscapeString(d.Workloads[workload].Name))
	d.printf("<text class=\"soft\" x=\"%d\" y=\"34\">%s</text>\n", marginLeft, d.label)
	toY := func(v float64) float64 {
		return panelHeight - marginBottom - d.at(v)*(panelHeight-marginTop-marginBottom)
	}
	for _, v := range marks(d.lo, d.hi, d.log) {
		d.printf("<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n",
			marginLeft, toY(v), panelWidth-marginRight, marginLeft-6, toY(v)+4, strconv.FormatFloat(v, 'g', 4, 64))
	}
	loads := len(d.Loads)
	toX := func(load, scheduler int) float64 {
		width := float64(panelWidth-marginLeft-marginRight) / float64(loads)
		apart := min(width*0.7/float64(len(d.Schedulers)), 5) // so that intervals do not cover each other
		return marginLeft + width*(float64(load)+0.5) + apart*(float64(scheduler)-float64(len(d.Schedulers)-1)/2)
	}
	for i, load := range d.Loads {
		d.printf("<text class=\"soft\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>\n",
			toX(i, (len(d.Schedulers)-1)/2), panelHeight-marginBottom+18, strconv.FormatFloat(load, 'g', -1, 64))
	}
	d.printf("<text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%d\">load</text>\n", panelWidth-marginRight, panelHeight-marginBottom+36)
	first := workload * loads * len(d.Schedulers)
	for k := range d.Schedulers {
		d.line(k, loads, func(load int) Row { return d.rows[first+load*len(d.Schedulers)+k] }, func(load int) float64 { return toX(load, k) }, toY)
	}
	d.printf("</g>\n")
}

// line draws a scheduler.
func (d *drawing) line(k, loads int, row func(int) Row, toX func(int) float64, toY func(float64) float64) {
	path, pen := "", 'M'
	d.printf("<g class=\"%s\">", color(k))
	for i := range loads {
		f := d.figure(row(i))
		if !f.Mean.Defined() {
			pen = 'M'
			continue
		}
		x, y := toX(i), toY(float64(f.Mean))
		path += fmt.Sprintf("%c%.1f %.1f", pen, x, y)
		pen = 'L'
		d.printf("<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", x, y)
		if f.Lo.Defined() && f.Hi.Defined() {
			d.printf("<path class=\"line\" d=\"M%.1f %.1fV%.1f\"/>", x, toY(float64(f.Lo)), toY(float64(f.Hi)))
		}
	}
	d.printf("<path class=\"line%s\" d=\"%s\"/></g>\n", dashed(k), path)
}

func (d *drawing) legend() {
	for k, s := range d.Schedulers {
		x := marginLeft/4 + k%d.perLine()*legendWidth
		y := d.bodyHeight() + k/d.perLine()*legendLine + 10
		d.printf("<g class=\"%s\"><path class=\"line%s\" d=\"M%d %dh22\"/><circle class=\"dot\" cx=\"%d\" cy=\"%d\" r=\"3\"/></g><text class=\"ink\" x=\"%d\" y=\"%d\">%s</text>\n",
			color(k), dashed(k), x, y, x+11, y, x+28, y+4, html.EscapeString(s.Name))
	}
}

func color(k int) string { return "c" + strconv.Itoa(k%8) }

// dashed tells the ninth line and those after it from the first.
func dashed(k int) string {
	if k < 8 {
		return ""
	}
	return " dashed"
}
