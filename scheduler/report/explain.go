package report

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// Explanations collects the events of some jobs with their reasons.
type Explanations struct {
	Jobs []spec.JobID
	rows []eventRow
}

// Explain returns the value for sim.Config.Explain that collects a policy's run.
func (x *Explanations) Explain(policy string) *sim.Explain {
	return &sim.Explain{Jobs: x.Jobs, OnEvent: func(e sim.Event) { x.rows = append(x.rows, eventRow{policy, e}) }}
}

// MarshalJSON writes a list of objects. Their fields are the columns of a file of
// events.
func (x *Explanations) MarshalJSON() ([]byte, error) {
	b := []byte("[")
	for i := range x.rows {
		if i > 0 {
			b = append(b, ',')
		}
		row, err := jsonRow(eventColumns, &x.rows[i])
		if err != nil {
			return nil, err
		}
		b = append(b, row...)
	}
	return append(b, ']'), nil
}

// jsonRow writes a row as a JSON object.
func jsonRow[T any](columns []column[T], row *T) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, c := range columns {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := c.kind.json(c.get(row))
		if err != nil {
			return nil, err
		}
		b.WriteString(`"` + c.name + `":`)
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// WriteCSV writes a row per event, with the columns of a file of events.
func (x *Explanations) WriteCSV(w io.Writer) error {
	out, err := newRowWriter(w, CSV, "", eventColumns)
	for i := range x.rows {
		if err == nil {
			err = out.write(&x.rows[i])
		}
	}
	if err != nil {
		return err
	}
	return out.close()
}

// WriteTable writes a table per policy and job, with a line per event.
func (x *Explanations) WriteTable(w io.Writer) error {
	for _, policy := range x.policies() {
		for _, id := range x.Jobs {
			if _, err := io.WriteString(w, "\n"+policy+", job "+string(id)+"\n"); err != nil {
				return err
			}
			if err := x.table(policy, id).Write(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// policies lists the policies with events, in the order of their runs.
func (x *Explanations) policies() (out []string) {
	for i := range x.rows {
		if p := x.rows[i].policy; len(out) == 0 || out[len(out)-1] != p {
			out = append(out, p)
		}
	}
	return out
}

func (x *Explanations) table(policy string, id spec.JobID) Table {
	t := Table{Header: []string{"at", "event", "devices", "plan", "why"}, Width: 160}
	for i := range x.rows {
		r := &x.rows[i]
		if r.policy != policy || r.Job.ID != id {
			continue
		}
		devices := ""
		if r.Grant != nil {
			devices = slotsText(r.Grant)
		}
		t.Rows = append(t.Rows, []string{r.At.Round(time.Millisecond).String(), r.Kind.String(), devices, planText(r.Grant), r.Why})
	}
	return t
}

// WriteExplained writes {"runs":[...],"explanations":[...]}.
func WriteExplained(w io.Writer, runs []Summary, x *Explanations) error {
	return writeJSON(w, struct {
		Runs         []Summary     `json:"runs"`
		Explanations *Explanations `json:"explanations"`
	}{runs, x})
}

// json writes a cell as a JSON value.
func (k kind) json(c cell) ([]byte, error) {
	switch {
	case c.null:
		return []byte("null"), nil
	case k == textKind:
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := enc.Encode(c.s)
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
	}
	return []byte(k.csv(c)), nil
}
