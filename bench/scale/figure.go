package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// sizes are the clusters of the figure, in nodes.
var sizes = []int{12, 40, 125, 400, 1250, 4000, 12500}

// curve is what an event costs under one policy, by size of the cluster.
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
	path := filepath.Join(o.figure, "scale.svg")
	if err := os.MkdirAll(o.figure, 0o755); err != nil {
		return err
	}
	title := fmt.Sprintf("Processor time per event, %d jobs at load %g", o.jobs, o.load)
	return os.WriteFile(path, []byte(draw(title, curves)), 0o644)
}

// Sizes in the picture, in its own units, and the ends of its axes.
const (
	width, height           = 640, 400
	left, right             = 64, 16
	top, bottom             = 44, 84
	leastDevices            = 50.
	mostDevices             = 200_000.
	leastMicros, mostMicros = 0.5, 200.
)

// draw returns a picture of the curves on logarithmic axes. It needs nothing else
// and follows the reader's colours.
func draw(title string, curves []curve) string {
	var b strings.Builder
	fmt.Fprintf(&b, frame, width, height, html.EscapeString(title))
	for _, v := range []float64{100, 1000, 10_000, 100_000} {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %dV%d"/><text class="soft" text-anchor="middle" x="%.1f" y="%d">%s</text>`+"\n",
			x(v), top, height-bottom, x(v), height-bottom+18, thousands(v))
	}
	for _, v := range []float64{1, 10, 100} {
		fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/><text class="soft" text-anchor="end" x="%d" y="%.1f">%g</text>`+"\n",
			left, y(v), width-right, left-8, y(v)+4, v)
	}
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="24" font-size="14">%s</text>`+"\n", left, html.EscapeString(title))
	fmt.Fprintf(&b, `<text class="soft" text-anchor="middle" x="%d" y="%d">devices of the cluster</text>`+"\n", (left+width-right)/2, height-bottom+38)
	fmt.Fprintf(&b, `<text class="soft" text-anchor="middle" transform="translate(18 %d) rotate(-90)">µs per arrival or completion</text>`+"\n", (top+height-bottom)/2)
	for i, c := range curves {
		c.draw(&b, i)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw draws the curve and its line of the legend.
func (c curve) draw(b *strings.Builder, i int) {
	fmt.Fprintf(b, `<g class="c%d"><path class="line" d="`, i%colours)
	for k := range c.devices {
		fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(k, 1)], x(c.devices[k]), y(c.micros[k]))
	}
	b.WriteString(`"/>`)
	for k := range c.devices {
		fmt.Fprintf(b, `<circle class="dot" r="3" cx="%.1f" cy="%.1f"/>`, x(c.devices[k]), y(c.micros[k]))
	}
	at := left + i*(width-left-right)/3
	fmt.Fprintf(b, `<circle class="dot" r="4" cx="%d" cy="%d"/><text class="ink" x="%d" y="%d">%s</text></g>`+"\n",
		at+4, height-18, at+14, height-14, html.EscapeString(c.name))
}

// x and y place a value in the picture, at the edge of the axes what lies beyond.
func x(devices float64) float64 {
	return left + (width-left-right)*share(devices, leastDevices, mostDevices)
}

func y(micros float64) float64 {
	return height - bottom - (height-top-bottom)*share(micros, leastMicros, mostMicros)
}

func share(v, lo, hi float64) float64 {
	return min(max(math.Log(v/lo)/math.Log(hi/lo), 0), 1)
}

func thousands(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%g,000", v/1000)
	}
	return fmt.Sprintf("%g", v)
}

// colours is how many curves have one of their own.
const colours = 3

const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>%s</title>
<style>
.page { fill: #ffffff; } .ink { fill: #1c2024; } .soft { fill: #5b636b; } .grid { stroke: #dfe3e7; fill: none; }
.c0 { --c: #0068a8; } .c1 { --c: #c8501a; } .c2 { --c: #0a7d5c; }
.line { stroke: var(--c); fill: none; stroke-width: 1.75; } .dot { fill: var(--c); }
@media (prefers-color-scheme: dark) {
  .page { fill: #15181b; } .ink { fill: #e6e9ec; } .soft { fill: #9ca5ad; } .grid { stroke: #333a40; }
  .c0 { --c: #5db2ee; } .c1 { --c: #ff9160; } .c2 { --c: #45cf9f; }
}
</style>
<rect class="page" width="100%%" height="100%%"/>
`
