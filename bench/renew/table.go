package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// table is a header and rows of as many cells.
type table struct {
	header []string
	rows   [][]string
}

// Parts of a number in a cell of a page, and the columns of a file that hold them
// beside the column of the number itself:
//
//	1000 ± 4 s (1.78)       TITLE [s], TITLE ±, TITLE / bound
//	0.181 (0.177 to 0.186)  TITLE, TITLE from, TITLE to
const (
	plusMinus = " ±"
	overBound = " / bound"
	from      = " from"
	to        = " to"
)

var (
	number   = regexp.MustCompile(`^([+-]?[\d,]*\d(?:\.\d+)?)(?: ± ([\d,]*\d(?:\.\d+)?))?(?: ([A-Za-z%]+))?(?: \(([\d.]+)\))?$`)
	interval = regexp.MustCompile(`^([+-]?[\d.]+) \(([+-]?[\d.]+) to ([+-]?[\d.]+)\)$`)
	united   = regexp.MustCompile(`^(.*) \[([^\]]+)\]$`)
)

// parseMarkdown reads the one Markdown table in a text. Emphasis is dropped, and a
// title that begins with "of" gets the title in front of it that does not: "average
// JCT of fifo".
func parseMarkdown(text string) (*table, error) {
	var t table
	unmarked := strings.NewReplacer("**", "", "`", "")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(unmarked.Replace(cells[i]))
		}
		if t.header != nil && len(cells) != len(t.header) {
			return nil, fmt.Errorf("%d cells in a table of %d columns: %s", len(cells), len(t.header), line)
		}
		if t.header == nil {
			t.header = cells
		} else {
			t.rows = append(t.rows, cells)
		}
	}
	subject := ""
	for i, title := range t.header {
		if strings.HasPrefix(title, "of ") {
			t.header[i] = subject + " " + title
		} else {
			subject = title
		}
	}
	return &t, t.check()
}

func (t *table) check() error {
	if len(t.rows) == 0 {
		return errors.New("no table with a row")
	}
	for i, title := range t.header {
		if title == "" || slices.Contains(t.header[:i], title) {
			return fmt.Errorf("column %d has no title, or that of another: %q", i+1, title)
		}
	}
	return nil
}

// split returns the table with each number of a cell in a column of its own.
func (t *table) split() *table {
	out := &table{rows: make([][]string, len(t.rows))}
	for i, title := range t.header {
		cells := make([]string, len(t.rows))
		for r, row := range t.rows {
			cells[r] = row[i]
		}
		titles, columns := splitColumn(title, cells)
		for k := range titles {
			out.header = append(out.header, titles[k])
			for r := range out.rows {
				out.rows[r] = append(out.rows[r], columns[k][r])
			}
		}
	}
	return out
}

// splitColumn returns the titles and cells of the columns that a column of a page is
// made from: itself, unless every cell is a number with the same unit, or empty.
func splitColumn(title string, cells []string) (titles []string, columns [][]string) {
	whole := func() ([]string, [][]string) { return []string{title}, [][]string{cells} }
	parts := [5][]string{} // number, ±, bound, from, to
	for k := range parts {
		parts[k] = make([]string, len(cells))
	}
	unit, first := "", true
	for r, cell := range cells {
		if cell == "" || cell == "-" {
			parts[0][r] = cell
			continue
		}
		plain := strings.ReplaceAll(cell, ",", "")
		if m := interval.FindStringSubmatch(plain); m != nil && (first || unit == "") {
			parts[0][r], parts[3][r], parts[4][r] = m[1], m[2], m[3]
			first = false
			continue
		}
		m := number.FindStringSubmatch(plain)
		if m == nil || !first && m[3] != unit {
			return whole()
		}
		unit, first = m[3], false
		parts[0][r], parts[1][r], parts[2][r] = m[1], m[2], m[4]
	}
	name := title
	if unit != "" {
		name += " [" + unit + "]"
	}
	for k, suffix := range []string{"", plusMinus, overBound, from, to} {
		if k > 0 && !slices.ContainsFunc(parts[k], func(s string) bool { return s != "" }) {
			continue
		}
		if k > 0 {
			name = title + suffix
		}
		titles, columns = append(titles, name), append(columns, parts[k])
	}
	return titles, columns
}

// join is the reverse of split.
func (t *table) join() *table {
	out := &table{rows: make([][]string, len(t.rows))}
	for i := 0; i < len(t.header); {
		title, unit := t.header[i], ""
		if m := united.FindStringSubmatch(title); m != nil {
			title, unit = m[1], " "+m[2]
		}
		at := map[string]int{"": i}
		for i++; i < len(t.header); i++ {
			suffix, ok := strings.CutPrefix(t.header[i], title)
			if !ok || !slices.Contains([]string{plusMinus, overBound, from, to}, suffix) {
				break
			}
			at[suffix] = i
		}
		out.header = append(out.header, title)
		for r, row := range t.rows {
			out.rows[r] = append(out.rows[r], cell(row, at, unit))
		}
	}
	return out
}

// cell writes a number of a row with what belongs to it.
func cell(row []string, at map[string]int, unit string) string {
	part := func(suffix string) string {
		if i, ok := at[suffix]; ok {
			return row[i]
		}
		return ""
	}
	s := part("")
	if s == "" || s == "-" {
		return s
	}
	if half := part(plusMinus); half != "" {
		s += plusMinus + " " + half
	}
	s += unit
	if b := part(overBound); b != "" {
		s += " (" + b + ")"
	}
	if lo := part(from); lo != "" {
		s += " (" + lo + " to " + part(to) + ")"
	}
	return s
}

func (t *table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.header)
	b.WriteString(strings.Repeat("|---", len(t.header)) + "|\n")
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

func (t *table) writeCSV(w io.Writer) error {
	return csv.NewWriter(w).WriteAll(append([][]string{t.header}, t.rows...))
}

func readCSV(path string) (*table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: empty", path)
	}
	t := &table{header: rows[0], rows: rows[1:]}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
