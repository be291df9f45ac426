package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/pacer-ml/pacer/datasets/internal/table"
)

// element is a value of a JSON array and the line it ends on.
type element[T any] struct {
	value T
	line  int
}

// jsonArray yields the values of a JSON array one by one. A value of another type yields a
// *table.RowError, and reading continues; invalid JSON ends it.
func jsonArray[T any](in *input) iter.Seq2[element[T], error] {
	return func(yield func(element[T], error) bool) {
		text := &lineReader{r: in.reader, left: table.MaxLine, line: 1}
		d := json.NewDecoder(text)
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			yield(element[T]{}, fmt.Errorf("datasets: %s: is no JSON array", in.name))
			return
		}
		for d.More() && in.ctx.Err() == nil {
			var e element[T]
			text.left = table.MaxLine
			err := d.Decode(&e.value)
			e.line = text.at(d.InputOffset())
			err, ends := jsonFault(in.name, e.line, err)
			if !yield(e, err) || ends {
				return
			}
		}
		text.left = table.MaxLine
		_, err := d.Token()
		if err = cmp.Or(in.ctx.Err(), err); err != nil {
			yield(element[T]{}, fmt.Errorf("datasets: %s: the array does not end: %w", in.name, err))
		}
	}
}

// jsonFault converts the error of a value, and reports whether nothing can be read after it.
func jsonFault(file string, line int, err error) (fault error, ends bool) {
	var mismatched *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil, false
	case errors.As(err, &mismatched):
		return &table.RowError{File: file, Line: line, Column: cmp.Or(mismatched.Field, "entry"), Value: mismatched.Value,
			Err: fmt.Errorf("is not a %s", mismatched.Type.Kind())}, false
	}
	return fmt.Errorf("datasets: %s:%d: %w", file, line, err), true
}

// lineReader maps ascending offsets to lines, and fails for a value that is too long.
type lineReader struct {
	r    io.Reader
	left int // bytes until a value is too long

	read int64   // bytes so far
	ends []int64 // offsets after line ends not passed yet
	line int     // of the last offset asked for
}

func (l *lineReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a value %w", table.ErrTooLong)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i)+1)
		}
	}
	l.read += int64(n)
	l.left -= n
	return n, err
}

// at returns the line of an offset. Offsets must not descend.
func (l *lineReader) at(offset int64) int {
	passed := slices.IndexFunc(l.ends, func(end int64) bool { return end > offset })
	if passed < 0 {
		passed = len(l.ends)
	}
	l.line += passed
	l.ends = l.ends[passed:]
	return l.line
}
