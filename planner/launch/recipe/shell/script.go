package shell

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Bounds of a script. Together they bound the memory of an expansion.
const (
	maxScript    = 1 << 20
	maxVariable  = 1 << 15 // bytes of the value of a variable
	maxInWord    = 64      // expansions in one word
	maxSteps     = 1 << 14 // statements
	maxScripts   = 4       // scripts within scripts
	maxLoopItems = 256
)

// Script is what a script does: it follows the variables, arrays and conditions of a shell script without running a program. A command
// substitution is empty, a file that a condition looks for is there, and a loop that counts is skipped.
type Script struct {
	Commands [][]string        // every command with its arguments, in order
	Files    map[string]string // text that the script writes to files, by name
	Unset    map[string]bool   // variables that were used in a command and have no value
	Nodes    string            // of an #SBATCH line, "" = none

	vars   map[string]expand.Variable
	given  map[string]string   // of the user; they win over the file
	missed map[string]bool     // variables without a value that the present word uses
	holes  map[string][]string // variables without a value that the value of a variable would have, by its name
	funcs  map[string]*syntax.Stmt
	steps  int
	depth  int
}

var errLong = fmt.Errorf("more than %d statements", maxSteps)

// Run follows a script. The values of given replace what the script assigns.
func Run(name, text string, given map[string]string) (*Script, error) {
	s := &Script{vars: map[string]expand.Variable{}, given: given, Files: map[string]string{}, Unset: map[string]bool{}, missed: map[string]bool{}, holes: map[string][]string{}, funcs: map[string]*syntax.Stmt{}}
	s.header(text)
	if err := s.run(name, text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

var (
	sbatchGPUs  = regexp.MustCompile(`(?m)^\s*#SBATCH\s+(?:--gres=gpu(?::[\w.-]+)?:|--gpus-per-node=(?:[\w.-]+:)?)(\d+)`)
	sbatchTasks = regexp.MustCompile(`(?m)^\s*#SBATCH\s+--ntasks-per-node=(\d+)`)
)

var sbatchOption = regexp.MustCompile(`(?m)^\s*#SBATCH\s+(?:--nodes|-N)[= ]\s*(\d+)`)

// header sets the variables that Slurm derives from the #SBATCH lines.
func (s *Script) header(text string) {
	if m := sbatchOption.FindStringSubmatch(text); m != nil {
		s.Nodes = m[1]
		s.set("SLURM_NNODES", m[1])
		s.set("SLURM_JOB_NUM_NODES", m[1])
	}
	if m := sbatchGPUs.FindStringSubmatch(text); m != nil {
		s.set("SLURM_GPUS_PER_NODE", m[1])
		s.set("SLURM_GPUS_ON_NODE", m[1])
	}
	if m := sbatchTasks.FindStringSubmatch(text); m != nil {
		s.set("SLURM_NTASKS_PER_NODE", m[1])
		s.set("SLURM_TASKS_PER_NODE", m[1])
	}
}

func (s *Script) set(name, value string) {
	s.vars[name] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}
}

// layerPattern finds a word such as [0]*3+[1]*58, which in an array is not a place of it.
var layerPattern = regexp.MustCompile(`(?m)([ \t])(\(?\[[01]\][][*+0-9()]*)([ \t]|\\?$)`)

// layerVariables finds such a word with variables: [0]*$DENSE+[1]*$REST.
var layerVariables = regexp.MustCompile(`(?m)([ \t])(\[[01]\]\*[][*+0-9$A-Za-z_{}]*\$[][*+0-9$A-Za-z_{}]*)([ \t]|\\?$)`)

func (s *Script) run(name, text string) error {
	if len(text) > maxScript {
		return fmt.Errorf("larger than %d KiB", maxScript>>10)
	}
	text = layerVariables.ReplaceAllString(layerPattern.ReplaceAllString(text, "$1'$2'$3"), `$1"$2"$3`)
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), name)
	if err != nil {
		return err
	}
	return s.stmts(f.Stmts)
}

func (s *Script) stmts(list []*syntax.Stmt) error {
	for _, st := range list {
		if err := s.stmt(st); err != nil {
			return err
		}
	}
	return nil
}

func (s *Script) stmt(st *syntax.Stmt) error {
	if s.steps++; s.steps > maxSteps {
		return errLong
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		return s.call(c, st.Redirs)
	case *syntax.DeclClause:
		return s.assign(c.Args)
	case *syntax.BinaryCmd:
		return s.binary(c)
	case *syntax.IfClause:
		return s.ifClause(c)
	case *syntax.CaseClause:
		return s.caseClause(c)
	case *syntax.ForClause:
		return s.forClause(c)
	case *syntax.Block:
		return s.stmts(c.Stmts)
	case *syntax.Subshell:
		return s.stmts(c.Stmts)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return s.stmt(c.Stmt)
		}
	case *syntax.FuncDecl:
		s.funcs[c.Name.Value] = c.Body
	case *syntax.ArithmCmd:
		s.number(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			s.number(x)
		}
	}
	return nil
}

