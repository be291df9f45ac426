package shell

import (
	"errors"
	"fmt"
	"maps"
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

// Script is what a script does. It follows the variables, arrays, conditions, loops and functions of a shell script without
// running a program. A program prints nothing, unless it is one of those that only handle text (builtins.go), and a file
// that a condition looks for is there.
type Script struct {
	Commands [][]string        // every command with its arguments, in order
	Files    map[string]string // text that the script writes to files, by path.Clean of the name
	Unset    map[string]bool   // variables that were used in a command and have no value
	Unread   []string          // files that the script sources and does not write

	// Nodes, and devices and tasks of a node, of the last #SBATCH line or option of sbatch, "" = none.
	Nodes, GPUs, Tasks string

	unknown     map[string]bool // files that are written with text that is not known
	vars        map[string]expand.Variable
	given       map[string]string   // of the user; they win over the file
	missed      map[string]bool     // variables without a value that the present word uses
	optional    map[string]bool     // variables that the present word has a default of
	holes       map[string][]string // variables without a value that the value of a variable would have, by its name
	funcs       map[string]*syntax.Stmt
	args        []string                   // $1 and so on
	locals      map[string]expand.Variable // what variables of the present function had before; nil outside of one
	out         *strings.Builder           // of the present command substitution; nil outside of one
	input       *string                    // what the present command reads, nil = not known
	steps       int
	depth       int
	processes   int // substitutions of processes so far
	temporaries int // files of mktemp so far
}

var errLong = fmt.Errorf("more than %d statements", maxSteps)

// Run follows a script. The values of given replace what the script assigns.
func Run(name, text string, given map[string]string) (*Script, error) {
	s := &Script{vars: map[string]expand.Variable{}, given: given, Files: map[string]string{}, unknown: map[string]bool{}, Unset: map[string]bool{}, missed: map[string]bool{}, holes: map[string][]string{}, funcs: map[string]*syntax.Stmt{}}
	s.header(text)
	if err := s.run(name, text); errors.As(err, new(syntax.ParseError)) {
		return nil, err // which begins with the name
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// header takes the #SBATCH lines of a script.
func (s *Script) header(text string) {
	for line := range strings.Lines(text) {
		if options, ok := strings.CutPrefix(strings.TrimSpace(line), "#SBATCH"); ok {
			options, _, _ = strings.Cut(options, "#")
			s.sbatch(strings.Fields(options))
		}
	}
}

// sbatch sets the variables that Slurm derives from options of sbatch. The last one counts.
func (s *Script) sbatch(words []string) {
	for i, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok && i+1 < len(words) {
			value = words[i+1]
		}
		if strings.HasPrefix(word, "-N") && len(word) > 2 {
			name, value = "-N", strings.TrimPrefix(word[2:], "=")
		}
		switch name {
		case "-N", "--nodes":
			s.allocated(&s.Nodes, value, "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
		case "--ntasks-per-node":
			s.allocated(&s.Tasks, value, "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
		case "--gpus-per-node":
			s.allocated(&s.GPUs, value[strings.LastIndex(value, ":")+1:], "SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE")
		case "--gres":
			for resource := range strings.SplitSeq(value, ",") {
				if gpus, ok := strings.CutPrefix(resource, "gpu:"); ok {
					gpus, _, _ = strings.Cut(gpus, "(") // gpu:8(S:0-1)
					s.allocated(&s.GPUs, gpus[strings.LastIndex(gpus, ":")+1:], "SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE")
				}
			}
		}
	}
}

// allocated sets a number of sbatch, and the variables that have it, to the digits that a value begins with.
func (s *Script) allocated(number *string, value string, variables ...string) {
	digits := value[:len(value)-len(strings.TrimLeft(value, "0123456789"))]
	if digits == "" {
		return
	}
	*number = digits
	for _, name := range variables {
		s.set(name, digits)
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
	s.steps += len(text) >> 10 // it takes time
	text = layerVariables.ReplaceAllString(layerPattern.ReplaceAllString(text, "$1'$2'$3"), `$1"$2"$3`)
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), name)
	if err != nil {
		return err
	}
	if err := s.stmts(f.Stmts); !errors.Is(err, errBreak) && !errors.Is(err, errContinue) && !errors.Is(err, errReturn) {
		return err
	}
	return nil
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
	if c, ok := st.Cmd.(*syntax.CallExpr); ok {
		return s.call(c, st.Redirs)
	}
	s.emptied(st.Redirs, st.Cmd == nil)
	switch c := st.Cmd.(type) {
	case *syntax.DeclClause:
		return s.declare(c)
	case *syntax.BinaryCmd:
		return s.binary(c)
	case *syntax.IfClause:
		return s.ifClause(c)
	case *syntax.CaseClause:
		return s.caseClause(c)
	case *syntax.ForClause:
		return s.forClause(c)
	case *syntax.WhileClause:
		return s.whileClause(c)
	case *syntax.Block:
		return s.stmts(c.Stmts)
	case *syntax.Subshell:
		return s.subshell(c.Stmts)
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
			if word, ok := x.(*syntax.Word); ok { // let "A = B * 2"
				s.evaluated(s.literal(word))
			} else {
				s.number(x)
			}
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
	return s.pipe(c)
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

// call records a command. Functions, builtins and scripts that it starts are followed.
func (s *Script) call(c *syntax.CallExpr, redirs []*syntax.Redirect) error {
	if len(c.Args) == 0 {
		s.emptied(redirs, true)
		return s.assign(c.Assigns)
	}
	clear(s.missed)
	args := s.fields(c.Args...)
	missed := maps.Clone(s.missed)
	if len(args) == 0 {
		maps.Copy(s.Unset, missed)
		s.emptied(redirs, true)
		return nil
	}
	if size(args) > maxScript {
		return errBig
	}
	s.moved(args)
	document, diverted := s.redirect(args, redirs)
	if out := s.out; diverted && out != nil {
		s.out = &strings.Builder{}
		defer func() { s.out = out }()
	}
	if done, err := s.builtin(args, document, c.Assigns); done {
		return err
	}
	if s.out == nil {
		maps.Copy(s.Unset, missed)
	}
	if body, ok := s.funcs[args[0]]; ok {
		return s.function(body, args[1:])
	}
	if args[0] == "eval" && len(args) > 1 && s.depth < maxScripts {
		return s.eval(args[1:])
	}
	if s.out != nil {
		return nil // a program in a command substitution
	}
	if document == "" && s.input != nil {
		document = *s.input
	}
	if inner, ok := s.startedScript(args, document); ok && s.depth < maxScripts {
		followed, err := s.script(inner, c.Assigns)
		if err != nil {
			return err
		}
		if followed {
			args = args[:inner.words]
		}
	}
	s.Commands = append(s.Commands, args)
	return nil
}

// environment matches the names of files that set up a shell or its programs, and no arguments of a training.
var environment = regexp.MustCompile(`^/(?:etc|usr|opt)/|(?:^|/)\.?(?:activate|\w*(?:bashrc|profile|zshrc)|(?:conda|modules?|setvars|nvm)\.sh)$`)

// source follows a file that the script has written, in its own shell.
func (s *Script) source(name string) error {
	text, ok := s.Written(name)
	if !ok && !environment.MatchString(name) && !slices.Contains(s.Unread, name) && len(s.Unread) < maxScripts {
		s.Unread = append(s.Unread, name)
	}
	if !ok || s.depth >= maxScripts {
		return nil
	}
	s.depth++
	defer func() { s.depth-- }()
	if err := s.run(name, text); errors.Is(err, errLong) {
		return err
	}
	return nil
}

func size(words []string) (n int) {
	for _, w := range words {
		n += len(w)
	}
	return n
}
