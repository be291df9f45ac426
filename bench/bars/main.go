package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bars:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("want a title and a unit")
	}
	bars, err := read(in)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, draw(args[0], args[1], bars))
	return err
}

// bar is one line of the picture.
type bar struct {
	name        string
	value, half float64
	note        string
}

func read(in io.Reader) (bars []bar, err error) {
	r := csv.NewReader(in)
	r.FieldsPerRecord = 4
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		b := bar{name: row[0], note: row[3]}
		if b.value, err = number(row[1]); err == nil && row[2] != "" {
			b.half, err = number(row[2])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		bars = append(bars, b)
	}
	if len(bars) == 0 {
		return nil, errors.New("nothing to draw")
	}
	return bars, nil
}

// number reads a number that can be drawn: finite, and not negative.
func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && !(v >= 0 && v <= math.MaxFloat64) {
		err = fmt.Errorf("%s is no length of a bar", s)
	}
	return v, err
}

// Sizes in the picture, in its own units.
const (
	width              = 770
	left, right        = 300, 120
	top, bottom, pitch = 44, 46, 24
)

func draw(title, unit string, bars []bar) string {
	most := 0.0
	for _, b := range bars {
		most = max(most, b.value+b.half)
	}
	step := tick(most)
	scale := (width - left - right) / (step * max(1, math.Ceil(most/step)))
	height := top + pitch*len(bars) + bottom
	var s strings.Builder
	fmt.Fprintf(&s, frame, width, height, html.EscapeString(title))
	for v := 0.0; v <= step*math.Ceil(most/step)+step/2; v += step {
		x := left + v*scale
		fmt.Fprintf(&s, `<path class="grid" d="M%.1f %dV%d"/><text class="soft" text-anchor="middle" x="%.1f" y="%d">%g</text>`+"\n",
			x, top, height-bottom, x, height-bottom+16, math.Round(v/step*1e9)/1e9*step)
	}
	fmt.Fprintf(&s, `<text class="ink" x="16" y="24" font-size="14">%s</text>`+"\n", html.EscapeString(title))
	fmt.Fprintf(&s, `<text class="soft" text-anchor="middle" x="%d" y="%d">%s</text>`+"\n", (left+width-right)/2, height-10, html.EscapeString(unit))
	for i, b := range bars {
		b.draw(&s, float64(top+pitch*i+pitch/2), scale)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// tick returns 1, 2 or 5 times a power of ten, of which about five make most.
func tick(most float64) float64 {
	if most == 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, m := range []float64{1, 2, 5} {
		if most/(m*unit) <= 6 {
			return m * unit
		}
	}
	return 10 * unit
}

func (b bar) draw(s *strings.Builder, y, scale float64) {
	end := left + b.value*scale
	fmt.Fprintf(s, `<text class="ink" text-anchor="end" x="%d" y="%.1f">%s</text>`, left-8, y+4, html.EscapeString(b.name))
	fmt.Fprintf(s, `<rect class="bar" x="%d" y="%.1f" width="%.1f" height="%d"/>`, left, y-7, b.value*scale, 14)
	if b.half > 0 {
		fmt.Fprintf(s, `<path class="whisker" d="M%.1f %.1fH%.1f"/>`, max(left, end-b.half*scale), y, end+b.half*scale)
	}
	fmt.Fprintf(s, `<text class="soft" x="%.1f" y="%.1f">%s</text>`+"\n", end+b.half*scale+6, y+4, html.EscapeString(b.note))
}

// frame follows the reader's colours.
const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="12">
<title>%s</title>
<style>
.page { fill: #ffffff; } .ink { fill: #1c2024; } .soft { fill: #5b636b; } .grid { stroke: #dfe3e7; fill: none; }
.bar { fill: #5d9cc4; } .whisker { stroke: #1c2024; stroke-width: 1.5; fill: none; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15181b; } .ink { fill: #e6e9ec; } .soft { fill: #9ca5ad; } .grid { stroke: #333a40; }
  .bar { fill: #35708f; } .whisker { stroke: #e6e9ec; }
}
</style>
<rect class="page" width="100%%" height="100%%"/>
`
