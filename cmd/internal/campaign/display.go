package campaign

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// Display shows the progress of a campaign: on a terminal in the progress line of the console,
// elsewhere one line per acknowledged point, which scripts may read.
type Display struct {
	w        io.Writer
	camp     profiler.Campaign
	terminal bool

	mu    sync.Mutex
	state profiler.State
	next  *profiler.Step
	since time.Time         // next began
	last  *spec.Measurement // acknowledged
	said  string            // its line, not printed before the next point is known
}

// NewDisplay starts a display on w.
func NewDisplay(w io.Writer, camp profiler.Campaign) *Display {
	p := &Display{w: w, camp: camp, terminal: console.IsTerminal(w)}
	console.Show(w, p.status)
	return p
}

// Event records an event of a run.
func (d *Display) Event(e profiler.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state, d.next = e.State, e.Next
	if e.Last != nil {
		d.acknowledge(*e.Last)
	}
	if e.Next != nil {
		d.since = time.Now()
		d.say(pointNext(*e.Next))
	}
}

// acknowledge records that a point is stored. On a terminal only lines of points that are not
// ok stay.
func (d *Display) acknowledge(m spec.Measurement) {
	d.last = &m
	d.said = fmt.Sprintf("profile %s: %s: %s (held %s, %s)", d.camp.Name, d.count(), PointResult(m),
		Duration(profiler.HeldSec(m)), d.cost())
	if d.terminal {
		if m.Outcome != spec.OK {
			fmt.Fprintln(d.w, d.said)
		}
		d.said = ""
	}
}

// say prints the line of the last point and the next point.
func (d *Display) say(next string) {
	if d.terminal {
		return
	}
	line := cmp.Or(d.said, "profile "+d.camp.Name+": "+d.count())
	d.said = ""
	fmt.Fprintln(d.w, line+", "+next)
}

// Finish ends the display.
func (d *Display) Finish() {
	console.Show(d.w, nil)
	if d.said != "" {
		fmt.Fprintln(d.w, d.said)
	}
}

// status is the text of the progress line.
func (d *Display) status() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	parts := []string{d.count() + ", " + d.cost()}
	if d.next != nil {
		parts = append(parts, d.underWay())
	}
	if d.last != nil {
		parts = append(parts, "last "+lastResult(*d.last))
	}
	return strings.Join(parts, " | ")
}

// underWay describes the point that is being measured: "gpt-tiny dp=2,mb=4: 3 s
// of about 5.0 s".
func (d *Display) underWay() string {
	s := fmt.Sprintf("%s: %.0f s", PointName(d.next.Point.Config), time.Since(d.since).Seconds())
	if d.next.Seconds > 0 {
		s += " of about " + Duration(d.next.Seconds)
	}
	return s
}

// count is the progress of the run: "7 of 40 points".
func (d *Display) count() string {
	return fmt.Sprintf("%d of %d points", d.state.Done, pointsWanted(d.camp, d.state))
}

// cost is the cost so far and the remaining time: "0.021 device-hours so far, 4 m 10 s to go".
func (d *Display) cost() string {
	s := DeviceHours(d.state.DeviceSec/3600) + " device-hours so far"
	if d.state.ETASec > 0 {
		s += ", " + Duration(d.state.ETASec) + " to go"
	}
	return s
}

// DeviceHours writes device-hours with two significant digits.
func DeviceHours(h float64) string {
	if h < 1e-5 {
		return "0"
	}
	return number.Significant(h, 2)
}

// pointsWanted returns the most points of a run: those of the space that are not skipped,
// within the budget.
func pointsWanted(camp profiler.Campaign, s profiler.State) int {
	n := max(s.Points-s.Skipped, s.Done)
	if b := camp.Budget.Points; b > 0 {
		n = min(n, b)
	}
	return n
}

// PointName names a point in a line: model, sequence and plan.
func PointName(c spec.Config) string {
	text := c.Model.Name
	if n := c.Seq(); n > 0 && n != c.Model.SeqLen {
		text += fmt.Sprintf(" seq=%d", n)
	}
	text += " " + c.Plan.String()
	if c.Alone() {
		text += ", " + c.AloneText()
	}
	return text
}

// pointNext describes the next point: why it is measured, and for how long.
func pointNext(s profiler.Step) string {
	about := ""
	if s.Seconds > 0 {
		about = ", about " + Duration(s.Seconds)
	}
	return fmt.Sprintf("next: %s (%s%s)", PointName(s.Point.Config), s.Why, about)
}

// PointResult is the outcome of a point: "gpt-tiny dp=2,... ok 0.123 s ±1.2 %".
func PointResult(m spec.Measurement) string { return PointName(m.Config) + " " + lastResult(m) }

func lastResult(m spec.Measurement) string {
	if m.Outcome != spec.OK {
		return fmt.Sprintf("%s: %s", m.Outcome, firstLine(m.Reason))
	}
	s := fmt.Sprintf("%s %s s", m.Outcome, number.Significant(m.MedianStepSec(), 3))
	if half, ok := HalfWidth(m); ok {
		s += " ±" + number.Significant(100*half, 2) + " %"
	}
	if m.Env[profiler.EnvThrottle] != "" {
		s += ", throttled"
	}
	if m.Env[profiler.EnvShared] != "" {
		s += ", device shared"
	}
	if m.Doubt != "" {
		s += ", in doubt"
	}
	return s
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return console.Cut(s, 200)
}
