package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// malformed returns the problem with a body that is no JSON, or has a number
// that does not exist: where it is, and what. nil if there is none.
func malformed(body []byte) *Problem {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil // huma says that there has to be one
	}
	m := walker{dec: json.NewDecoder(bytes.NewReader(body))}
	m.dec.UseNumber()
	err := m.value("body", 0)
	if err == nil {
		if _, err = m.dec.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		m.at, err = "body", errors.New("there is more after the JSON value")
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	p := newProblem(http.StatusBadRequest, "", fmt.Sprintf("the body is no JSON of the kind wanted: at %s, byte %d: %v", m.at, m.dec.InputOffset(), err))
	p.Errors = []*huma.ErrorDetail{{Location: m.at, Message: err.Error(), Value: near(body, m.dec.InputOffset())}}
	return p
}

// walker goes through JSON and remembers where it is.
type walker struct {
	dec *json.Decoder
	at  string
}

// maxDepth bounds how deep objects and lists may be in one another; questions
// need 6.
const maxDepth = 32

func (m *walker) value(at string, depth int) error {
	m.at = at
	if depth > maxDepth {
		return fmt.Errorf("more than %d levels", maxDepth)
	}
	t, err := m.dec.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Number:
		if _, err := strconv.ParseFloat(string(v), 64); err != nil {
			return fmt.Errorf("%s is larger than any number", cut(string(v), maxEcho))
		}
	case json.Delim:
		if v == '{' {
			return m.object(at, depth)
		}
		return m.list(at, depth)
	}
	return nil
}

func (m *walker) object(at string, depth int) error {
	for m.dec.More() {
		name, err := m.dec.Token()
		if err != nil {
			return err
		}
		if err := m.value(at+"."+cut(fmt.Sprint(name), maxEcho), depth+1); err != nil {
			return err
		}
		m.at = at
	}
	_, err := m.dec.Token() // the brace
	return err
}

func (m *walker) list(at string, depth int) error {
	for i := 0; m.dec.More(); i++ {
		if err := m.value(at+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
			return err
		}
		m.at = at
	}
	_, err := m.dec.Token() // the bracket
	return err
}

// near is what a body has at an offset.
func near(body []byte, offset int64) string {
	from := min(max(int(offset), 0), len(body))
	to := min(from+32, len(body))
	return string(bytes.ToValidUTF8(body[from:to], nil))
}
