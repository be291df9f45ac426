package order

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// readHistory reads the service of finished jobs, in device-seconds, from a CSV file with
// a header: column device_s, or the product of gpus and duration_s. A row with an empty
// end_s is a job that has not finished; it is skipped. Other columns are ignored.
func readHistory(path string) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	var magic [4]byte
	if _, err := f.ReadAt(magic[:], 0); err == nil && string(magic[:]) == "PAR1" {
		return nil, fmt.Errorf("history %s is Parquet, want CSV; simulate --jobs-out FILE.csv writes one", path)
	}
	h := history{path: path, csv: csv.NewReader(f)}
	h.csv.ReuseRecord = true
	if err := h.header(); err != nil {
		return nil, err
	}
	var out []float64
	for {
		row, err := h.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("history %s: %w", path, err)
		}
		if h.end >= 0 && strings.TrimSpace(row[h.end]) == "" {
			continue
		}
		service := 1.0
		for _, column := range h.factors {
			v, err := h.positive(row, column)
			if err != nil {
				return nil, err
			}
			service *= v
		}
		out = append(out, service)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("history %s has no finished job", path)
	}
	return out, nil
}

// history reads the rows of a history file.
type history struct {
	path    string
	csv     *csv.Reader
	names   []string
	factors []int // columns with the factors of the service
	end     int   // column of end_s, -1 = none
}

func (h *history) header() error {
	row, err := h.csv.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("history %s: %w", h.path, err)
	}
	for _, name := range row {
		h.names = append(h.names, strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
	}
	h.end = slices.Index(h.names, "end_s")
	for _, columns := range [][]string{{"device_s"}, {"gpus", "duration_s"}} {
		h.factors = nil
		for _, name := range columns {
			if i := slices.Index(h.names, name); i >= 0 {
				h.factors = append(h.factors, i)
			}
		}
		if len(h.factors) == len(columns) {
			return nil
		}
	}
	return fmt.Errorf("history %s:1: columns %s, want device_s, or gpus and duration_s", h.path, strings.Join(h.names, ","))
}

// positive parses a field as a finite number above 0.
func (h *history) positive(row []string, column int) (float64, error) {
	text := strings.TrimSpace(row[column])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		line, at := h.csv.FieldPos(column)
		return 0, fmt.Errorf("history %s:%d:%d: %s %q is not a number above 0", h.path, line, at, h.names[column], text)
	}
	return v, nil
}
