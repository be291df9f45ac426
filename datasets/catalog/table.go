package catalog

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:embed *.csv
var tables embed.FS

// row is one line of an embedded table, by column name.
type row struct {
	table string
	line  int
	cells map[string]string
}

// readTable returns the rows of an embedded table. The tables are part of the program, so an
// invalid one is a bug and panics.
func readTable(name string) []row {
	f, err := tables.Open(name)
	if err != nil {
		panic("catalog: " + err.Error())
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) == 0 {
		panic(fmt.Sprintf("catalog: %s: %v", name, err))
	}
	rows := make([]row, 0, len(lines)-1)
	for i, line := range lines[1:] {
		r := row{table: name, line: i + 2, cells: map[string]string{}}
		for j, col := range lines[0] {
			r.cells[col] = strings.TrimSpace(line[j])
		}
		rows = append(rows, r)
	}
	return rows
}

func (r row) str(col string) string {
	s, ok := r.cells[col]
	if !ok {
		panic(fmt.Sprintf("catalog: %s has no column %s", r.table, col))
	}
	return s
}

// num returns the number in col, 0 when the cell is empty.
func (r row) num(col string) float64 {
	s := r.str(col)
	if s == "" {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("catalog: %s:%d: %s=%q is not a number", r.table, r.line, col, s))
	}
	return v
}

func (r row) int(col string) int   { return int(r.num(col)) }
func (r row) bool(col string) bool { return r.num(col) != 0 }

// list returns the semicolon-separated items of col.
func (r row) list(col string) []string {
	var out []string
	for _, s := range strings.Split(r.str(col), ";") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