func (s *Script) binary(c *syntax.BinaryCmd) error {
	if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
		yes, known := s.condition(c.X)
		if !known {
			yes = true // a program that works
			if err := s.stmt(c.X); err != nil {
				return err
			}
		}
		if yes == (c.Op == syntax.AndStmt) {
			return s.stmt(c.Y)
		}
		return nil
	}
	if err := s.stmt(c.X); err != nil {
		return err
	}
	return s.stmt(c.Y)
}

func (s *Script) ifClause(c *syntax.IfClause) error {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 { // else
			return s.stmts(c.Then)
		}
		if yes, _ := s.condition(c.Cond[len(c.Cond)-1]); yes {
			return s.stmts(c.Then)
		}
	}
	return nil
}

func (s *Script) caseClause(c *syntax.CaseClause) error {
	value := s.literal(c.Word)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			if s.matches(value, p) {
				return s.stmts(item.Stmts)
			}
		}
	}
	return nil
}

// forClause runs the body for each word. Loops that count are skipped.
func (s *Script) forClause(c *syntax.ForClause) error {
	words, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		return nil
	}
	for i, item := range s.fields(words.Items...) {
		if i == maxLoopItems {
			return nil
		}
		s.set(words.Name.Value, item)
		if err := s.stmts(c.Do); err != nil {
			return err
		}
	}
	return nil
}

func (s *Script) assign(list []*syntax.Assign) error {
	for _, a := range list {
		if a.Name == nil {
			continue
		}
		name, old := a.Name.Value, s.vars[a.Name.Value]
		clear(s.missed)
		v := expand.Variable{Set: true, Exported: true, Kind: expand.String}
		switch {
		case a.Naked:
			continue
		case a.Array != nil:
			v.Kind = expand.Indexed
			if a.Append {
				v.List = slices.Clone(old.List)
			}
			for _, e := range a.Array.Elems {
				if e.Value != nil {
					v.List = append(v.List, s.fields(e.Value)...)
				}
			}
		case a.Value != nil:
			if v.Str = s.literal(a.Value); a.Append {
				v.Str = old.Str + v.Str
			}
		}
		if err := s.Set(name, v); err != nil {
			return err
		}
		s.holes[name] = s.without(name, a.Append)
	}
	return nil
}

// without returns the variables without a value that the value of a variable has just used, with those of before if it was
// appended to.
func (s *Script) without(name string, appended bool) (out []string) {
	if appended {
		out = s.holes[name]
	}
	for hole := range s.missed {
		if hole != name && len(out) < maxLoopItems && !slices.Contains(out, hole) {
			out = append(out, hole)
		}
	}
	return out
}

// call records a command. Scripts that it starts are followed.
func (s *Script) call(c *syntax.CallExpr, redirs []*syntax.Redirect) error {
	if len(c.Args) == 0 {
		return s.assign(c.Assigns)
	}
	clear(s.missed)
	args := s.fields(c.Args...)
	for name := range s.missed {
		s.Unset[name] = true
	}
	if len(args) == 0 {
		return nil
	}
	if size(args) > maxScript {
		return errBig
	}
	document := s.heredoc(redirs)
	if body, ok := s.funcs[args[0]]; ok {
		return s.stmt(body)
	}
	if inner, ok := startedScript(args, document); ok && s.depth < maxScripts {
		s.depth++
		defer func() { s.depth-- }()
		before := len(s.Commands)
		err := s.run("script", inner)
		if errors.Is(err, errLong) {
			return err
		}
		if len(s.Commands) == before { // not shell, or nothing in it
			s.Commands = append(s.Commands, strings.Fields(inner))
		}
		args = args[:slices.Index(args, inner)+1]
	}
	s.Commands = append(s.Commands, args)
	return nil
}

func size(words []string) (n int) {
	for _, w := range words {
		n += len(w)
	}
	return n
}

// startedScript returns the script that a command starts: eval, bash -c, or sbatch with its text.
func startedScript(args []string, document string) (string, bool) {
	switch {
	case args[0] == "eval" && len(args) > 1:
		return strings.Join(args[1:], " "), true
	case (args[0] == "sbatch" || args[0] == "bash" || args[0] == "sh") && document != "":
		return document, true
	}
	for i, a := range args {
		if a != "bash" && a != "sh" && !strings.HasSuffix(a, "/bash") {
			continue
		}
		for j := i + 1; j+1 < len(args) && strings.HasPrefix(args[j], "-"); j++ {
			if strings.HasSuffix(args[j], "c") {
				return args[j+1], true
			}
		}
	}
	return "", false
}

// heredoc returns the document of a command, and keeps it where the command writes it to a file.
func (s *Script) heredoc(redirs []*syntax.Redirect) string {
	document, file := "", ""
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil && bounded(r.Hdoc) == nil {
				document, _ = guarded(func() (string, error) { return expand.Document(s.config(), r.Hdoc) })
			}
		case syntax.RdrOut, syntax.AppOut, syntax.ClbOut:
			file = s.literal(r.Word)
		}
	}
	if document != "" && file != "" {
		s.Files[file] = document
	}
	return document
}
