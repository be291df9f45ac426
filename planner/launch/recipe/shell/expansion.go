package shell

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func (s *Script) config() *expand.Config {
	return &expand.Config{Env: s,
		CmdSubst:  func(io.Writer, *syntax.CmdSubst) error { return nil },
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "/dev/null", nil },
	}
}

// errBig says that a word could grow beyond all bounds.
var errBig = errors.New("a word with too many expansions, brace sequences or replacements")

// bounded reports a word with an expansion that could be huge.
func bounded(n syntax.Node) error {
	var err error
	count := 0
	syntax.Walk(n, func(n syntax.Node) bool {
		switch v := n.(type) {
		case *syntax.ParamExp:
			if count++; count > maxInWord || v.Repl != nil || v.Slice != nil || v.Excl {
				err = errBig
			}
		case *syntax.Lit:
			if strings.Contains(v.Value, "..") && strings.Contains(v.Value, "{") {
				err = errBig
			}
		}
		return err == nil
	})
	return err
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
		if bounded(w) != nil {
			out = append(out, "")
			continue
		}
		more, err := guarded(func() ([]string, error) { return expand.Fields(s.config(), w) })
		if err == nil {
			out = append(out, more...)
		}
	}
	return out
}

func (s *Script) literal(w *syntax.Word) string {
	if w == nil || bounded(w) != nil {
		return ""
	}
	out, err := guarded(func() (string, error) { return expand.Literal(s.config(), w) })
	if err != nil {
		return ""
	}
	return out
}

func (s *Script) number(x syntax.ArithmExpr) (int, bool) {
	if bounded(x) != nil {
		return 0, false
	}
	n, err := guarded(func() (int, error) { return expand.Arithm(s.config(), x) })
	return n, err == nil
}
