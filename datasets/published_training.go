package datasets

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stack"
)

// framework returns the training stack in the form of package stack: that of its columns, else that of the source. A
// stack without a release is not later than the date of the row.
func (r *publishedRow) framework() string {
	s, text := r.source, r.Str("framework")
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

// statedStack is the stack of such a text, with a note on what of it is ignored, and the stack that resembles an unknown name.
type statedStack struct {
	stack.Stated
	note, near string
}

func (r *publishedRow) stated(framework string) string {
	parts := r.Str("stack")
	if parts == "" {
		parts = r.source.parts
		for _, n := range r.source.noted {
			if n.words.MatchString(r.Str("notes")) && r.Count("num_gpus") >= n.devices {
				parts += " " + n.parts
			}
		}
		if r.recipe != nil {
			parts += " " + r.recipe.parts
		}
		if adapter, _, _ := r.adapterText(); adapter != "" && adapter != "none" {
			for _, a := range r.source.adapted {
				if a.of(framework) {
					parts += " " + a.parts
				}
			}
		}
	}
	if s, err := stack.Parse(framework); err == nil && r.source.releases[s.Canonical()] != "" {
		framework = r.source.releases[s.Canonical()]
	}
	key := stackText{framework: framework, parts: parts, date: r.Str("source_date")}
	if note := releaseNote.FindStringSubmatch(r.Str("notes")); note != nil && framework != "" {
		key.release = note[1]
	}
	st, ok := r.table.stacks[key]
	if !ok {
		column, err := "", error(nil)
		if st, column, err = key.parse(); err != nil {
			r.Fail(column, err)
			return ""
		}
		r.table.stacks[key] = st
	}
	if st.note != "" {
		r.note("%s", st.note)
	}
	const average = ": averaged over the common ones"
	switch r.stack = st.Name; {
	case st.Known() && st.Name != "":
	case r.Str("framework") == "" || st.Name == "":
		r.note("training stack not recorded" + average)
	default:
		fix := "write one of them in column framework, or parts in column stack"
		if st.near != "" {
			fix = "did you mean " + st.near + "? Write it in column framework, or parts in column stack"
		}
		r.note("training stack %q is not in pacer ls stacks"+average+"; %s", st.Name, fix)
	}
	return st.Canonical()
}

// parse reads the stack. An error is about a column.
func (t *stackText) parse() (st statedStack, column string, err error) {
	s, err := stack.State(t.framework, t.parts, t.date)
	bad := &stack.InputError{}
	if errors.As(err, &bad) && bad.Input == "date" {
		st.note = fmt.Sprintf("source_date %q is not YYYY, YYYY-MM or YYYY-MM-DD and ignored", t.date)
		s, err = stack.State(t.framework, t.parts, "")
	}
	unknown := &stack.UnknownError{}
	if errors.As(err, &unknown) {
		st.near, err = unknown.Near, nil
	}
	if err != nil {
		if bad.Value != t.framework && bad.Value != t.parts { // one of several parts
			return st, bad.Input, fmt.Errorf("%q: %s", bad.Value, bad.Why)
		}
		return st, bad.Input, errors.New(bad.Why)
	}
	st.Stated = s.At(t.release)
	return st, "", nil
}

// rankNote and taskNote are adapters in the notes, with their rank, "LoRA rank 16", and without, "task=LoRA".
var (
	rankNote = regexp.MustCompile(`(?i)\b(q?lora|dora)\b[;,:( ]*rank[ =:]*([0-9]+)\b`)
	taskNote = regexp.MustCompile(`(?i)\btask=(q?lora|dora)\b`)
)

// adapterText returns the adapter of the column, or without one of the notes or of the model's name, where it was read, and
// whether its rank is assumed.
func (r *publishedRow) adapterText() (text, column string, assumed bool) {
	text, notes := r.Str("adapter"), r.Str("notes")
	if text != "" {
		return text, "adapter", false
	}
	column = "adapter (from notes)"
	if n := rankNote.FindStringSubmatch(notes); n != nil {
		text = n[1] + ":" + n[2]
	} else if n := taskNote.FindStringSubmatch(notes); n != nil {
		text, assumed = n[1], true
	} else if _, kind := r.modelName(); kind != "" {
		text, column, assumed = string(kind), "adapter (from model)", true
	}
	if assumed {
		text += fmt.Sprintf(":%d", catalog.UsualRank)
	}
	return strings.ToLower(text), column, assumed
}

// adapted returns m with the row's adapter, and a name with it.
func (r *publishedRow) adapted(m spec.Model) spec.Model {
	text, column, assumed := r.adapterText()
	if assumed {
		r.note("rank of the adapters not recorded, taken as %d", catalog.UsualRank)
	}
	a, err := spec.ParseAdapter(text)
	if err == nil {
		bare := m
		bare.Adapter = a
		err = bare.CheckAdapter()
	}
	if err != nil {
		r.FailValue(column, text, err)
	}
	m = m.Adapted(a)
	if r.unknownAdapter(&m) {
		r.assume("only adapters were trained, taken as training all weights")
	}
	return m
}

// packed returns m with the row's length of packed documents, and a name with it.
func (r *publishedRow) packed(m spec.Model) spec.Model {
	tokens := r.Count("packed")
	switch seq := r.m.Config.Seq(); {
	case tokens == 0:
	case !m.HasShape():
		r.Fail("packed", errors.New("needs a model with known layers and widths"))
	case seq > 0 && tokens > seq:
		r.Fail("packed", fmt.Errorf("is more than the %d tokens of a sample", seq))
	}
	return m.WithPacked(tokens)
}

// imbalanced returns m with the row's imbalance of experts, and a name with it.
func (r *publishedRow) imbalanced(m spec.Model) spec.Model {
	out := m.WithImbalance(r.Float("imbalance"))
	if out.Imbalance != 0 {
		if err := out.CheckImbalance(); err != nil {
			r.Fail("imbalance", err)
		}
	}
	return out
}

// unknownAdapter reports whether adapters of m were trained that the row does not state.
func (r *publishedRow) unknownAdapter(m *spec.Model) bool {
	return r.source.adapters && m.Adapter.Kind == spec.FullTraining
}
