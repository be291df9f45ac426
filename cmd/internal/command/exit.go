package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
)

// exitKinds name the exit codes in JSON.
var exitKinds = map[int]string{fail.Failed: "failed", fail.Usage: "usage", fail.NoAnswer: "no_answer", fail.Partial: "partial"}

// errorObject is an error in JSON, for --output json.
type errorObject struct {
	Code    int    `json:"code"`            // the exit code
	Kind    string `json:"kind"`            // failed, usage, no_answer or partial
	Field   string `json:"field,omitempty"` // the flag at fault, without its dashes
	Value   any    `json:"value,omitempty"` // of that flag
	Message string `json:"message"`
}

// printError writes err to standard error, as JSON if asJSON.
func printError(ctx context.Context, stderr io.Writer, err error, asJSON bool, groups Groups) {
	text := message(err, groups)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		text = "interrupted: " + text
	}
	if !asJSON {
		fmt.Fprintln(stderr, "pacer:", text)
		return
	}
	out := errorObject{Code: fail.Code(err), Kind: exitKinds[fail.Code(err)], Message: text}
	var field *query.FieldError
	var unknown *catalog.UnknownError
	switch {
	case errors.As(err, &field):
		out.Field, out.Value = strings.TrimPrefix(FlagOf(field.Field), "--"), field.Value
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

// Message is the text of an error for people, as at the end of a command.
func Message(err error) string { return message(err, nil) }

// message is the text of an error for people: options are flags, and packages are not named.
func message(err error, groups Groups) string {
	text := plain(err)
	var field *query.FieldError
	if errors.As(err, &field) {
		text = strings.Replace(text, plain(field), plain(errors.New(field.Named(FlagOf))), 1)
	}
	text = groups.rename(text)
	var unknown *catalog.UnknownError
	if errors.As(err, &unknown) && !strings.Contains(text, "\n") {
		text += fmt.Sprintf(" (all: pacer ls %ss)", strings.TrimSuffix(unknown.What, " type"))
	}
	return text
}

// FlagOf is the flag of a field of a request or of an option of a simulation.
func FlagOf(field string) string { return "--" + strings.ReplaceAll(field, "_", "-") }

// ForVerb names the verb in an error about one of its flags.
func ForVerb(c *cli.Context, err error) error {
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
