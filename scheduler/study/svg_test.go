package study

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// drawn returns a study of two workloads, three loads and two schedulers, with JCTs of 1
// to 12 hours ± 1 hour, and its picture.
func drawn(t *testing.T, change func(*Study, []Row)) string {
	t.Helper()
	s := &Study{
		Name: "a < b", Workloads: []Workload{{Name: "one"}, {Name: "two & three"}}, Loads: []float64{0.5, 0.7, 0.9},
		Schedulers: []Scheduler{{Name: "fifo"}, {Name: "las"}},
	}
	var rows []Row
	for i := range 12 {
		v := report.Number(i+1) * 3600
		none := report.Interval{Mean: report.Undefined(), Lo: report.Undefined(), Hi: report.Undefined()}
		rows = append(rows, Row{AvgJCT: report.Interval{Mean: v, Lo: v - 3600, Hi: v + 3600}, OverBound: Pairs{none, none}})
	}
	if change != nil {
		change(s, rows)
	}
	var b bytes.Buffer
	if err := s.WriteSVG(&b, rows); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	return b.String()
}

// wellFormed checks that a picture is XML, without invalid numbers.
func wellFormed(t *testing.T, picture string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!", "http://www.w3.org/1999"} {
		if strings.Contains(picture, bad) {
			t.Errorf("the picture holds %s", bad)
		}
	}
}

var dots = regexp.MustCompile(`<circle class="dot" cx="([0-9.]+)" cy="([0-9.]+)" r="3"/>(?:<path class="line" d="M[0-9. V]+"/>)?`)

// heights returns the positions of the figures, in the order of the picture, without the
// legend.
func heights(t *testing.T, picture string) []float64 {
	t.Helper()
	var out []float64
	for _, m := range dots.FindAllStringSubmatch(strings.Split(picture, "h22")[0], -1) {
		y, err := strconv.ParseFloat(m[2], 64)
		if err != nil || y < marginTop || y > panelHeight-marginBottom {
			t.Errorf("a figure at %q, %v, outside of its panel", m[2], err)
		}
		out = append(out, y)
	}
	return out
}

func TestSVG(t *testing.T) {
	picture := drawn(t, nil)
	ys := heights(t, picture)
	if len(ys) != 12 {
		t.Fatalf("%d figures, want 12", len(ys))
	}
	// The line of fifo in the first panel has rows 0, 2 and 4; larger is higher up.
	if !(ys[0] > ys[1] && ys[1] > ys[2] && ys[3] < ys[0]) {
		t.Errorf("heights %v", ys)
	}
	for _, want := range []string{"a &lt; b: mean JCT, hours, by load", "two &amp; three", ">0.7</text>", ">las</text>", "prefers-color-scheme: dark"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

func TestSVGOfBounds(t *testing.T) {
	picture := drawn(t, func(_ *Study, rows []Row) {
		for i := range rows {
			v := report.Number(i + 1)
			rows[i].OverBound.AvgJCT = report.Interval{Mean: v, Lo: report.Undefined(), Hi: report.Undefined()}
		}
	})
	if !strings.Contains(picture, "mean JCT over its lower bound") || len(heights(t, picture)) != 12 {
		t.Error("not the figures over their bounds")
	}
}

func TestSVGOfLittle(t *testing.T) {
	if got := heights(t, drawn(t, func(_ *Study, rows []Row) {
		for i := range rows {
			rows[i].AvgJCT = rows[i].OverBound.AvgJCT
		}
	})); len(got) != 0 {
		t.Errorf("%d figures of none", len(got))
	}
}
