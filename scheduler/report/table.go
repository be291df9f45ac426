package report

import (
	"bufio"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Table is aligned plain text: a header line, then the rows, two spaces between
// columns. Columns of numbers, with or without a unit, are flush right, the others
// flush left.
type Table struct {
	Header []string
	Rows   [][]string // short rows are filled with empty cells

	// Width is the most characters a line may have, 0 = 100. The widest text
	// columns are broken at spaces and commas until the table fits, but never
	// narrower than 16 characters.
	Width int
}

const (
	columnGap    = "  "
	narrowestCol = 16
	defaultWidth = 100
)

// number matches a cell that is a quantity, such as "12", "-1.5e9", "83 %" and
// "1 h 02 m", or a dash for a missing one.
var number = regexp.MustCompile(`^([-+~<>≈]?\d[\d.,_]*([eE][-+]?\d+)?( ?%| .*)?|-|–|)$`)

// Write writes the table to w.
func (t Table) Write(w io.Writer) error {
	rows := t.cells()
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil
	}
	right, width := layout(rows)
	t.shrink(width, right)
	b := bufio.NewWriter(w)
	for _, row := range rows {
		writeRow(b, row, width, right)
	}
	return b.Flush()
}

// String returns the table as text.
func (t Table) String() string {
	var b strings.Builder
	_ = t.Write(&b) // a strings.Builder never fails
	return b.String()
}

// cells returns header and rows as one rectangle without line breaks.
func (t Table) cells() [][]string {
	n := len(t.Header)
	for _, r := range t.Rows {
		n = max(n, len(r))
	}
	rows := make([][]string, 0, 1+len(t.Rows))
	for _, r := range append([][]string{t.Header}, t.Rows...) {
		row := make([]string, n)
		for i, c := range r {
			row[i] = strings.Join(strings.Fields(c), " ")
		}
		rows = append(rows, row)
	}
	return rows
}

// layout returns which columns are numbers and how wide each is.
func layout(rows [][]string) (right []bool, width []int) {
	right, width = make([]bool, len(rows[0])), make([]int, len(rows[0]))
	for c := range rows[0] {
		right[c] = len(rows) > 1
		for r, row := range rows {
			width[c] = max(width[c], utf8.RuneCountInString(row[c]))
			right[c] = right[c] && (r == 0 || number.MatchString(row[c]))
		}
	}
	return right, width
}

// shrink narrows the widest text columns until a line fits.
func (t Table) shrink(width []int, right []bool) {
	limit := t.Width
	if limit == 0 {
		limit = defaultWidth
	}
	total := len(columnGap) * (len(width) - 1)
	for _, w := range width {
		total += w
	}
	for ; total > limit; total-- {
		widest := -1
		for c, w := range width {
			if !right[c] && w > narrowestCol && (widest < 0 || w > width[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			return
		}
		width[widest]--
	}
}

// writeRow writes one row, on as many lines as its longest cell needs.
func writeRow(b *bufio.Writer, row []string, width []int, right []bool) {
	lines := make([][]string, len(row))
	height := 1
	for c, cell := range row {
		lines[c] = Wrap(cell, width[c])
		height = max(height, len(lines[c]))
	}
	for h := range height {
		var line strings.Builder
		for c := range row {
			text := ""
			if h < len(lines[c]) {
				text = lines[c][h]
			}
			pad := strings.Repeat(" ", max(0, width[c]-utf8.RuneCountInString(text)))
			if c > 0 {
				line.WriteString(columnGap)
			}
			if right[c] {
				line.WriteString(pad + text)
			} else {
				line.WriteString(text + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}

// Wrap breaks s after spaces and commas into lines of at most n characters. A longer
// word is broken before a colon, such as that before a policy's options, or else cut.
func Wrap(s string, n int) []string {
	var lines []string
	for utf8.RuneCountInString(s) > n {
		r := []rune(s)
		cut := lineEnd(r, n)
		lines = append(lines, strings.TrimRight(string(r[:cut]), " "))
		s = strings.TrimLeft(string(r[cut:]), " ")
	}
	return append(lines, s)
}

// lineEnd returns the length of the first line of r, at most n. r is longer than n.
func lineEnd(r []rune, n int) int {
	for i := n; i > 0; i-- {
		if r[i-1] == ',' || r[i] == ' ' {
			return i
		}
	}
	for i := n; i > 0; i-- {
		if r[i] == ':' {
			return i
		}
	}
	return n
}
