package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
	"github.com/pacer-ml/pacer/planner/launch"
	"github.com/pacer-ml/pacer/profiler/store/reader"
)

// AssumeStackOf makes the training stack of the framework that launch files are written for that of q, unless q
// states another one or name is "". The error is a *FieldError.
func (q *Request) AssumeStackOf(name string) error {
	if name == "" {
		return nil
	}
	f, err := launch.Lookup(name)
	if err != nil {
		return &FieldError{Field: "emit", Value: name, Err: err}
	}
	q.Framework = cmp.Or(q.Framework, f.Stack)
	return nil
}

// checkStack returns a *FieldError if the training stack of q cannot be read. It accepts unknown names.
func (q *Request) checkStack() error {
	_, err := stack.State(q.Framework, q.Stack, q.Date)
	var bad *stack.InputError
	if !errors.As(err, &bad) || errors.As(err, new(*stack.UnknownError)) {
		return nil
	}
	return &FieldError{Field: bad.Input, Value: bad.Value, Why: ": " + bad.Why}
}

// stackText returns the training stack of q as one canonical text of package stack. The parts and the date of q
// change the stack that q names, else the one that its measurements have in common. An unknown name must be that
// of stored measurements.
func (r *Resolver) stackText(ctx context.Context, q *Request, measured string) (string, error) {
	if q.Framework == "" && q.Stack == "" && q.Date == "" {
		return measured, nil
	}
	s, err := stack.State(cmp.Or(q.Framework, measured), q.Stack, q.Date)
	var unknown *stack.UnknownError
	var bad *stack.InputError
	switch {
	case errors.As(err, &unknown) && q.Framework != "":
		if s.Name, err = r.storedStack(ctx, q.Framework, unknown); err != nil {
			return "", err
		}
	case errors.As(err, &bad) && unknown == nil: // checkStack accepts the fields of q
		return "", &FieldError{Field: "framework", Value: "", Why: fmt.Sprintf("is missing: that of the measurements, %q, is not a training stack: %s", measured, bad.Why)}
	}
	text := s.Canonical()
	if m, err := stack.Parse(measured); (err == nil || errors.As(err, &unknown)) && m.Canonical() == text {
		return measured, nil // as fitted models know it
	}
	return text, nil
}

// storedStack returns the name that stored measurements have for a training stack that is not in package stack. The
// error is a *FieldError if there is none.
func (r *Resolver) storedStack(ctx context.Context, text string, unknown *stack.UnknownError) (string, error) {
	name := unknown.Name
	_, err := r.findRow(ctx, reader.Filter{}, func(m *spec.Measurement) bool {
		stored, _ := stack.Parse(m.Config.Framework)
		if !strings.EqualFold(stored.Name, unknown.Name) {
			return false
		}
		name = stored.Name
		return true
	})
	if err == nil || errors.Is(err, reader.ErrLocked) {
		return name, nil
	}
	if !errors.Is(err, errNoRow) {
		return "", err
	}
	return "", &FieldError{Field: "framework", Value: text, Why: unknown.Why() + ". pacer ls stacks lists them; the names of stored measurements count too"}
}
