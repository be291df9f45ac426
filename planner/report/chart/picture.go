package chart

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
)

// Picture is an SVG picture. Coordinates are pixels from the upper left corner where
// the picture is not scaled.
type Picture struct {
	Width, Height int
	Title         string // for readers who do not see it
	body          strings.Builder
}

// Classes of texts.
const (
	Ink  = "ink"  // names and headings
	Soft = "soft" // all else
)

// Anchors of texts.
const (
	Start  = "start"
	Middle = "middle"
	End    = "end"
)

// Printf adds SVG elements as they are. Texts in them must be escaped.
func (p *Picture) Printf(format string, args ...any) { fmt.Fprintf(&p.body, format, args...) }

// Text adds a text at x and y. The anchor is the part of the text at x; the baseline is at y.
func (p *Picture) Text(class, anchor string, x, y float64, text string) {
	if anchor != Start {
		class += `" text-anchor="` + anchor
	}
	p.Printf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x, y, html.EscapeString(text))
}

// Heading adds a text in bold.
func (p *Picture) Heading(x, y float64, text string) {
	p.Printf("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" font-weight=\"600\">%s</text>\n", Ink, x, y, html.EscapeString(text))
}

// Column adds a vertical line of the grid.
func (p *Picture) Column(x, top, bottom float64) {
	p.Printf("<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, top, bottom)
}

// Row adds a horizontal line of the grid.
func (p *Picture) Row(y, left, right float64) {
	p.Printf("<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", left, y, right)
}

// Begin opens a group in the k-th colour, from 0; End closes it. There are eight.
func (p *Picture) Begin(k int) { p.Printf("<g class=\"c%s\">", strconv.Itoa(k%8)) }

// End closes the group that Begin opened.
func (p *Picture) End() { p.Printf("</g>\n") }

// Dot adds a point of the group of radius r.
func (p *Picture) Dot(x, y, r float64) {
	p.Printf("<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>", x, y, r)
}

// Line adds a line of the group along an SVG path; dashed lines tell colours used
// twice apart.
func (p *Picture) Line(path string, dashed bool) {
	class := "line"
	if dashed {
		class += " dashed"
	}
	p.Printf("<path class=\"%s\" d=\"%s\"/>", class, path)
}

// Write writes the picture.
func (p *Picture) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, frame, p.Width, p.Height, html.EscapeString(p.Title), style, p.body.String())
	return err
}

const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>%s</title>
<style>%s</style>
<rect class="page" width="100%%" height="100%%"/>
%s</svg>
`

const style = `
.page { fill: #ffffff; } .ink { fill: #1c2024; } .soft { fill: #5b636b; } .grid { stroke: #dfe3e7; fill: none; }
.c0 { --c: #0068a8; } .c1 { --c: #c8501a; } .c2 { --c: #0a7d5c; } .c3 { --c: #9a4595; } .c4 { --c: #85680a; } .c5 { --c: #00808f; } .c6 { --c: #b3264f; } .c7 { --c: #5d6166; }
.line { stroke: var(--c); fill: none; stroke-width: 1.75; } .dot { fill: var(--c); } .dashed { stroke-dasharray: 6 4; }
.bar { fill: #5d9cc4; } .whisker { stroke: #1c2024; stroke-width: 1.5; fill: none; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15181b; } .ink { fill: #e6e9ec; } .soft { fill: #9ca5ad; } .grid { stroke: #333a40; }
  .c0 { --c: #5db2ee; } .c1 { --c: #ff9160; } .c2 { --c: #45cf9f; } .c3 { --c: #d99ad6; } .c4 { --c: #dcb944; } .c5 { --c: #4ccbd8; } .c6 { --c: #ff7d9d; } .c7 { --c: #b4bac0; }
  .bar { fill: #35708f; } .whisker { stroke: #e6e9ec; }
}
`
