package store

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// recordDecoder is decodeRecord for many rows. Rows that lie together have the same model, accelerator and link, and few
// plans: the decoder keeps their text and does not decode it again. It knows the JSON that encodeRecord writes; other
// JSON takes the way of decodeRecord, with the same result.
type recordDecoder struct {
	model       kept[spec.Model]
	accelerator kept[spec.Accelerator]
	link        kept[spec.Link]
	plans       map[string]spec.Plan
	shapes      map[string]spec.Shape
	framework   string
	source      string

	record []byte // that is read
	rest   []byte // what is not decoded yet
	bad    bool   // the JSON has another form
}

// kept is a value with its JSON object.
type kept[T any] struct {
	text  []byte
	value T
}

// maxKept bounds the kept plans and shapes.
const maxKept = 4096

// decode is decodeRecord.
func (d *recordDecoder) decode(b []byte) (spec.Measurement, error) {
	if len(b) > 0 && b[0] == recordVersion {
		if m, ok := d.quick(b[1:]); ok {
			return m, nil
		}
	}
	return decodeRecord(b)
}

func (d *recordDecoder) quick(b []byte) (m spec.Measurement, ok bool) {
	if d.plans == nil || len(d.plans) > maxKept || len(d.shapes) > maxKept {
		d.plans, d.shapes = map[string]spec.Plan{}, map[string]spec.Shape{}
	}
	d.rest, d.bad = b, false
	c := &m.Config
	d.expect(`{"config":{"model":`)
	c.Model = recall(d, &d.model)
	if d.accept(`,"seq_len":`) {
		c.SeqLen = d.whole()
	}
	d.expect(`,"plan":`)
	c.Plan = lookUp(d, d.plans)
	d.expect(`,"accelerator":`)
	c.Accelerator = recall(d, &d.accelerator)
	d.expect(`,"shape":`)
	c.Shape = lookUp(d, d.shapes)
	d.expect(`,"link":`)
	c.Link = recall(d, &d.link)
	if d.accept(`,"framework":`) {
		d.framework = d.text(d.framework)
		c.Framework = d.framework
	}
	d.expect(`},"outcome":`)
	m.Outcome = spec.Outcome(d.text(string(spec.OK)))
	d.result(&m)
	d.expect(`}`)
	return m, !d.bad && len(d.rest) == 0
}

// result reads the fields after the outcome.
func (d *recordDecoder) result(m *spec.Measurement) {
	if d.accept(`,"reason":`) {
		m.Reason = d.text("")
	}
	if d.accept(`,"doubt":`) {
		m.Doubt = d.text("")
	}
	if d.accept(`,"step_sec":[`) {
		m.StepSec = d.numbers()
	}
	if d.accept(`,"phase_sec":`) {
		m.PhaseSec = decodeObject[map[string]float64](d, d.object())
	}
	if d.accept(`,"peak_bytes":`) {
		m.PeakBytes = d.number()
	}
	d.expect(`,"source":`)
	d.source = d.text(d.source)
	m.Source = d.source
	if d.accept(`,"origin":`) {
		m.Origin = d.text("")
	}
	if d.accept(`,"at":`) {
		quoted := d.rest
		d.text("")
		if !d.bad && m.At.UnmarshalJSON(quoted[:len(quoted)-len(d.rest)]) != nil {
			d.bad = true
		}
	}
	if d.accept(`,"env":`) {
		m.Env = decodeObject[map[string]string](d, d.object())
	}
}

// accept skips s if the rest begins with it.
func (d *recordDecoder) accept(s string) bool {
	if d.bad || len(d.rest) < len(s) || string(d.rest[:len(s)]) != s {
		return false
	}
	d.rest = d.rest[len(s):]
	return true
}

func (d *recordDecoder) expect(s string) {
	if !d.accept(s) {
		d.bad = true
	}
}

// object returns the next object, nil if there is none.
func (d *recordDecoder) object() []byte {
	depth, quoted := 0, false
	for i := 0; i < len(d.rest) && !d.bad; i++ {
		switch c := d.rest[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if depth == 0 && !quoted {
			if i == 0 {
				break // another kind of value
			}
			out := d.rest[:i+1]
			d.rest = d.rest[i+1:]
			return out
		}
	}
	d.bad = true
	return nil
}

// decodeObject decodes an object that object has returned.
func decodeObject[T any](d *recordDecoder, text []byte) (out T) {
	if text == nil || json.Unmarshal(text, &out) != nil {
		d.bad = true
	}
	return out
}

// recall returns the value of the next object, from the last one if that had the same text.
func recall[T any](d *recordDecoder, last *kept[T]) T {
	if len(last.text) > 0 && bytes.HasPrefix(d.rest, last.text) {
		d.rest = d.rest[len(last.text):]
		return last.value
	}
	text := d.object()
	out := decodeObject[T](d, text)
	if !d.bad {
		*last = kept[T]{bytes.Clone(text), out}
	}
	return out
}

// lookUp returns the value of the next object.
func lookUp[T any](d *recordDecoder, known map[string]T) T {
	text := d.object()
	if out, ok := known[string(text)]; ok {
		return out
	}
	out := decodeObject[T](d, text)
	if !d.bad {
		known[string(text)] = out
	}
	return out
}

// text reads a string without escapes. It returns last if that is equal.
func (d *recordDecoder) text(last string) string {
	if d.bad || len(d.rest) == 0 || d.rest[0] != '"' {
		d.bad = true
		return ""
	}
	for i, c := range d.rest[1:] {
		switch {
		case c == '"':
			s := d.rest[1 : i+1]
			d.rest = d.rest[i+2:]
			if string(s) == last {
				return last
			}
			d.bad = !utf8.Valid(s)
			return string(s)
		case c == '\\' || c < ' ':
			d.bad = true
			return ""
		}
	}
	d.bad = true
	return ""
}

// numbers reads the rest of a list of numbers.
func (d *recordDecoder) numbers() []float64 {
	end := bytes.IndexByte(d.rest, ']')
	if end < 0 {
		d.bad = true
		return nil
	}
	out := make([]float64, 0, 1+bytes.Count(d.rest[:end], []byte{','}))
	for !d.bad {
		out = append(out, d.number())
		if d.accept("]") {
			return out
		}
		d.expect(",")
	}
	return nil
}

func (d *recordDecoder) number() float64 {
	v, err := strconv.ParseFloat(string(d.digits()), 64)
	if err != nil {
		d.bad = true
	}
	return v
}

func (d *recordDecoder) whole() int {
	v, err := strconv.Atoi(string(d.digits()))
	if err != nil {
		d.bad = true
	}
	return v
}

// digits returns the text of a number of JSON: no sign or zero before its digits but "-" and "0.".
func (d *recordDecoder) digits() []byte {
	n := 0
	for n < len(d.rest) && (d.rest[n] >= '0' && d.rest[n] <= '9' || bytes.IndexByte([]byte("+-.eE"), d.rest[n]) >= 0) {
		n++
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	plain := bytes.TrimPrefix(out, []byte("-"))
	if len(plain) == 0 || plain[0] < '0' || plain[0] > '9' || len(plain) > 1 && plain[0] == '0' && plain[1] >= '0' && plain[1] <= '9' || plain[len(plain)-1] == '.' ||
		bytes.Contains(plain, []byte(".e")) || bytes.Contains(plain, []byte(".E")) {
		d.bad = true
	}
	return out
}
