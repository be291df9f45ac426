package accuracy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// none is the cell of an absent value.
const none = "-"

// ErrorTable returns the errors, header first: a line per protocol and family with
// scored rows, or with the reason that there are none.
func ErrorTable(results []Result) [][]string {
	out := [][]string{{"protocol", "family", "standing", "rows", "refused", "mean", "median", "p95", "in 90 %", "half-width", "regret (choices)"}}
	for i := range results {
		if r := &results[i]; r.Unable != "" || r.Rows+r.Refused > 0 {
			out = append(out, r.statistics())
		}
	}
	return out
}

func (r *Result) statistics() []string {
	line := []string{r.Protocol, r.Family}
	if r.Unable != "" {
		return append(line, r.Unable, none, none, none, none, none, none, none, none)
	}
	return slices.Concat(line, []string{string(r.Standing)}, r.Summary.counts(), r.Summary.errorCells(), []string{r.Regret.cell()})
}

// FigureTable returns the figures of merit, header first: a line per figure, a
// column per family. One star: within the required limit. Two stars: within the aim.
// Brackets: rows in view or in sample. Parentheses: too few rows predicted for a
// comparison with other families.
func FigureTable(results []Result) [][]string {
	var families []string
	type line struct{ protocol, figure string }
	var lines []line
	cells := map[line]map[string]string{}
	limits := map[line]Figure{}
	for _, r := range results {
		if !slices.Contains(families, r.Family) {
			families = append(families, r.Family)
		}
		for _, f := range r.Figures {
			l := line{r.Protocol, f.Name}
			if cells[l] == nil {
				cells[l] = map[string]string{}
				limits[l] = f
				lines = append(lines, l)
			}
			cells[l][r.Family] = r.figure(f)
		}
	}
	out := [][]string{append([]string{"protocol", "figure", "must", "aim"}, families...)}
	for _, l := range lines {
		f := limits[l]
		row := []string{l.protocol, l.figure, cmp.Or(f.limit(f.Must), none), cmp.Or(f.limit(f.Aim), none)}
		for _, name := range families {
			row = append(row, cmp.Or(cells[l][name], none))
		}
		out = append(out, row)
	}
	return out
}

// figure writes a figure of r, with marks for its limits.
func (r *Result) figure(f Figure) string {
	text := f.amount(f.Value)
	switch {
	case r.Standing != LeftOut:
		return "[" + text + "]"
	case !r.comparable():
		return "(" + text + ")"
	case f.Must == Limit{} || !f.Must.Keeps(f.Value):
		return text
	case f.Aim != Limit{} && f.Aim.Keeps(f.Value):
		return text + "**"
	}
	return text + "*"
}

// comparable reports whether enough rows are predicted for a comparison with other
// families.
func (r *Result) comparable() bool {
	return r.Refused == 0 || share(r.Rows, r.Rows+r.Refused) >= leastShare
}

// leastShare is the share of predicted rows from which families are compared.
const leastShare = 0.82

func (s *Summary) counts() []string {
	if s.Rows+s.Refused == 0 {
		return []string{none, none}
	}
	return []string{strconv.Itoa(s.Rows), strconv.Itoa(s.Refused)}
}

// errorCells writes the error columns and those of the intervals.
func (s *Summary) errorCells() []string {
	out := []string{none, none, none, none, none}
	if s.Rows > 0 && s.P95 > 0 {
		out[0], out[1], out[2] = percent(s.Mean), percent(s.Median), percent(s.P95)
	}
	if s.Intervals > 0 {
		out[3], out[4] = percent(s.Coverage), strconv.FormatFloat(s.HalfWidth, 'f', 2, 64)
	}
	return out
}

func (g *Regret) cell() string {
	if g == nil {
		return none
	}
	return fmt.Sprintf("%s (%d)", percent(g.Mean), g.Groups)
}

func (f Figure) limit(l Limit) string {
	switch {
	case l.AtLeast != 0 && l.AtMost != 0:
		return f.amount(l.AtLeast) + " to " + f.amount(l.AtMost)
	case l.AtLeast != 0:
		return "at least " + f.amount(l.AtLeast)
	case l.AtMost != 0:
		return f.amount(l.AtMost)
	}
	return ""
}

func (f Figure) amount(v float64) string {
	switch f.Unit {
	case "1":
		return percent(v)
	case "s":
		return strconv.FormatFloat(1e3*v, 'g', 3, 64) + " ms"
	case "ln":
		return strconv.FormatFloat(v, 'f', 2, 64)
	case "1/s":
		return thousands(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// percent writes a share with one decimal, none when it is whole.
func percent(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(100*v, 'f', 1, 64), ".0") + " %"
}

// thousands writes a large count rounded to thousands: 812,000.
func thousands(v float64) string {
	s := strconv.FormatFloat(v/1e3, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s + ",000"
}
