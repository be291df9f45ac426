package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/measured"
	"github.com/pacer-ml/pacer/planner"
)

// Exit codes.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2 // wrong usage, or an unknown name
	exitNoAnswer = 3 // a valid question without an answer: no plan fits, a search finds nothing
	exitPartial  = 4 // done in part: rows that cannot be used, failed runs, an interruption
)

// exitKinds name the exit codes in JSON.
var exitKinds = map[int]string{exitFailed: "failed", exitUsage: "usage", exitNoAnswer: "no_answer", exitPartial: "partial"}

// exitError carries the exit code of an error that is not a plain failure.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode maps an error to the exit code.
func exitCode(err error) int {
	var ee *exitError
	var unknown *catalog.UnknownError
	var field *query.FieldError
	var usage cli.ExitCoder // of the flag library
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &ee):
		return ee.code
	case errors.As(err, &field) && field.NoAnswer:
		return exitNoAnswer
	case errors.As(err, &field), errors.As(err, &unknown):
		return exitUsage
	case errors.Is(err, planner.ErrInfeasible), errors.Is(err, perfmodel.ErrNotCovered),
		errors.Is(err, perfmodel.ErrTooFewPoints), errors.Is(err, measured.ErrNotMeasured):
		return exitNoAnswer
	}
	return exitFailed
}

// errorObject is an error in JSON, for --output json.
type errorObject struct {
	Code    int    `json:"code"`            // the exit code
	Kind    string `json:"kind"`            // failed, usage, no_answer or partial
	Field   string `json:"field,omitempty"` // the flag at fault, without its dashes
	Value   any    `json:"value,omitempty"` // of that flag
	Message string `json:"message"`
}

// printError writes err to standard error, as JSON if asJSON.
func printError(ctx context.Context, stderr io.Writer, err error, asJSON bool) {
	text := message(err)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		text = "interrupted: " + text
	}
	if !asJSON {
		fmt.Fprintln(stderr, "pacer:", text)
		return
	}
	out := errorObject{Code: exitCode(err), Kind: exitKinds[exitCode(err)], Message: text}
	var field *query.FieldError
	var unknown *catalog.UnknownError
	switch {
	case errors.As(err, &field):
		out.Field, out.Value = strings.TrimPrefix(flagOf(field.Field), "--"), field.Value
	case errors.As(err, &unknown):
		out.Field, out.Value = strings.TrimSuffix(unknown.What, " type"), unknown.Name
	}
	enc := json.NewEncoder(stderr)
	enc.SetEscapeHTML(false)
	if enc.Encode(out) != nil { // a value that JSON does not have
		out.Value = fmt.Sprint(out.Value)
		_ = enc.Encode(out)
	}
}

// message is the text of an error for people: options are flags, and only the outer
// package is named.
func message(err error) string {
	text := plain(err)
	var field *query.FieldError
	if errors.As(err, &field) {
		text = strings.Replace(text, plain(field), plain(errors.New(field.Named(flagOf))), 1)
	}
	text = withGroups(text)
	var unknown *catalog.UnknownError
	if errors.As(err, &unknown) && !strings.Contains(text, "\n") {
		text += fmt.Sprintf(" (all: pacer ls %ss)", strings.TrimSuffix(unknown.What, " type"))
	}
	return text
}

// flagOf is the flag a field of a request or an option of a simulation is read from.
func flagOf(field string) string { return "--" + strings.ReplaceAll(field, "_", "-") }

// forVerb names the verb in an error about one of its flags.
func forVerb(c *cli.Context, err error) error {
	var bad *query.FieldError
	if !errors.As(err, &bad) || bad.Err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", c.Command.Name, err)
}

// wantsJSON reports whether args ask for --output json.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	for i, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if slices.Contains([]string{"--output", "-output", "-o", "--o"}, name) && value == "json" {
			return true
		}
	}
	return false
}
