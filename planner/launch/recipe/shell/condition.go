package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"

	"regexp"
)

// condition evaluates [ ], [[ ]], (( )), true and false. known is false for other programs.
func (s *Script) condition(st *syntax.Stmt) (yes, known bool) {
	defer func() {
		if st.Negated && known {
			yes = !yes
		}
	}()
	switch c := st.Cmd.(type) {
	case *syntax.TestClause:
		return s.test(c.X), true
	case *syntax.ArithmCmd:
		n, ok := s.number(c.X)
		return ok && n != 0, true
	case *syntax.BinaryCmd:
		x, knownX := s.condition(c.X)
		y, knownY := s.condition(c.Y)
		switch c.Op {
		case syntax.AndStmt:
			return x && y, knownX && knownY
		case syntax.OrStmt:
			return x || y, knownX && knownY
		}
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false, false
		}
		switch c.Args[0].Lit() {
		case "true", ":":
			return true, true
		case "false":
			return false, true
		case "[", "test":
			words := make([]string, 0, len(c.Args))
			for _, a := range c.Args[1:] {
				if f := s.fields(a); len(f) > 0 {
					words = append(words, f...)
				}
			}
			if n := len(words); n > 0 && words[n-1] == "]" {
				words = words[:n-1]
			}
			return classicTest(words), true
		}
	}
	return false, false
}

// classicTest evaluates the words of [ ].
func classicTest(w []string) bool {
	for i, op := range w {
		if i > 0 && (op == "-a" || op == "-o") {
			x, y := classicTest(w[:i]), classicTest(w[i+1:])
			return x && y || op == "-o" && (x || y)
		}
	}
	if len(w) > 0 && w[0] == "!" {
		return !classicTest(w[1:])
	}
	switch len(w) {
	case 0:
		return false
	case 1:
		return w[0] != "" && w[0] != "-n"
	case 2:
		switch w[0] {
		case "-z":
			return w[1] == ""
		case "-n":
			return w[1] != ""
		}
		return strings.HasPrefix(w[0], "-") // a file: it is taken to be there
	}
	return compared(w[0], w[1], w[2])
}

// compared evaluates a binary operator of [ ].
func compared(x, op, y string) bool {
	a, errA := strconv.Atoi(x)
	b, errB := strconv.Atoi(y)
	numbers := errA == nil && errB == nil
	switch op {
	case "=", "==":
		return x == y
	case "!=":
		return x != y
	case "-eq":
		return numbers && a == b
	case "-ne":
		return numbers && a != b
	case "-gt":
		return numbers && a > b
	case "-ge":
		return numbers && a >= b
	case "-lt":
		return numbers && a < b
	case "-le":
		return numbers && a <= b
	}
	return false
}

// test evaluates an expression of [[ ]].
func (s *Script) test(x syntax.TestExpr) bool {
	switch v := x.(type) {
	case *syntax.Word:
		return s.literal(v) != ""
	case *syntax.ParenTest:
		return s.test(v.X)
	case *syntax.UnaryTest:
		word, _ := v.X.(*syntax.Word)
		switch v.Op {
		case syntax.TsNot:
			return !s.test(v.X)
		case syntax.TsEmpStr:
			return s.literal(word) == ""
		case syntax.TsNempStr:
			return s.literal(word) != ""
		case syntax.TsVarSet:
			return s.Get(s.literal(word)).IsSet()
		}
		return true // a file: it is taken to be there
	case *syntax.BinaryTest:
		switch v.Op {
		case syntax.AndTest:
			return s.test(v.X) && s.test(v.Y)
		case syntax.OrTest:
			return s.test(v.X) || s.test(v.Y)
		}
		left, _ := v.X.(*syntax.Word)
		right, _ := v.Y.(*syntax.Word)
		switch v.Op {
		case syntax.TsMatch, syntax.TsMatchShort:
			return s.matches(s.literal(left), right)
		case syntax.TsNoMatch:
			return !s.matches(s.literal(left), right)
		case syntax.TsReMatch:
			re, err := regexp.Compile(s.literal(right))
			return err == nil && re.MatchString(s.literal(left))
		}
		return compared(s.literal(left), v.Op.String(), s.literal(right))
	}
	return false
}

// matches reports whether value matches a pattern of the shell.
func (s *Script) matches(value string, w *syntax.Word) bool {
	if w == nil || s.bounded(w) != nil {
		return false
	}
	text, err := guarded(func() (string, error) { return expand.Pattern(s.config(), w) })
	if err != nil {
		return false
	}
	re, err := pattern.Regexp(text, pattern.EntireString)
	if err != nil {
		return false
	}
	compiled, err := regexp.Compile(re)
	return err == nil && compiled.MatchString(value)
}
