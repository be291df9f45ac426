package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pacer-ml/pacer/planner/report/chart"
)

// sizes are the clusters of the figure, in nodes.
var sizes = []int{12, 40, 125, 400, 1250, 4000, 12500}

// curve is the processor time per event of one policy, by size of the cluster.
type curve struct {
	name    string
	devices []float64
	micros  []float64 // of the processor per event
}

// figure measures clusters of all sizes and draws the cost of an event into
// scale.svg of a directory.
func figure(ctx context.Context, w io.Writer, o options, contenders []contender) error {
	curves := make([]curve, len(contenders))
	for _, n := range sizes {
		s := o.scale
		s.nodes = n
		outcomes, err := table(ctx, w, s, contenders)
		if err != nil {
			return err
		}
		for i, r := range outcomes {
			c := &curves[i]
			c.name = contenders[i].String()
			c.devices = append(c.devices, float64(n*s.perNode))
			c.micros = append(c.micros, r.micros())
		}
	}
	if err := os.MkdirAll(o.figure, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(o.figure, "scale.svg"))
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Processor time per event, %d jobs at load %g", o.jobs, o.load)
	return errors.Join(draw(title, curves).Write(file), file.Close())
}

// Sizes in the picture, in its own units, and the ends of its axes.
const (
	width, height = 640, 400
	left, right   = 64, 16
	top, bottom   = 44, 84
)

// The axes: devices of the cluster, and microseconds per event.
var (
	devicesAxis = chart.Axis{Lo: 50, Hi: 200_000, Log: true}
	microsAxis  = chart.Axis{Lo: 0.5, Hi: 200, Log: true}
)

// draw returns a picture of the curves.
func draw(title string, curves []curve) *chart.Picture {
	p := &chart.Picture{Width: width, Height: height, Title: title}
	for _, v := range []float64{100, 1000, 10_000, 100_000} {
		p.Column(x(v), top, height-bottom)
		p.Text(chart.Soft, chart.Middle, x(v), height-bottom+18, thousands(v))
	}
	for _, v := range []float64{1, 10, 100} {
		p.Row(y(v), left, width-right)
		p.Text(chart.Soft, chart.End, left-8, y(v)+4, fmt.Sprint(v))
	}
	p.Heading(left, 24, title)
	p.Text(chart.Soft, chart.Middle, (left+width-right)/2, height-bottom+38, "devices of the cluster")
	p.Printf(`<text class="soft" text-anchor="middle" transform="translate(18 %d) rotate(-90)">µs per arrival or completion</text>`+"\n", (top+height-bottom)/2)
	for i, c := range curves {
		c.draw(p, i)
	}
	return p
}

// draw draws the curve and its line of the legend.
func (c curve) draw(p *chart.Picture, i int) {
	var path strings.Builder
	p.Begin(i)
	for k := range c.devices {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x(c.devices[k]), y(c.micros[k]))
		p.Dot(x(c.devices[k]), y(c.micros[k]), 3)
	}
	p.Line(path.String(), false)
	at := float64(left + i*(width-left-right)/3)
	p.Dot(at+4, height-18, 4)
	p.End()
	p.Text(chart.Ink, chart.Start, at+14, height-14, c.name)
}

// x and y place a value in the picture; values beyond the axes are at their ends.
func x(devices float64) float64 { return left + (width-left-right)*devicesAxis.At(devices) }

func y(micros float64) float64 { return height - bottom - (height-top-bottom)*microsAxis.At(micros) }

func thousands(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%g,000", v/1000)
	}
	return fmt.Sprintf("%g", v)
}
