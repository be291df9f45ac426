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

// redirect returns the document that a command reads, and whether a file gets what it prints. It keeps the text of that file:
// the document, or what echo and printf print. A program that reads another file writes text of its own, unless it copies.
func (s *Script) redirect(args []string, redirs []*syntax.Redirect) (document string, diverted bool) {
	file, copied, appended := "", true, false
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil && s.bounded(r.Hdoc) == nil {
				document, _ = guarded(func() (string, error) { return expand.Document(s.config(), r.Hdoc) })
				copied = true
			}
		case syntax.WordHdoc:
			document, copied = s.literal(r.Word)+"\n", true
		case syntax.RdrIn:
			document, _ = s.Written(s.literal(r.Word))
			copied = args[0] == "cat" || args[0] == "tee"
		case syntax.RdrOut, syntax.AppOut, syntax.ClbOut:
			if r.N == nil || r.N.Value == "1" {
				file, appended = s.literal(r.Word), r.Op == syntax.AppOut
			}
		}
	}
	text := document
	if file != "" && (args[0] == "echo" || args[0] == "printf") {
		text, copied = s.printed(args), true
	}
	if file != "" && text != "" {
		s.write(file, text, copied, appended)
	}
	s.tee(args, document)
	return document, file != ""
}

// printed returns what a command prints that only handles text.
func (s *Script) printed(args []string) string {
	out := s.out
	s.out = &strings.Builder{}
	s.print(args, "")
	text := s.out.String()
	s.out = out
	return text
}

// tee writes what the command of that name reads to the files that it names.
func (s *Script) tee(args []string, document string) {
	if args[0] == "sudo" {
		args = args[1:]
	}
	if len(args) == 0 || args[0] != "tee" {
		return
	}
	if document == "" && s.input != nil {
		document = *s.input
	}
	isOption := func(word string) bool { return strings.HasPrefix(word, "-") }
	appended := slices.ContainsFunc(args, func(word string) bool {
		return word == "--append" || isOption(word) && !strings.HasPrefix(word, "--") && strings.Contains(word, "a")
	})
	for _, name := range args[1:] {
		if !isOption(name) && document != "" {
			s.write(name, document, true, appended)
		}
	}
}

// write keeps the text of a file, or that it is not known.
func (s *Script) write(file, text string, known, appended bool) {
	name := path.Clean(file)
	if before := s.Files[name]; appended && before != "" {
		s.steps += (len(before) + len(text)) >> 10 // a copy costs time and memory
		text = before + text
	}
	if !known || len(text) > maxScript {
		delete(s.Files, name)
		return
	}
	s.Files[name] = text
}
