package shell

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// started is a script that a command starts.
type started struct {
	text  string
	args  []string // $1 and so on
	words int      // words of the command up to the script

	options []string // of sbatch, which win over those in the text
}

// script follows a script that a command starts, with variables and arguments of its own. followed is false for text that
// has no command.
func (s *Script) script(inner started, assigns []*syntax.Assign) (followed bool, err error) {
	s.depth++
	vars, args, before := s.fork(), s.args, len(s.Commands)
	defer func() { s.depth, s.vars, s.args = s.depth-1, vars, args }()
	if err := s.assign(assigns); err != nil {
		return false, err
	}
	s.args = inner.args
	s.header(inner.text)
	s.steps += size(inner.options) >> 10
	s.sbatch(inner.options)
	if err := s.run("script", inner.text); errors.Is(err, errLong) {
		return false, err
	}
	if len(s.Commands) > before {
		return true, nil
	}
	s.Commands = append(s.Commands, strings.Fields(inner.text))
	return false, nil
}

// eval follows a text as a part of the script.
func (s *Script) eval(words []string) error {
	s.depth++
	defer func() { s.depth-- }()
	if err := s.run("eval", strings.Join(words, " ")); err != nil {
		if errors.Is(err, errLong) || s.out != nil {
			return err
		}
		s.Commands = append(s.Commands, words)
	}
	if s.out == nil {
		s.Commands = append(s.Commands, []string{"eval"})
	}
	return nil
}

// startedScript returns the script that a command starts: bash -c, sbatch --wrap, or bash and sbatch with a file that was
// written before or with its text.
func (s *Script) startedScript(args []string, document string) (started, bool) {
	for i := 0; i < len(args); i++ {
		if args[i] != "bash" && args[i] != "sh" && args[i] != "sbatch" && !strings.HasSuffix(args[i], "/bash") {
			continue
		}
		first := i == 0
		batch, from := args[i] == "sbatch", i+1
		options := func(words []string) []string {
			if batch {
				return words
			}
			return nil
		}
		for i++; i < len(args) && strings.HasPrefix(args[i], "-"); i++ {
			switch option := args[i]; {
			case !batch && !strings.HasPrefix(option, "--") && strings.HasSuffix(option, "c") && i+1 < len(args):
				return started{text: args[i+1], args: args[min(i+3, len(args)):], words: i + 2}, true
			case !batch && option == "-s" && first && document != "":
				return started{text: document, args: args[i+1:], words: len(args)}, true
			case batch && option == "--wrap" && i+1 < len(args):
				return started{text: args[i+1], words: i + 1, options: slices.Concat(args[from:i], args[i+2:])}, true
			case batch && strings.HasPrefix(option, "--wrap="):
				return started{text: option[len("--wrap="):], words: i, options: slices.Concat(args[from:i], args[i+1:])}, true
			case takesValue(option, batch):
				i++
			}
		}
		if i >= len(args) {
			return started{text: document, words: len(args), options: options(args[from:])}, first && document != ""
		}
		if text, ok := s.Written(args[i]); ok {
			return started{text: text, args: args[i+1:], words: i + 1, options: options(args[from:i])}, true
		}
		if args[i] == "/dev/stdin" && first && document != "" {
			return started{text: document, args: args[i+1:], words: len(args), options: options(args[from:i])}, true
		}
		i-- // the word may be a shell too
	}
	return started{}, false
}

// switches are the options of sbatch that have no value, as in sbatch(1).
var switches = regexp.MustCompile(`^(-[HhkOQsVvW]|--(contiguous|exclusive|get-user-env|help|hold|ignore-pbs|nice|no-kill|no-requeue|overcommit|oversubscribe|parsable|propagate|quiet|reboot|requeue|spread-job|test-only|usage|use-min-nodes|verbose|version|wait))$`)

// takesValue reports whether the word after an option of bash or sbatch is its value.
func takesValue(option string, batch bool) bool {
	if batch {
		return !strings.Contains(option, "=") && (len(option) == 2 || strings.HasPrefix(option, "--")) && !switches.MatchString(option)
	}
	return option == "--rcfile" || option == "--init-file" || !strings.HasPrefix(option, "--") && strings.HasSuffix(option, "o")
}
