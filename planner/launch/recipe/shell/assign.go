package shell

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxPlace bounds the place in an array that an assignment may name.
const maxPlace = 1 << 12

// declare follows declare, local, export, readonly and typeset.
func (s *Script) declare(c *syntax.DeclClause) error {
	flags := ""
	for _, a := range c.Args {
		switch {
		case a.Name == nil:
			if word := s.literal(a.Value); strings.HasPrefix(word, "-") {
				flags += word
			}
			continue
		case c.Variant.Value == "local" && s.locals != nil:
			if _, ok := s.locals[a.Name.Value]; !ok {
				s.locals[a.Name.Value] = s.vars[a.Name.Value]
			}
		}
		name := a.Name.Value
		if strings.Contains(flags, "A") && s.vars[name].Kind != expand.Associative {
			s.vars[name] = expand.Variable{Set: true, Kind: expand.Associative, Map: map[string]string{}}
		}
		if err := s.assign([]*syntax.Assign{a}); err != nil {
			return err
		}
		if v := s.vars[name]; strings.Contains(flags, "i") && v.Kind == expand.String {
			if n, ok := s.evaluated(v.Str); ok {
				s.set(name, strconv.Itoa(n))
			}
		}
	}
	return nil
}

// evaluated returns the value of an arithmetic expression.
func (s *Script) evaluated(text string) (int, bool) {
	x, err := syntax.NewParser().Arithmetic(strings.NewReader(text))
	if err != nil {
		return 0, false
	}
	return s.number(x)
}

func (s *Script) assign(list []*syntax.Assign) error {
	for _, a := range list {
		if a.Name == nil || a.Naked {
			continue
		}
		name := a.Name.Value
		clear(s.missed)
		if err := s.Set(name, s.value(a, s.vars[name])); err != nil {
			return err
		}
		s.holes[name] = s.without(name, a.Append || a.Index != nil)
	}
	return nil
}

// value returns the value that a variable has after an assignment.
func (s *Script) value(a *syntax.Assign, old expand.Variable) expand.Variable {
	switch {
	case a.Array != nil:
		out := expand.Variable{Set: true, Exported: true, Kind: expand.Indexed}
		if old.Kind == expand.Associative {
			out.Kind, out.Map = expand.Associative, map[string]string{}
		}
		if a.Append {
			out.List, out.Map = slices.Clone(old.List), maps.Clone(old.Map)
			if old.Kind == expand.String && old.Str != "" {
				out.List = []string{old.Str}
			}
		}
		for _, e := range a.Array.Elems {
			switch {
			case e.Value == nil:
			case e.Index != nil:
				s.place(&out, e.Index, s.literal(e.Value), false)
			default:
				out.List = append(out.List, s.fields(e.Value)...)
			}
		}
		return out
	case a.Index != nil:
		out := expand.Variable{Set: true, Exported: true, Kind: expand.Indexed, List: slices.Clone(old.List)}
		if old.Kind == expand.Associative {
			out.Kind, out.Map = expand.Associative, maps.Clone(old.Map)
		}
		s.place(&out, a.Index, s.literal(a.Value), a.Append)
		return out
	}
	out := expand.Variable{Set: true, Exported: true, Kind: expand.String}
	if a.Value != nil {
		out.Str = s.literal(a.Value)
	}
	if a.Append {
		out.Str = old.Str + out.Str
	}
	return out
}

// place sets an element of an array.
func (s *Script) place(v *expand.Variable, index syntax.ArithmExpr, value string, appended bool) {
	if v.Kind == expand.Associative {
		word, ok := index.(*syntax.Word)
		if !ok {
			return
		}
		key := s.literal(word)
		if appended {
			value = v.Map[key] + value
		}
		v.Map[key] = value
		return
	}
	n, ok := s.number(index)
	if !ok || n < 0 || n > maxPlace {
		return
	}
	for len(v.List) <= n {
		v.List = append(v.List, "")
	}
	if appended {
		value = v.List[n] + value
	}
	v.List[n] = value
}
