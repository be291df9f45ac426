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
	plans       map[string]*spec.Plan
	shapes      map[string]*spec.Shape
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

// decode is decodeRecord into m.
func (d *recordDecoder) decode(b []byte, m *spec.Measurement) (err error) {
	if len(b) > 0 && b[0] == recordVersion && d.quick(b[1:], m) {
		return nil
	}
	*m, err = decodeRecord(b)
	return err
}

func (d *recordDecoder) quick(b []byte, m *spec.Measurement) (ok bool) {
	*m = spec.Measurement{}
	if d.plans == nil || len(d.plans) > maxKept || len(d.shapes) > maxKept {
		d.plans, d.shapes = map[string]*spec.Plan{}, map[string]*spec.Shape{}
	}
	d.rest, d.bad = b, false
	c := &m.Config
	d.expect(`{"config":{"model":`)
	recall(d, &d.model, &c.Model)
	if d.accept(`,"seq_len":`) {
		c.SeqLen = d.whole()
	}
	d.expect(`,"plan":`)
	lookUp(d, d.plans, &c.Plan)
	d.expect(`,"accelerator":`)
	recall(d, &d.accelerator, &c.Accelerator)
	d.expect(`,"shape":`)
	lookUp(d, d.shapes, &c.Shape)
	d.expect(`,"link":`)
	recall(d, &d.link, &c.Link)
	if d.accept(`,"framework":`) {
		d.framework = d.text(d.framework)
		c.Framework = d.framework
	}
	d.expect(`},"outcome":`)
	m.Outcome = spec.Outcome(d.text(string(spec.OK)))
	d.result(m)
	d.expect(`}`)
	return !d.bad && len(d.rest) == 0
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

// recall sets out to the value of the next object, the last one if that had the same text.
func recall[T any](d *recordDecoder, last *kept[T], out *T) {
	if len(last.text) > 0 && bytes.HasPrefix(d.rest, last.text) {
		d.rest = d.rest[len(last.text):]
		*out = last.value
		return
	}
	text := d.object()
	*out = decodeObject[T](d, text)
	if !d.bad {
		*last = kept[T]{bytes.Clone(text), *out}
	}
}

// lookUp sets out to the value of the next object. One that is known ends at the first brace.
func lookUp[T any](d *recordDecoder, known map[string]*T, out *T) {
	end := bytes.IndexByte(d.rest, '}') + 1
	if value, ok := known[string(d.rest[:end])]; ok && !d.bad {
		d.rest = d.rest[end:]
		*out = *value
		return
	}
	text := d.object()
	*out = decodeObject[T](d, text)
	if !d.bad && len(text) == end {
		value := *out
		known[string(text)] = &value
	}
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

// inNumber has the characters of numbers.
var inNumber = func() (set [256]bool) {
	for _, c := range []byte("0123456789+-.eE") {
		set[c] = true
	}
	return set
}()

// digits returns the text of a number of JSON: no sign or zero before its digits but "-" and "0.".
func (d *recordDecoder) digits() []byte {
	n, exponent := 0, false
	for n < len(d.rest) && inNumber[d.rest[n]] {
		exponent = exponent || d.rest[n] == 'e' || d.rest[n] == 'E'
		n++
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	plain := out
	if len(out) > 0 && out[0] == '-' {
		plain = out[1:]
	}
	if len(plain) == 0 || plain[0] < '0' || plain[0] > '9' || len(plain) > 1 && plain[0] == '0' && plain[1] >= '0' && plain[1] <= '9' || plain[len(plain)-1] == '.' ||
		exponent && (bytes.Contains(plain, []byte(".e")) || bytes.Contains(plain, []byte(".E"))) {
		d.bad = true
	}
	return out
}
