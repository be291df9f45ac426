package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// A text is a comment, a string or a paragraph, or a declared name.
type text struct {
	file  string
	line  int // of its first word
	words string
	name  bool
}

// extract returns the texts of a file: of Go comments, declared names and, outside tests, strings
// of several words; of documents all but code; of other files comments.
func extract(file string, content []byte) ([]text, error) {
	switch path.Ext(file) {
	case ".go":
		return extractGo(file, content)
	case ".md":
		return []text{{file: file, line: 1, words: blankCode(string(content))}}, nil
	case ".py":
		return extractPython(file, string(content)), nil
	case ".sh", ".bash", ".yaml", ".yml":
		return extractHash(file, string(content)), nil
	}
	if path.Base(file) == "Makefile" {
		return extractHash(file, string(content)), nil
	}
	return nil, nil
}

func extractGo(file string, content []byte) ([]text, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []text
	line := func(p token.Pos) int { return set.Position(p).Line }
	for _, g := range tree.Comments {
		for _, c := range g.List[:1] {
			out = append(out, text{file: file, line: line(c.Pos()), words: commentWords(g)})
		}
	}
	declared := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id != nil {
				out = append(out, text{file: file, line: line(id.Pos()), words: id.Name, name: true})
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.FuncDecl:
			declared(n.Name)
		case *ast.TypeSpec:
			declared(n.Name)
		case *ast.ValueSpec:
			declared(n.Names...)
		case *ast.Field:
			declared(n.Names...)
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declared(id)
				}
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING || strings.HasSuffix(file, "_test.go") {
				return true
			}
			if s, err := strconv.Unquote(n.Value); err == nil && strings.Count(s, " ") > 1 {
				out = append(out, text{file: file, line: line(n.Pos()), words: s})
			}
		}
		return true
	})
	return out, nil
}

// commentWords is a group without its markers, line for line.
func commentWords(g *ast.CommentGroup) string {
	var lines []string
	for _, c := range g.List {
		if s, ok := strings.CutPrefix(c.Text, "//"); ok {
			lines = append(lines, s)
		} else {
			lines = append(lines, strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/"))
		}
	}
	return strings.Join(lines, "\n")
}

var (
	fence      = regexp.MustCompile("(?s)```.*?```")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	indented   = regexp.MustCompile(`(?m)^(?:    |\t).*$`)
	address    = regexp.MustCompile(`\]\([^)\n]*\)`)
	notNewline = regexp.MustCompile(`[^\n]`)
)

// blankCode keeps the lines of a document and blanks its code and addresses.
func blankCode(s string) string {
	for _, code := range []*regexp.Regexp{fence, inlineCode, indented, address} {
		s = code.ReplaceAllStringFunc(s, func(c string) string { return notNewline.ReplaceAllString(c, " ") })
	}
	return s
}

var pythonString = regexp.MustCompile(`(?s)""".*?"""|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`)

// extractPython returns comments, and strings of several words.
func extractPython(file, content string) []text {
	out := extractHash(file, pythonString.ReplaceAllStringFunc(content, func(s string) string {
		return strings.Repeat("\n", strings.Count(s, "\n"))
	}))
	for _, at := range pythonString.FindAllStringIndex(content, -1) {
		if s := content[at[0]:at[1]]; strings.Count(s, " ") > 1 {
			out = append(out, text{file: file, line: 1 + strings.Count(content[:at[0]], "\n"), words: s})
		}
	}
	return out
}

// extractHash returns comments that begin with #, neighbours as one.
func extractHash(file, content string) []text {
	var out []text
	last := -1
	for n, l := range strings.Split(content, "\n") {
		at := hash.FindStringIndex(l)
		if at == nil {
			continue
		}
		words := l[at[1]:]
		if k := len(out) - 1; last == n-1 && k >= 0 {
			out[k].words += "\n" + words
		} else {
			out = append(out, text{file: file, line: n + 1, words: words})
		}
		last = n
	}
	return out
}

var hash = regexp.MustCompile(`(?:^|\s)#+(?:\s|$)`)
