package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/pacer-ml/pacer/planner/report/chart"
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
	return draw(args[0], args[1], bars).Write(out)
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
		err = fmt.Errorf("%s is not finite and >= 0", s)
	}
	return v, err
}

// Sizes in the picture, in its own units.
const (
	width              = 770
	left, right        = 300, 120
	top, bottom, pitch = 44, 46, 24
)

func draw(title, unit string, bars []bar) *chart.Picture {
	most := 0.0
	for _, b := range bars {
		most = max(most, b.value+b.half)
	}
	step := tick(most)
	scale := (width - left - right) / (step * max(1, math.Ceil(most/step)))
	height := top + pitch*len(bars) + bottom
	p := &chart.Picture{Width: width, Height: height, Title: title}
	for v := 0.0; v <= step*math.Ceil(most/step)+step/2; v += step {
		x := left + v*scale
		p.Column(x, top, float64(height-bottom))
		p.Text(chart.Soft, chart.Middle, x, float64(height-bottom+16), fmt.Sprint(math.Round(v/step*1e9)/1e9*step))
	}
	p.Heading(16, 24, title)
	p.Text(chart.Soft, chart.Middle, (left+width-right)/2, float64(height-10), unit)
	for i, b := range bars {
		b.draw(p, float64(top+pitch*i+pitch/2), scale)
	}
	return p
}

// tick returns 1, 2 or 5 times a power of ten, about a fifth of most.
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

func (b bar) draw(p *chart.Picture, y, scale float64) {
	end := left + b.value*scale
	p.Text(chart.Ink, chart.End, left-8, y+4, b.name)
	p.Printf(`<rect class="bar" x="%d" y="%.1f" width="%.1f" height="%d"/>`, left, y-7, b.value*scale, 14)
	if b.half > 0 {
		p.Printf(`<path class="whisker" d="M%.1f %.1fH%.1f"/>`, max(left, end-b.half*scale), y, end+b.half*scale)
	}
	p.Text(chart.Soft, chart.Start, end+b.half*scale+6, y+4, b.note)
}
