package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/planner/report/chart"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "curves:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	panels, err := read(in)
	if err != nil {
		return err
	}
	return draw(panels).Write(out)
}

// panel has the curves of the sources of a directory.
type panel struct {
	data   string
	rows   []int // of all curves, ascending
	curves []curve
}

// curve is the error after each number of rows, as a fraction of the measured time.
type curve struct {
	name   string
	errors map[int]float64
}

// read returns a panel for each directory, with a curve for each model and order.
func read(in io.Reader) (panels []panel, err error) {
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, errors.New("no line on standard input")
	}
	at := map[string]int{}
	for i, name := range lines[0] {
		at[name] = i
	}
	for _, name := range []string{"data", "source", "order", "model", "rows", "mean"} {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("no column %s in %s", name, strings.Join(lines[0], ","))
		}
	}
	for i, line := range lines[1:] {
		if line[at["source"]] != "all" {
			continue
		}
		rows, err := strconv.Atoi(line[at["rows"]])
		mean, bad := strconv.ParseFloat(line[at["mean"]], 64)
		if err := errors.Join(err, bad); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		p := place(&panels, func(p *panel) bool { return p.data == line[at["data"]] }, panel{data: line[at["data"]]})
		name := line[at["model"]] + ", " + line[at["order"]]
		c := place(&p.curves, func(c *curve) bool { return c.name == name }, curve{name, map[int]float64{}})
		c.errors[rows] = mean
		if !slices.Contains(p.rows, rows) {
			p.rows = append(p.rows, rows)
		}
	}
	for i := range panels {
		slices.Sort(panels[i].rows)
	}
	return panels, nil
}

// place returns the element of s for which is returns true, which it adds if there is none.
func place[T any](s *[]T, is func(*T) bool, add T) *T {
	for i := range *s {
		if is(&(*s)[i]) {
			return &(*s)[i]
		}
	}
	*s = append(*s, add)
	return &(*s)[len(*s)-1]
}

// Sizes in the picture, in its own units.
const (
	panelWidth, height = 400, 400
	left, right        = 48, 16
	top, bottom        = 64, 130
	legendStep         = 18
)

// most is the largest error of the axis.
const most = 0.3

func draw(panels []panel) *chart.Picture {
	title := "Mean error after rows of a source are revealed"
	p := &chart.Picture{Width: panelWidth * max(len(panels), 1), Height: height, Title: title}
	p.Heading(left, 24, title)
	for i := range panels {
		panels[i].draw(p, float64(i*panelWidth))
	}
	return p
}

func (n *panel) draw(p *chart.Picture, from float64) {
	x := func(rows int) float64 {
		return from + left + (panelWidth-left-right)*float64(slices.Index(n.rows, rows))/float64(max(len(n.rows)-1, 1))
	}
	y := func(v float64) float64 { return height - bottom - (height-top-bottom)*min(v, most)/most }
	p.Text(chart.Ink, chart.Start, from+left, 48, "data/"+n.data)
	for _, rows := range n.rows {
		p.Column(x(rows), top, height-bottom)
		p.Text(chart.Soft, chart.Middle, x(rows), height-bottom+18, strconv.Itoa(rows))
	}
	for v := 0.0; v <= most+1e-9; v += 0.05 {
		p.Row(y(v), from+left, from+panelWidth-right)
		p.Text(chart.Soft, chart.End, from+left-8, y(v)+4, fmt.Sprintf("%.0f %%", 100*v))
	}
	p.Text(chart.Soft, chart.Middle, from+(left+panelWidth-right)/2, height-bottom+36, "rows revealed")
	for k, c := range n.curves {
		var path strings.Builder
		p.Begin(k)
		for _, rows := range n.rows {
			v, ok := c.errors[rows]
			if !ok {
				continue
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(path.Len(), 1)], x(rows), y(v))
			p.Dot(x(rows), y(v), 3)
		}
		p.Line(path.String(), false)
		atX, atY := from+left+float64(k%2)*(panelWidth-left-right)/2, float64(height-bottom+54+k/2*legendStep)
		p.Dot(atX+4, atY, 4)
		p.End()
		p.Text(chart.Ink, chart.Start, atX+14, atY+4, c.name)
	}
}
