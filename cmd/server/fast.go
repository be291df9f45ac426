package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// predictAtOnce answers a prediction whose body is plain and as it should be,
// without the checks of the API's schema: those decide about all other bodies,
// and say what is wrong with them.
func (s *Server) predictAtOnce(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if ct := r.Header["Content-Type"]; len(ct) != 1 || ct[0] != "application/json" {
		return false
	}
	var in PredictRequest
	if !plainQuestion(body, &in) {
		return false
	}
	out, err := s.predict(r.Context(), &in)
	if err != nil {
		return false
	}
	b, err := json.Marshal(out)
	if err != nil {
		return false
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	_, _ = w.Write(b) // whoever asked may be gone
	return true
}

var jsonType = []string{"application/json"}

// plainQuestion reads a question that is one flat JSON object of known fields,
// each at most once and in the range the schema allows, with strings without
// escapes. It returns false for everything else, which may be right all the same.
func plainQuestion(body []byte, in *PredictRequest) bool {
	p := plain{rest: body}
	if !p.byte('{') {
		return false
	}
	for {
		name, ok := p.text()
		if !ok || !p.byte(':') || !p.field(name, in) {
			return false
		}
		if p.byte('}') {
			break
		}
		if !p.byte(',') {
			return false
		}
	}
	p.space()
	return len(p.rest) == 0 && in.Question.Model != "" && in.Accelerator != "" && in.Plan != ""
}

// plain reads JSON that is plain.
type plain struct {
	rest []byte
	seen uint32 // fields, by their place in field
}

func (p *plain) space() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\n' || p.rest[0] == '\t' || p.rest[0] == '\r') {
		p.rest = p.rest[1:]
	}
}

// byte takes c, with space before it, if it is next.
func (p *plain) byte(c byte) bool {
	p.space()
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// text takes a string without escapes.
func (p *plain) text() (string, bool) {
	if !p.byte('"') {
		return "", false
	}
	for i, c := range p.rest {
		switch {
		case c == '"':
			s := string(p.rest[:i])
			p.rest = p.rest[i+1:]
			return s, true
		case c == '\\', c < ' ', c >= utf8.RuneSelf:
			return "", false
		}
	}
	return "", false
}

// whole takes a whole number from 1 to most.
func (p *plain) whole(most int) (int, bool) {
	p.space()
	n, i := 0, 0
	for ; i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9'; i++ {
		if n = 10*n + int(p.rest[i]-'0'); n > most || i == 0 && n == 0 {
			return 0, false
		}
	}
	if i == 0 || i < len(p.rest) && (p.rest[i] == '.' || p.rest[i] == 'e' || p.rest[i] == 'E') {
		return 0, false
	}
	p.rest = p.rest[i:]
	return n, true
}

// field takes the value of a field.
func (p *plain) field(name string, in *PredictRequest) (ok bool) {
	texts := [...]struct {
		name string
		most int
		to   *string
	}{{"model", 256, &in.Question.Model}, {"accelerator", 256, &in.Accelerator}, {"plan", 1024, &in.Plan}, {"shape", 4096, &in.Shape},
		{"framework", 256, &in.Framework}, {"precision", 32, &in.Precision}, {"node", 256, &in.Node}, {"family", 64, &in.Family}}
	for i := range texts {
		if t := &texts[i]; t.name == name {
			*t.to, ok = p.text()
			return ok && len(*t.to) <= t.most && p.first(i)
		}
	}
	wholes := [...]struct {
		name string
		most int
		to   *int
	}{{"seq", 1 << 24, &in.Seq}, {"global_batch", 1 << 24, &in.GlobalBatch}, {"devices", 1 << 20, &in.Devices}, {"per_node", 1 << 20, &in.PerNode}}
	for i := range wholes {
		if t := &wholes[i]; t.name == name {
			*t.to, ok = p.whole(t.most)
			return ok && p.first(len(texts)+i)
		}
	}
	return false
}

// first reports whether a field comes for the first time.
func (p *plain) first(i int) bool {
	old := p.seen
	p.seen |= 1 << i
	return p.seen != old
}
