package shell

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// builtin follows a command that changes variables, or handles text only; done is false for others. document is the text
// that the command is given as its input, assigns are the assignments before it.
func (s *Script) builtin(args []string, document string, assigns []*syntax.Assign) (done bool, err error) {
	switch args[0] {
	case "break":
		return true, errBreak
	case "continue":
		return true, errContinue
	case "return":
		if s.locals == nil {
			return true, nil // of a file that may be sourced
		}
		return true, errReturn
	case "shift":
		n := 1
		if len(args) > 1 {
			n, _ = strconv.Atoi(args[1])
		}
		if n = max(n, 0); n <= len(s.args) {
			s.args = s.args[n:]
		}
		return true, nil
	case "set":
		if i := slices.Index(args, "--"); i >= 0 {
			s.args = args[i+1:]
		}
		return true, nil
	case "source", ".":
		if len(args) > 1 {
			return true, s.source(args[1])
		}
	case "unset":
		for _, name := range args[1:] {
			delete(s.vars, name)
		}
		return true, nil
	case "read":
		separators := " \t\n"
		for _, a := range assigns {
			if a.Name != nil && a.Name.Value == "IFS" {
				separators = s.literal(a.Value)
			}
		}
		return true, s.read(args[1:], document, separators)
	case "mapfile", "readarray":
		return true, s.mapfile(args[1:], document)
	case "printf":
		if len(args) > 3 && args[1] == "-v" {
			text, err := formatted(args[3:])
			if err != nil {
				return true, nil
			}
			return true, s.Set(args[2], expand.Variable{Set: true, Kind: expand.String, Str: text})
		}
	}
	if s.out == nil {
		return false, nil
	}
	s.print(args, document)
	return false, nil
}

// read sets variables to the words of a line, or with -d ” to all of a document.
func (s *Script) read(args []string, document, separators string) error {
	if document == "" && s.input != nil {
		document = *s.input
	}
	if document == "" {
		return nil // what a person types
	}
	var names []string
	all := false
	for i := 0; i < len(args); i++ {
		switch {
		case !strings.HasPrefix(args[i], "-"):
			names = append(names, args[i])
		case strings.HasSuffix(args[i], "d"):
			i++
			all = i < len(args) && args[i] == ""
		case strings.HasSuffix(args[i], "a"):
			if i++; i < len(args) {
				return s.Set(args[i], expand.Variable{Set: true, Kind: expand.Indexed, List: strings.FieldsFunc(document, func(c rune) bool { return c == '\n' || strings.ContainsRune(separators, c) })})
			}
		}
	}
	if !all {
		document, _, _ = strings.Cut(document, "\n")
	}
	for i, name := range names {
		value := strings.Trim(document, " \t\n")
		if i+1 < len(names) {
			if n := strings.IndexAny(value, separators); n >= 0 {
				value, document = value[:n], strings.TrimLeft(value[n+1:], " \t\n")
			} else {
				document = ""
			}
		}
		if err := s.Set(name, expand.Variable{Set: true, Kind: expand.String, Str: value}); err != nil {
			return err
		}
	}
	return nil
}

// mapfile sets an array to the lines of a document.
func (s *Script) mapfile(args []string, document string) error {
	if len(args) == 0 || document == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(document, "\n"), "\n")
	return s.Set(args[len(args)-1], expand.Variable{Set: true, Kind: expand.Indexed, List: lines})
}

// print adds what a command of a command substitution prints. Programs that do more than handle text print nothing.
func (s *Script) print(args []string, document string) {
	if s.out.Len() > maxVariable {
		return
	}
	words := args[1:]
	switch args[0] {
	case "echo":
		s.out.WriteString(echoed(words))
	case "printf":
		if text, err := formatted(words); err == nil {
			s.out.WriteString(text)
		}
	case "cat":
		if len(words) == 0 || words[0] == "-" {
			s.out.WriteString(document)
			if document == "" && s.input != nil {
				s.out.WriteString(*s.input)
			}
		}
	case "mktemp":
		s.temporaries++
		fmt.Fprintf(s.out, "/tmp/tmp.%d\n", s.temporaries)
	case "basename":
		if len(words) > 0 && words[0] != "" {
			name := path.Base(words[0])
			if len(words) > 1 {
				name = strings.TrimSuffix(name, words[1])
			}
			s.out.WriteString(name + "\n")
		}
	case "dirname":
		if len(words) > 0 {
			s.out.WriteString(path.Dir(words[0]) + "\n")
		}
	case "expr":
		s.calculate(strings.Join(words, " "))
	case "bc":
		if text := document; text != "" {
			s.calculate(text)
		} else if s.input != nil {
			s.calculate(*s.input)
		}
	}
}

// escapes are those of echo -e that scripts write.
var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r")

// echoed is what echo prints.
func echoed(words []string) string {
	end, escaped := "\n", false
	for len(words) > 0 && (words[0] == "-n" || words[0] == "-e" || words[0] == "-ne" || words[0] == "-en") {
		if words[0] != "-e" {
			end = ""
		}
		escaped = escaped || words[0] != "-n"
		words = words[1:]
	}
	text := strings.Join(words, " ")
	if escaped {
		text = escapes.Replace(text)
	}
	return text + end
}

// calculate prints the value of an expression of whole numbers.
func (s *Script) calculate(text string) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, ".;=\n$") {
		return
	}
	if n, ok := s.evaluated(text); ok {
		s.out.WriteString(strconv.Itoa(n) + "\n")
	}
}

// wide matches formats that pad to a width that could be huge.
var wide = regexp.MustCompile(`[0-9]{4}|\*`)

// formatted is what printf prints for a format with arguments.
func formatted(words []string) (string, error) {
	if len(words) == 0 {
		return "", nil
	}
	if wide.MatchString(words[0]) {
		return "", errBig
	}
	var out strings.Builder
	for rest := words[1:]; ; { // the format serves again for further arguments
		text, used, err := expand.Format(&expand.Config{}, words[0], rest)
		if err != nil {
			return "", fmt.Errorf("printf: %w", err)
		}
		if out.WriteString(text); out.Len() > maxVariable {
			return "", errBig
		}
		if rest = rest[used:]; used == 0 || len(rest) == 0 {
			return out.String(), nil
		}
	}
}
