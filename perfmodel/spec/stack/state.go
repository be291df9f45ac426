package stack

import (
	"errors"
	"fmt"
	"strings"
)

// InputError reports the input of State that cannot be read.
type InputError struct {
	Input string // framework, stack or date
	Value string // of several parts, the one at fault
	Why   string // without the value
	Err   error  // an *UnknownError, *ReleaseError, *PartError or nil
}

func (e *InputError) Error() string {
	return fmt.Sprintf("stack: %s %q: %s", e.Input, e.Value, e.Why)
}

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

// State returns the stack that three inputs state: a framework is a text of Parse, parts are "PART=VALUE ..." that
// replace its own, and date is the latest date of its release. Each may be "". The error is an *InputError. If it
// wraps an *UnknownError, everything else is valid.
func State(framework, parts, date string) (Stated, error) {
	s, unknown := Parse(framework)
	if unknown != nil && !errors.As(unknown, new(*UnknownError)) {
		return s, inputError("framework", framework, unknown)
	}
	for _, part := range strings.Fields(parts) {
		if !strings.Contains(part, "=") {
			return s, &InputError{Input: "stack", Value: part, Why: "want PART=VALUE, such as launch=eager"}
		}
		if err := s.addParts([]string{part}); err != nil {
			return s, inputError("stack", part, err)
		}
	}
	if date != "" && !dateForm.MatchString(date) {
		return s, &InputError{Input: "date", Value: date, Why: "want YYYY, YYYY-MM or YYYY-MM-DD"}
	}
	s = s.Until(date)
	if unknown != nil {
		return s, inputError("framework", framework, unknown)
	}
	return s, nil
}

func inputError(input, value string, err error) error {
	e := &InputError{Input: input, Value: value, Err: err}
	var (
		unknown *UnknownError
		release *ReleaseError
		part    *PartError
	)
	switch {
	case errors.As(err, &unknown):
		e.Why = unknown.Why()
	case errors.As(err, &release):
		e.Why = release.Why
	case errors.As(err, &part):
		e.Why = part.why()
	}
	return e
}
