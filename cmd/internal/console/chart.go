package console

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/number"
)

// Chart is a line through points, drawn with braille characters of 2 x 4 dots.
type Chart struct {
	X, Y       string       // names of the axes
	Points     [][2]float64 // by ascending x; others than finite ones are left out
	LogX, LogY bool         // logarithmic axes: points must be above 0
}

// Size of a chart in characters.
const (
	chartWidth  = 60
	chartHeight = 15
)

// Write draws the chart. Without two points it says so.
func (c Chart) Write(w io.Writer) error {
	var points [][2]float64
	for _, p := range c.Points {
		if q := [2]float64{scaled(p[0], c.LogX), scaled(p[1], c.LogY)}; !math.IsInf(q[0], 0) && !math.IsInf(q[1], 0) && !math.IsNaN(q[0]+q[1]) {
			points = append(points, q)
		}
	}
	if len(points) < 2 {
		_, err := fmt.Fprintf(w, "a chart of %s against %s needs two points\n", c.Y, c.X)
		return err
	}
	low, high := points[0], points[0]
	for _, p := range points {
		for i := range p {
			low[i], high[i] = min(low[i], p[i]), max(high[i], p[i])
		}
	}
	var dots [4 * chartHeight][2 * chartWidth]bool
	place := func(p [2]float64) (x, y int) {
		share := func(i int) float64 {
			if high[i] == low[i] {
				return 0.5
			}
			return (p[i] - low[i]) / (high[i] - low[i])
		}
		return int(math.Round(share(0) * (2*chartWidth - 1))), int(math.Round((1 - share(1)) * (4*chartHeight - 1)))
	}
	for i := 1; i < len(points); i++ {
		x0, y0 := place(points[i-1])
		x1, y1 := place(points[i])
		steps := max(abs(x1-x0), abs(y1-y0), 1)
		for s := range steps + 1 {
			t := float64(s) / float64(steps)
			dots[int(math.Round(float64(y0)+t*float64(y1-y0)))][int(math.Round(float64(x0)+t*float64(x1-x0)))] = true
		}
	}
	return c.write(w, &dots, low, high)
}

func (c Chart) write(w io.Writer, dots *[4 * chartHeight][2 * chartWidth]bool, low, high [2]float64) error {
	var b strings.Builder
	top, bottom := number.Significant(unscaled(high[1], c.LogY), 3), number.Significant(unscaled(low[1], c.LogY), 3)
	margin := max(len(top), len(bottom))
	fmt.Fprintf(&b, "%*s  %s\n", margin, "", c.Y)
	for row := range chartHeight {
		label := ""
		switch row {
		case 0:
			label = top
		case chartHeight - 1:
			label = bottom
		}
		fmt.Fprintf(&b, "%*s │", margin, label)
		line := make([]rune, chartWidth)
		for col := range chartWidth {
			line[col] = braille(dots, row, col)
		}
		b.WriteString(strings.TrimRight(string(line), "\u2800") + "\n")
	}
	fmt.Fprintf(&b, "%*s └%s\n", margin, "", strings.Repeat("─", chartWidth))
	left, right := number.Significant(unscaled(low[0], c.LogX), 3), number.Significant(unscaled(high[0], c.LogX), 3)
	gap := max(chartWidth-len(left)-len(right)-len(c.X), 2)
	fmt.Fprintf(&b, "%*s  %s%s%s%s%s\n", margin, "", left, strings.Repeat(" ", gap/2), c.X, strings.Repeat(" ", gap-gap/2), right)
	_, err := io.WriteString(w, b.String())
	return err
}

// braille returns the character of a cell. Its dots are numbered 1 2 3 7 down the left and 4 5 6 8 down the right column.
func braille(dots *[4 * chartHeight][2 * chartWidth]bool, row, col int) rune {
	bits := [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}
	out := rune(0x2800)
	for y := range 4 {
		for x := range 2 {
			if dots[4*row+y][2*col+x] {
				out |= bits[y][x]
			}
		}
	}
	return out
}

func scaled(v float64, log bool) float64 {
	if log {
		return math.Log10(v)
	}
	return v
}

func unscaled(v float64, log bool) float64 {
	if log {
		return math.Pow(10, v)
	}
	return v
}

func abs(n int) int { return max(n, -n) }
