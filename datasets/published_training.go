package datasets

import (
	"errors"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// framework returns the training stack in the form of package stack: that of its columns, else that of the source. A
// stack without a release is not later than the date of the row.
func (r *publishedRow) framework() string {
	s := r.source
	if s.adapters {
		r.assume("only adapters were trained, taken as training all weights")
	}
	text := r.Str("framework")
	switch {
	case text != "":
	case s.folders:
		text, _, _ = strings.Cut(r.Str("model"), "/")
	default:
		text = s.framework
	}
	if month := monthOf.FindStringSubmatch(r.Str("source_path")); s.dated && month != nil && text == s.framework {
		text += "@" + month[1] + "-" + month[2]
	}
	return r.stated(text)
}

// monthOf finds a month in the name of a file, such as llama3_h100_202412_torchtitan.md.
var monthOf = regexp.MustCompile(`_(20\d\d)-?(0[1-9]|1[0-2])_[^/]*$`)

// stackText is what the stack of a row is read from.
type stackText struct{ framework, parts, date, release string }

// releaseNote is a release in the notes: "release=26.04".
var releaseNote = regexp.MustCompile(`(?i)\brelease[ =]v?([0-9]+(?:\.[0-9]+)*)`)

func (r *publishedRow) stated(framework string) string {
	parts := r.Str("stack")
	if parts == "" {
		parts = r.source.parts
	}
	key := stackText{framework: framework, parts: parts, date: r.Str("source_date")}
	if note := releaseNote.FindStringSubmatch(r.Str("notes")); note != nil && framework != "" {
		key.release = note[1]
	}
	st, ok := r.table.stacks[key]
	if !ok {
		var err error
		if st, err = stack.Parse(key.framework + " " + key.parts); err != nil && !errors.As(err, new(*stack.UnknownError)) {
			column := "framework"
			if errors.As(err, new(*stack.PartError)) && r.Str("stack") != "" {
				column = "stack"
			}
			r.Fail(column, err)
			return ""
		}
		st = st.At(key.release).Until(key.date)
		r.table.stacks[key] = st
	}
	switch r.stack = st.Name; {
	case st.Name == "":
		r.note("training stack not recorded, taken as any of its time")
	case !st.Known():
		r.note("training stack %q not known, taken as any of its time", st.Name)
	}
	return st.Canonical()
}

// loraNote is fine-tuning in the notes: "LoRA rank 16".
var loraNote = regexp.MustCompile(`(?i)\b(q?lora|dora) rank ([0-9]+)`)

// adapter returns what is trained: as the column says, or without the column a note of the rank.
func (r *publishedRow) adapter() spec.Adapter {
	text := r.Str("adapter")
	if note := loraNote.FindStringSubmatch(r.Str("notes")); note != nil && text == "" {
		text = strings.ToLower(note[1]) + ":" + note[2]
	}
	a, err := spec.ParseAdapter(text)
	if err != nil {
		r.Fail("adapter", err)
	}
	return a
}

// adapted returns m with the row's adapter, and a name with it.
func (r *publishedRow) adapted(m spec.Model) spec.Model {
	m = m.Adapted(r.adapter())
	if m.Adapter.Kind != spec.FullTraining && !m.HasShape() {
		r.Fail("adapter", errors.New("needs a model with known layers and widths"))
	}
	return m
}
