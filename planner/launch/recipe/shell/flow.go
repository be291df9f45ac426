package shell

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// What ends a loop or a function.
var (
	errBreak    = errors.New("break outside of a loop")
	errContinue = errors.New("continue outside of a loop")
	errReturn   = errors.New("return outside of a function")
)

// body runs one turn of a loop, and reports whether the loop goes on.
func (s *Script) body(list []*syntax.Stmt) (more bool, err error) {
	err = s.stmts(list)
	switch {
	case errors.Is(err, errBreak):
		return false, nil
	case errors.Is(err, errContinue):
		return true, nil
	}
	return err == nil && s.steps < maxSteps/2, err
}

// forClause runs the body for each word, or as long as an arithmetic condition holds.
func (s *Script) forClause(c *syntax.ForClause) error {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		items := s.args
		if loop.InPos.IsValid() {
			items = s.fields(loop.Items...)
		}
		for i, item := range items {
			if i == maxLoopItems {
				return nil
			}
			s.set(loop.Name.Value, item)
			if more, err := s.body(c.Do); !more {
				return err
			}
		}
	case *syntax.CStyleLoop:
		if loop.Init != nil {
			s.number(loop.Init)
		}
		for range maxLoopItems {
			if loop.Cond != nil {
				if n, ok := s.number(loop.Cond); !ok || n == 0 {
					return nil
				}
			}
			if more, err := s.body(c.Do); !more {
				return err
			}
			if loop.Post != nil {
				s.number(loop.Post)
			}
		}
	}
	return nil
}

// whileClause runs the body as long as a condition holds that is known. A loop without end runs once: it starts a job again
// that has failed. One that waits for a program does not run.
func (s *Script) whileClause(c *syntax.WhileClause) error {
	if len(c.Cond) == 0 {
		return nil
	}
	last := c.Cond[len(c.Cond)-1]
	turns := maxLoopItems
	if call, ok := last.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 1 {
		turns = 1 // true, :, false
	}
	for range turns {
		if yes, known := s.condition(last); !known || yes == c.Until {
			return nil
		}
		if more, err := s.body(c.Do); !more {
			return err
		}
	}
	return nil
}

// subshell runs statements. Their assignments end with them.
func (s *Script) subshell(list []*syntax.Stmt) error {
	vars, args := s.fork(), s.args
	defer func() { s.vars, s.args = vars, args }()
	return s.stmts(list)
}

// fork returns the variables, and goes on with a copy of them.
func (s *Script) fork() map[string]expand.Variable {
	s.steps += len(s.vars) / 64 // a copy costs time
	vars := s.vars
	s.vars = maps.Clone(vars)
	return vars
}

// substitution writes what statements print.
func (s *Script) substitution(w io.Writer, list []*syntax.Stmt) error {
	out, missed, input, optional := s.out, maps.Clone(s.missed), s.input, s.optional
	s.out, s.input = &strings.Builder{}, nil
	if s.depth++; s.depth <= maxScripts {
		_ = s.subshell(list) // what it has printed counts
	}
	s.depth--
	text := s.out.String()
	s.out, s.missed, s.input, s.optional = out, missed, input, optional
	_, err := io.WriteString(w, text)
	return err
}

// maxProcesses bounds the process substitutions of a script.
const maxProcesses = 64

// process returns the name of a file with what the statements of <( ) print. What a program writes to >( ) is not known.
func (s *Script) process(p *syntax.ProcSubst) (string, error) {
	if s.processes++; p.Op != syntax.CmdIn || s.processes > maxProcesses {
		return "/dev/null", nil
	}
	var text strings.Builder
	err := s.substitution(&text, p.Stmts)
	name := fmt.Sprintf("/dev/fd/%d", 64-s.processes)
	s.Files[name] = text.String()
	return name, err
}

// pipe gives what a command prints that only handles text, or one of a substitution, to the next one.
func (s *Script) pipe(c *syntax.BinaryCmd) error {
	out, input := s.out, s.input
	defer func() { s.out, s.input = out, input }()
	known := out != nil || isText(c.X)
	if known {
		s.out = &strings.Builder{}
	}
	if err := s.stmt(c.X); err != nil {
		return err
	}
	if s.input = nil; known {
		text := s.out.String()
		s.input = &text
	}
	s.out = out
	return s.stmt(c.Y)
}

// isText reports whether a statement is a command that prints text of its own or copies its input.
func isText(st *syntax.Stmt) bool {
	call, ok := st.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 0 && slices.Contains([]string{"cat", "echo", "printf"}, call.Args[0].Lit())
}

// function runs the body of a function with its arguments and variables.
func (s *Script) function(body *syntax.Stmt, args []string) error {
	outer, outerArgs := s.locals, s.args
	s.locals, s.args = map[string]expand.Variable{}, args
	err := s.stmt(body)
	for name, v := range s.locals {
		if s.vars[name] = v; !v.Set {
			delete(s.vars, name)
		}
	}
	s.locals, s.args = outer, outerArgs
	if errors.Is(err, errReturn) {
		return nil
	}
	return err
}
