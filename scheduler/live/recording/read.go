package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// beginning is how the first line of a session begins.
const beginning = `{"pacer_recording":`

// maxLine is the length of the longest line that is read, in bytes.
const maxLine = 256 << 20

// Is reports whether a file that begins with some bytes is a recording, of any version.
func Is(begins []byte) bool {
	return bytes.HasPrefix(begins, []byte(beginning[:min(len(begins), len(beginning))])) && len(begins) > 0
}

// Window is a part of a recording: times since its first line. To 0 = until its end.
type Window struct{ From, To time.Duration }

// Read reads a part of a recording; name is that of the file, for errors. A torn line is left out if
// nothing or a session follows it, as after a kill or a full disk. Any other mistake is an
// error with its line and value.
func Read(r io.Reader, name string, w Window) (*Recording, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	s := newState(w)
	var torn error // of the line before
	for number := 1; ; number++ {
		text, err := readLine(in)
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("recording: %s:%d: %w", name, number, err)
		}
		whole := err == nil
		text = bytes.TrimSpace(text)
		if torn != nil && len(text) > 0 {
			if !bytes.HasPrefix(text, []byte(beginning)) {
				return nil, torn
			}
			torn = nil
		}
		if len(text) > 0 {
			l, err := parseLine(text, s.began.IsZero())
			switch {
			case err == nil:
				err = s.add(&l)
			case isTorn(err):
				s.out.Torn++
				torn, err = fmt.Errorf("recording: %s:%d: %w", name, number, err), nil
			}
			if err != nil {
				return nil, fmt.Errorf("recording: %s:%d: %w", name, number, err)
			}
		}
		if !whole {
			break
		}
	}
	if s.began.IsZero() {
		return nil, fmt.Errorf("recording: %s: no whole line, want a file of pacer schedule --record", name)
	}
	if s.now.Before(s.began.Add(w.From)) {
		return nil, fmt.Errorf("recording: %s ends after %v, the window begins after %v", name, s.now.Sub(s.began).Round(time.Second), w.From)
	}
	out, err := s.finish()
	if err != nil {
		return nil, fmt.Errorf("recording: %s: %w", name, err)
	}
	return out, nil
}

// readLine returns a line with its end. The error is io.EOF after a line without one.
func readLine(in *bufio.Reader) (text []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > maxLine {
			return nil, fmt.Errorf("line of more than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

// tornError is the error of a line that is not JSON.
type tornError struct{ error }

func isTorn(err error) bool {
	var torn tornError
	return errors.As(err, &torn)
}

// parseLine reads a line. The first one of a recording begins a session.
func parseLine(text []byte, first bool) (l line, err error) {
	if first && !Is(text) {
		return l, fmt.Errorf("%.40q is no recording, want a file of pacer schedule --record", text)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return l, tornError{fmt.Errorf("%.40q: %w at byte %d", text, err, syntax.Offset)}
		}
		return l, fieldError(err)
	}
	session := bytes.HasPrefix(text, []byte(beginning))
	switch {
	case session && l.Version != Version:
		return l, fmt.Errorf("pacer_recording %d, this pacer reads version %d", l.Version, Version)
	case first && !session:
		return l, fmt.Errorf("%.40q: want %s%d,... first", text, beginning, Version)
	case l.At.Year() < 1970 || l.At.Year() > 2200:
		return l, fmt.Errorf("at %q, want a time such as %q", l.At.Format(time.RFC3339), "2026-01-02T15:04:05Z")
	}
	return l, nil
}

// fieldError words an error of package json about a field.
func fieldError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("%s: %s, want a %s", strings.TrimPrefix(kind.Field, "."), kind.Value, kind.Type)
	}
	return err
}
