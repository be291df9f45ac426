package learn

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// WriteCSV writes a learning curve, a row per point. avg_jct_s and teacher_avg_jct_s
// are blank where the policy was not tried.
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

// Sizes of the picture, in its own units.
const (
	curveWidth, curveHeight = 720, 320
	marginLeft, marginRight = 70, 20
	marginTop, marginBottom = 30, 50
)

const curveFrame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>mean completion time on validation workloads, as dl2 learns</title>
<style>.page { fill: #ffffff; } .ink { fill: #1c2024; } .soft { fill: #5b636b; } .grid { stroke: #dfe3e7; }
.line { stroke: #0068a8; fill: none; stroke-width: 1.75; } .dot { fill: #0068a8; } .teacher { stroke: #c8501a; stroke-dasharray: 6 4; }
@media (prefers-color-scheme: dark) { .page { fill: #15181b; } .ink { fill: #e6e9ec; } .soft { fill: #9ca5ad; } .grid { stroke: #333a40; }
.line { stroke: #5db2ee; } .dot { fill: #5db2ee; } .teacher { stroke: #ff9160; } }</style>
<rect class="page" width="100%%" height="100%%"/>
%s</svg>
`

// WriteSVG draws the mean completion times of a learning curve over the times at which
// the policy was tried, one after the other, with the teacher's as a broken line. The
// picture needs nothing else and follows the reader's colours.
func WriteSVG(w io.Writer, points []Point) error {
	var tried []Point
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		if p.JCTSec == 0 {
			continue
		}
		tried = append(tried, p)
		for _, v := range []float64{p.JCTSec, p.Teacher} {
			if v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if len(tried) == 0 {
		lo, hi = 0, 1
	}
	lo, hi = max(lo-0.05*(hi-lo)-1, 0), hi+0.05*(hi-lo)+1
	x := func(i int) float64 {
		return marginLeft + (float64(i)+0.5)/float64(len(tried))*(curveWidth-marginLeft-marginRight)
	}
	y := func(v float64) float64 {
		return marginTop + (hi-v)/(hi-lo)*(curveHeight-marginTop-marginBottom)
	}
	var b, line strings.Builder
	for k := range 5 {
		v := lo + (hi-lo)*float64(k)/4
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="soft" x="%d" y="%.1f" text-anchor="end">%.0f s</text>`+"\n",
			marginLeft, curveWidth-marginRight, y(v), y(v), marginLeft-6, y(v)+4, v)
	}
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="18">mean completion time on validation workloads</text>`+"\n", marginLeft)
	for i, p := range tried {
		fmt.Fprintf(&line, "%.1f,%.1f ", x(i), y(p.JCTSec))
		fmt.Fprintf(&b, `<circle class="dot" cx="%.1f" cy="%.1f" r="2.5"><title>%s %d: %.0f s</title></circle>`+"\n", x(i), y(p.JCTSec), p.Phase, p.Update, p.JCTSec)
		if i == 0 || tried[i-1].Phase != p.Phase {
			fmt.Fprintf(&b, `<text class="soft" x="%.1f" y="%d">%s from here</text>`+"\n", x(i), curveHeight-marginBottom+20, p.Phase)
		}
	}
	fmt.Fprintf(&b, `<polyline class="line" points="%s"/>`+"\n", strings.TrimSpace(line.String()))
	if len(tried) > 0 && tried[0].Teacher > 0 {
		v := y(tried[0].Teacher)
		fmt.Fprintf(&b, `<line class="teacher" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="soft" x="%d" y="%.1f" text-anchor="end">the teacher</text>`+"\n",
			marginLeft, curveWidth-marginRight, v, v, curveWidth-marginRight, v-5)
	}
	_, err := fmt.Fprintf(w, curveFrame, curveWidth, curveHeight, b.String())
	return err
}
