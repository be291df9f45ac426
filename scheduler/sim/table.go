package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxErrors bounds the reported faults of a file.
const maxErrors = 20

// row is one line of a CSV file, by column.
type row struct {
	line   int
	cells  []string
	column map[string]int
}

// readRows reads a CSV file with exactly these columns, in any order, and calls each
// for its rows. The error joins the faults of the file, with name and line.
func readRows(r io.Reader, name string, columns []string, each func(row) error) error {
	c := csv.NewReader(r)
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("sim: %s: the file is empty, want a header %s", name, strings.Join(columns, ","))
	}
	if err != nil {
		return fmt.Errorf("sim: %s: %w", name, err)
	}
	column := map[string]int{}
	for i, h := range header {
		column[strings.TrimSpace(h)] = i
	}
	for _, want := range columns {
		if _, ok := column[want]; !ok || len(header) != len(columns) {
			return fmt.Errorf("sim: %s:1: header %s, want %s", name, strings.Join(header, ","), strings.Join(columns, ","))
		}
	}
	var faults []error
	for len(faults) < maxErrors {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("sim: %s: %w", name, err))
			break
		}
		line, _ := c.FieldPos(0)
		if err := each(row{line, cells, column}); err != nil {
			faults = append(faults, fmt.Errorf("sim: %s:%d: %w", name, line, err))
		}
	}
	return errors.Join(faults...)
}

func (r row) text(column string) string { return strings.TrimSpace(r.cells[r.column[column]]) }

// seconds returns the time of a column, an error unless it is a number of seconds in
// 0..100 years.
func (r row) seconds(column string) (time.Duration, error) {
	v, err := strconv.ParseFloat(r.text(column), 64)
	if err != nil || !(v >= 0 && v <= defaultHorizon.Seconds()) {
		return 0, fmt.Errorf("%s %q is not a number of seconds in 0..%.0f", column, r.text(column), defaultHorizon.Seconds())
	}
	return wholeNs(v), nil
}

// othersName is the row of a cost table for all other models.
const othersName = "*"

// ReadCosts reads a cost table: columns model, launch_s, checkpoint_s, restore_s and
// reshard_s in any order, a model per row. The row of model * is for all others.
// Errors name the file and the line.
func ReadCosts(r io.Reader, name string) (*CostTable, error) {
	t := &CostTable{Models: map[string]ModelCosts{}}
	lines := map[string]int{}
	err := readRows(r, name, []string{"model", "launch_s", "checkpoint_s", "restore_s", "reshard_s"}, func(row row) error {
		model := row.text("model")
		if model == "" {
			return fmt.Errorf("no model: name one, or %s for all others", othersName)
		}
		if lines[model] > 0 {
			return fmt.Errorf("model %s was on line %d already", model, lines[model])
		}
		lines[model] = row.line
		c, err := row.costs()
		if model == othersName {
			t.Others = &c
		} else {
			t.Models[model] = c
		}
		return err
	})
	return t, err
}

func (r row) costs() (c ModelCosts, err error) {
	for _, part := range []struct {
		column string
		to     *time.Duration
	}{{"launch_s", &c.Launch}, {"checkpoint_s", &c.Checkpoint}, {"restore_s", &c.Restore}, {"reshard_s", &c.Reshard}} {
		v, e := r.seconds(part.column)
		*part.to, err = v, errors.Join(err, e)
	}
	return c, err
}

// ReadOutages reads the outages of nodes, numbered from 0: columns node, down_s and
// up_s, columns and rows in any order. An empty up_s means that the node is never
// repaired. All outages have the given notice. Errors name the file and the line.
func ReadOutages(r io.Reader, name string, nodes int, notice time.Duration) (OutageTable, error) {
	type outageAt struct {
		Outage
		line int
	}
	read := map[int][]outageAt{}
	err := readRows(r, name, []string{"node", "down_s", "up_s"}, func(row row) error {
		node, err := strconv.Atoi(row.text("node"))
		if err != nil || node < 0 || node >= nodes {
			return fmt.Errorf("node %q is not in 0..%d, the nodes of the cluster", row.text("node"), nodes-1)
		}
		o := outageAt{line: row.line, Outage: Outage{Notice: notice}}
		if o.Down, err = row.seconds("down_s"); err != nil {
			return err
		}
		o.Up = math.MaxInt64
		if row.text("up_s") != "" {
			if o.Up, err = row.seconds("up_s"); err != nil {
				return err
			}
		}
		if o.Up <= o.Down {
			return fmt.Errorf("up_s %s is not after down_s %s", row.text("up_s"), row.text("down_s"))
		}
		for _, other := range read[node] {
			if o.Down < other.Up && other.Down < o.Up {
				return fmt.Errorf("node %d is down on line %d already, at the same time", node, other.line)
			}
		}
		read[node] = append(read[node], o)
		return nil
	})
	out := OutageTable{}
	for node, list := range read {
		for _, o := range list {
			out[node] = append(out[node], o.Outage)
		}
		slices.SortFunc(out[node], func(a, b Outage) int { return int(min(max(a.Down-b.Down, -1), 1)) })
	}
	return out, err
}
