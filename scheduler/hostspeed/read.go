package hostspeed

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Columns are the columns of a file; others are ignored.
var Columns = []string{"model", "gpus", "cpus_per_gpu", "mem_gb_per_gpu", "relative_throughput"}

// Read reads a CSV file of relative speeds with the Columns. A speed of 0 means that the
// point was not measured; rows without CPUs or without memory are skipped. Of several rows of
// one point the first holds. name is that of the file, for errors.
func Read(r io.Reader, name string) (*Table, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("hostspeed: %s: no header: %w", name, err)
	}
	var index [5]int
	for i, column := range Columns {
		if index[i] = slices.Index(header, column); index[i] < 0 {
			return nil, fmt.Errorf("hostspeed: %s: no column %q, want %s", name, column, strings.Join(Columns, ", "))
		}
	}
	t := &Table{models: map[string][]grid{}}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("hostspeed: %s: %w", name, err)
		}
		if err := t.readRow(row, index); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("hostspeed: %s:%d: %w", name, line, err)
		}
	}
	if len(t.models) == 0 {
		return nil, fmt.Errorf("hostspeed: %s has no speeds", name)
	}
	for _, grids := range t.models {
		for i := range grids {
			grids[i].raise()
		}
	}
	return t, nil
}

// readRow adds a row.
func (t *Table) readRow(row []string, index [5]int) error {
	if row[index[0]] == "" {
		return errors.New("model is empty")
	}
	if row[index[2]] == "" || row[index[3]] == "" {
		return nil
	}
	const gigabyte = 1e9
	var v [5]float64
	for i := 1; i < len(v); i++ {
		text := row[index[i]]
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) || i == 1 && (x < 1 || x != math.Trunc(x) || x > math.MaxInt32) {
			want := "a number of at least 0"
			if i == 1 {
				want = "a whole number of at least 1"
			}
			return fmt.Errorf("%s %q, want %s", Columns[i], text, want)
		}
		v[i] = x
	}
	if v[4] > 0 {
		t.add(row[index[0]], int(v[1]), v[2], gigabyte*v[3], v[4])
	}
	return nil
}
