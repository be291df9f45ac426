package study

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/planner/report/chart"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// intervals is a picture of means with their intervals: a line per workload and
// scheduler, with mean JCTs in the left panel and makespans in the right. They are
// relative to the baseline if there is one, with those over all workloads below; else
// in hours.
type intervals struct {
	*Study
	lines  []intervalLine
	scales [2]scale
	labels [2]string // labels of the panels
	names  int       // width of the names
	chart.Picture
}

// intervalLine is a line of the picture, or a heading without figures.
type intervalLine struct {
	heading, name string
	color         int
	figures       [2]report.Interval
}

// Sizes in the picture, in its own units.
const (
	intervalPanel, intervalLineHeight = 300, 18
	intervalTop, intervalGap          = 48, 24
	letterWidth                       = 7 // most per letter of a name
)

func newIntervals(s *Study, rows []Row) *intervals {
	d := &intervals{Study: s, labels: [2]string{"mean JCT, hours", "makespan, hours"}, scales: [2]scale{emptyScale(), emptyScale()}}
	if slices.ContainsFunc(rows, func(r Row) bool { return r.Scheduler != r.ComparedWith && r.OfBaseline.AvgJCT.Mean.Defined() }) {
		to := s.ofBaseline(rows)
		d.labels = [2]string{"mean JCT " + to, "makespan " + to}
		d.compare(rows)
		for i := range d.scales {
			d.scales[i].include(report.Interval{Mean: 1, Lo: 1, Hi: 1})
		}
	} else {
		d.absolute(rows)
	}
	for _, l := range d.lines {
		d.names = max(d.names, letterWidth*max(utf8.RuneCountInString(l.name), utf8.RuneCountInString(l.heading)))
		for i := range d.scales {
			if l.heading == "" {
				d.scales[i].include(l.figures[i])
			}
		}
	}
	for i := range d.scales {
		d.scales[i].choose()
	}
	return d
}

// compare adds the lines of schedulers with a baseline.
func (d *intervals) compare(rows []Row) {
	for i, r := range rows {
		d.head(rows, i)
		if r.Scheduler != r.ComparedWith {
			d.add(r.Scheduler, r.OfBaseline.AvgJCT, r.OfBaseline.Makespan)
		}
	}
	all := d.Overall(rows)
	if len(all) > 0 {
		d.lines = append(d.lines, intervalLine{heading: "all"})
	}
	for _, w := range all {
		d.add(w.Scheduler, w.OfBaseline.AvgJCT, w.OfBaseline.Makespan)
	}
}

func (d *intervals) absolute(rows []Row) {
	hours := func(i report.Interval) report.Interval {
		return report.Interval{Mean: i.Mean / 3600, Lo: i.Lo / 3600, Hi: i.Hi / 3600}
	}
	for i, r := range rows {
		d.head(rows, i)
		d.add(r.Scheduler, hours(r.AvgJCT), hours(r.Makespan))
	}
}

// head adds the heading of a workload before its first row, if there are several.
func (d *intervals) head(rows []Row, i int) {
	if len(d.Workloads) > 1 && (i == 0 || rows[i-1].Workload != rows[i].Workload) {
		d.lines = append(d.lines, intervalLine{heading: rows[i].Workload})
	}
}

func (d *intervals) add(scheduler string, jct, span report.Interval) {
	k := slices.IndexFunc(d.Schedulers, func(s Scheduler) bool { return s.Name == scheduler })
	d.lines = append(d.lines, intervalLine{name: scheduler, color: max(k, 0), figures: [2]report.Interval{jct, span}})
}

func (d *intervals) left(panel int) int { return d.names + 16 + panel*(intervalPanel+intervalGap) }

func (d *intervals) x(panel int, v float64) float64 {
	return float64(d.left(panel)) + intervalPanel*d.scales[panel].At(v)
}

func (d *intervals) bottom() int { return intervalTop + len(d.lines)*intervalLineHeight + 6 }

func (d *intervals) write(w io.Writer) error {
	for panel := range d.scales {
		d.axis(panel)
	}
	for i, l := range d.lines {
		d.line(float64(intervalTop+i*intervalLineHeight+intervalLineHeight/2+3), l)
	}
	title := fmt.Sprintf("%s: %s and %s", d.Name, d.labels[0], d.labels[1])
	d.Picture.Width, d.Picture.Height, d.Picture.Title = d.left(2), d.bottom()+8, title
	return d.Picture.Write(w)
}

// axis draws the heading and the grid of a panel.
func (d *intervals) axis(panel int) {
	s := &d.scales[panel]
	d.Heading(float64(d.left(panel)), 18, d.labels[panel])
	for _, v := range s.Marks() {
		d.Column(d.x(panel, v), intervalTop-6, float64(d.bottom()))
		d.Text(chart.Soft, chart.Middle, d.x(panel, v), intervalTop-12, strconv.FormatFloat(v, 'g', 4, 64))
	}
}

// line draws a line of the picture centred at y.
func (d *intervals) line(y float64, l intervalLine) {
	if l.heading != "" {
		d.Heading(8, y+4, l.heading)
		return
	}
	d.Begin(l.color)
	d.Text(chart.Soft, chart.End, float64(d.left(0)-8), y+4, l.name)
	for panel, f := range l.figures {
		if f.Lo.Defined() && f.Hi.Defined() {
			d.Line(fmt.Sprintf("M%.1f %.1fH%.1f", d.x(panel, float64(f.Lo)), y, d.x(panel, float64(f.Hi))), false)
		}
		if f.Mean.Defined() {
			d.Dot(d.x(panel, float64(f.Mean)), y, 3.5)
		}
	}
	d.End()
}
