package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Written returns the text of a file that the script has written.
func (s *Script) Written(name string) (string, bool) {
	text, ok := s.Files[path.Clean(name)]
	return text, ok
}

// output returns the file that gets what a command prints, "" = none.
func (s *Script) output(redirs []*syntax.Redirect) (file string, appended bool) {
	for _, r := range redirs {
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.ClbOut, syntax.RdrAll, syntax.AppAll:
			if r.N == nil || r.N.Value == "1" {
				file, appended = s.literal(r.Word), r.Op == syntax.AppOut || r.Op == syntax.AppAll
			}
		}
	}
	return file, appended
}

// emptied keeps that a statement other than a command writes a file. Without one (>f) the file is empty.
func (s *Script) emptied(redirs []*syntax.Redirect, known bool) {
	if file, appended := s.output(redirs); file != "" {
		s.write(file, "", known, appended)
	}
}

// redirect returns the document that a command reads, and whether a file gets what it prints. It keeps the text of that file:
// the document, or what echo and printf print. A program that reads another file writes text of its own, unless it copies.
func (s *Script) redirect(args []string, redirs []*syntax.Redirect) (document string, diverted bool) {
	isCopy := args[0] == "cat" && (len(args) == 1 || args[1] == "-") || args[0] == "tee"
	text, known := "", false // of what the command reads
	if s.input != nil {
		text, known = *s.input, isCopy && *s.input != "" // a program in a substitution seems to print nothing
	}
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			known = r.Hdoc == nil
			if r.Hdoc != nil && s.bounded(r.Hdoc) == nil {
				var err error
				document, err = guarded(func() (string, error) { return expand.Document(s.config(), r.Hdoc) })
				known = err == nil
			}
		case syntax.WordHdoc:
			document, known = s.literal(r.Word)+"\n", true
		case syntax.RdrIn:
			document, known = s.Written(s.literal(r.Word))
			known = known && isCopy
		default:
			continue
		}
		text = document
	}
	s.tee(args, text, known)
	file, appended := s.output(redirs)
	if file == "" {
		return document, false
	}
	switch args[0] {
	case ":", "true":
		text, known = "", true
	case "echo", "printf":
		text, known = s.printed(args)
	case "cat":
		known = known && isCopy
	}
	s.write(file, text, known, appended)
	return document, true
}

// printed returns what echo or printf prints.
func (s *Script) printed(args []string) (text string, known bool) {
	if args[0] == "echo" {
		return echoed(args[1:]), true
	}
	if len(args) > 1 && args[1] == "-v" {
		return "", true // a variable gets it
	}
	text, err := formatted(args[1:])
	return text, err == nil
}

// tee writes what the command of that name reads to the files that it names.
func (s *Script) tee(args []string, text string, known bool) {
	if args[0] == "sudo" {
		args = args[1:]
	}
	if len(args) == 0 || args[0] != "tee" {
		return
	}
	appended := slices.ContainsFunc(args, func(word string) bool {
		return word == "--append" || isOption(word) && !strings.HasPrefix(word, "--") && strings.Contains(word, "a")
	})
	for _, name := range args[1:] {
		if !isOption(name) {
			s.write(name, text, known, appended)
		}
	}
}

// moved follows rm, cp and mv. What a copy has is not known.
func (s *Script) moved(args []string) {
	if args[0] == "sudo" {
		args = args[1:]
	}
	if len(args) == 0 || args[0] != "rm" && args[0] != "cp" && args[0] != "mv" {
		return
	}
	names := slices.DeleteFunc(slices.Clone(args[1:]), isOption)
	if args[0] != "rm" && len(names) > 1 {
		last := names[len(names)-1]
		s.write(last, "", false, false)
		names = names[:len(names)-1]
		for _, name := range names { // the last may be a directory
			s.write(path.Join(last, path.Base(name)), "", false, false)
		}
	}
	if args[0] == "cp" {
		return
	}
	for _, name := range names {
		delete(s.Files, path.Clean(name))
		delete(s.unknown, path.Clean(name))
	}
}

func isOption(word string) bool { return strings.HasPrefix(word, "-") }

// write keeps the text of a file, or that it is not known. Text that is added to a file that is not known is not known either.
func (s *Script) write(file, text string, known, appended bool) {
	name := path.Clean(file)
	if appended {
		text = s.Files[name] + text
		known = known && !s.unknown[name]
	}
	s.steps += len(text) >> 10 // it costs time and memory
	if !known || len(text) > maxScript {
		delete(s.Files, name)
		s.unknown[name] = true
		return
	}
	s.Files[name] = text
	delete(s.unknown, name)
}
