package shell

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func (s *Script) config() *expand.Config {
	return &expand.Config{Env: s,
		CmdSubst:  func(w io.Writer, c *syntax.CmdSubst) error { return s.substitution(w, c.Stmts) },
		ProcSubst: s.process,
	}
}

// errBig says that a word could grow beyond all bounds.
var errBig = errors.New("a word with too many expansions, brace sequences or replacements")

// bounded reports a word with an expansion that could be huge. From then on optional has the variables that the word does
// not need a value of.
func (s *Script) bounded(n syntax.Node) error {
	var err error
	count := 0
	optional := map[string]bool{}
	defer func() { s.optional = optional }()
	syntax.Walk(n, func(n syntax.Node) bool {
		switch v := n.(type) {
		case *syntax.ParamExp:
			if count++; count > maxInWord || v.Repl != nil && !s.smallReplacement(v) {
				err = errBig
			}
			if v.Param != nil {
				before, seen := optional[v.Param.Value]
				optional[v.Param.Value] = hasDefault(v) && (before || !seen)
			}
		case *syntax.Lit:
			if strings.Contains(v.Value, "..") && strings.Contains(v.Value, "{") {
				err = errBig
			}
		case *syntax.CmdSubst:
			return false // its words are looked at when they are expanded
		}
		return err == nil
	})
	return err
}

// hasDefault reports whether a word has a value where the variable has none: ${X:-d}, ${X:+d}.
func hasDefault(p *syntax.ParamExp) bool {
	if p.Exp == nil {
		return false
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		return true
	}
	return false
}

// smallReplacement reports whether ${NAME//old/new} cannot be huge: each character of the value could become the new text.
// A replacement within a replacement is none.
func (s *Script) smallReplacement(p *syntax.ParamExp) bool {
	if p.Param == nil {
		return false
	}
	nested := p.Excl
	for _, w := range []*syntax.Word{p.Repl.Orig, p.Repl.With} {
		if w == nil {
			continue
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			if inner, ok := n.(*syntax.ParamExp); ok && inner.Repl != nil {
				nested = true
			}
			return !nested
		})
	}
	if nested {
		return false
	}
	v := s.vars[p.Param.Value]
	return (weight(v)+len(s.given[p.Param.Value])+size(s.args)+1)*(len(s.literal(p.Repl.With))+1) <= maxScript
}

// guarded calls f and returns a panic of the library as an error.
func guarded[T any](f func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("an expansion that cannot be followed: %v", p)
		}
	}()
	return f()
}

func (s *Script) fields(words ...*syntax.Word) []string {
	var out []string
	for _, w := range words {
		if s.bounded(w) != nil {
			out = append(out, "")
			continue
		}
		if part, ok := s.partOfArray(w); ok {
			out = append(out, part...)
			continue
		}
		more, err := guarded(func() ([]string, error) { return expand.Fields(s.config(), w) })
		if err == nil {
			out = append(out, more...)
		}
	}
	return out
}

// partOfArray returns the elements of a word that is ${ARRAY[@]:from:n} or ${@:from:n}, which the library takes for the
// whole array.
func (s *Script) partOfArray(w *syntax.Word) ([]string, bool) {
	parts := w.Parts
	if len(parts) == 1 {
		if quoted, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = quoted.Parts
		}
	}
	if len(parts) != 1 {
		return nil, false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	if !ok || p.Slice == nil || p.Param == nil {
		return nil, false
	}
	list := s.Get(p.Param.Value).List
	if index, ok := p.Index.(*syntax.Word); p.Param.Value == "@" {
		list = append([]string{"script"}, s.args...)
	} else if !ok || index.Lit() != "@" {
		return nil, false
	}
	from, _ := s.number(p.Slice.Offset)
	if from < 0 {
		from += len(list)
	}
	from = min(max(from, 0), len(list))
	n := len(list) - from
	if p.Slice.Length != nil {
		n, _ = s.number(p.Slice.Length)
	}
	return slices.Clone(list[from : from+min(max(n, 0), len(list)-from)]), true
}

func (s *Script) literal(w *syntax.Word) string {
	if w == nil || s.bounded(w) != nil {
		return ""
	}
	out, err := guarded(func() (string, error) { return expand.Literal(s.config(), w) })
	if err != nil {
		return ""
	}
	return out
}

func (s *Script) number(x syntax.ArithmExpr) (int, bool) {
	if s.bounded(x) != nil {
		return 0, false
	}
	n, err := guarded(func() (int, error) { return expand.Arithm(s.config(), x) })
	return n, err == nil
}
