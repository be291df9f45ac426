package accuracy

import (
	"fmt"
	"strconv"
)

// CurveCSV returns a line per point, header first.
func CurveCSV(points []CurvePoint) [][]string {
	out := [][]string{{"data", "source", "order", "model", "rows", "draws", "scored", "refused", "mean", "mean_se", "median", "median_se",
		"coverage", "half_width", "regret", "choices", "held_back"}}
	for i := range points {
		p := &points[i]
		line := []string{p.Data, p.Source, p.Order, p.Model, strconv.Itoa(p.Rows), strconv.Itoa(p.Draws)}
		for _, v := range []float64{p.Scored, p.Refused, p.Mean.Value, p.Mean.SE, p.Median.Value, p.Median.SE, p.Coverage, p.HalfWidth, p.Regret, p.Choices, p.HeldBack} {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
		out = append(out, line)
	}
	return out
}

// CurveTable returns a line per curve, header first: the mean and the median error after each number of rows and, of
// models with intervals, the share of rows in the 90 % interval, all in %.
func CurveTable(points []CurvePoint) [][]string {
	type curve struct{ data, source, order, model string }
	head := []string{"source", "order", "model"}
	for _, k := range CurveRows {
		head = append(head, strconv.Itoa(k)+" rows")
	}
	lines, at := [][]string{head}, map[curve]int{}
	for i := range points {
		p := &points[i]
		of := curve{p.Data, p.Source, p.Order, p.Model}
		line, ok := at[of]
		if !ok {
			line, at[of] = len(lines), len(lines)
			empty := []string{p.Data + "/" + p.Source, p.Order, p.Model}
			for range CurveRows {
				empty = append(empty, none)
			}
			lines = append(lines, empty)
		}
		text := fmt.Sprintf("%.1f / %.1f", 100*p.Mean.Value, 100*p.Median.Value)
		if p.Coverage > 0 {
			text += fmt.Sprintf(" (%.0f)", 100*p.Coverage)
		}
		for k, rows := range CurveRows {
			if rows == p.Rows {
				lines[line][3+k] = text
			}
		}
	}
	return lines
}
