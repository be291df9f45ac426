package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxMessages is the largest number of errors that Err reports for one file.
const MaxMessages = 20

// File collects the errors of a file with their positions. It is not safe for concurrent use.
type File struct {
	Name    string // of the file, for messages
	Package string // name of the calling package: messages begin with it
	Kind    string // kind of file, such as "campaign", for messages
	errs    []located
}

// located is an error with its position.
type located struct {
	line, column int
	error
}

// Fail records an error at a token; at may be nil.
func (f *File) Fail(at *token.Token, format string, args ...any) {
	line, column := 1, 1
	if at != nil && at.Position != nil {
		line, column = max(at.Position.Line, 1), max(at.Position.Column, 1)
	}
	f.errs = append(f.errs, located{line, column,
		fmt.Errorf("%s: %s:%d:%d: %w", f.Package, f.Name, line, column, fmt.Errorf(format, args...))})
}

// Count returns the number of errors so far.
func (f *File) Count() int { return len(f.errs) }

// Err returns all errors joined, in file order, at most MaxMessages of them; nil if there is none.
func (f *File) Err() error {
	slices.SortStableFunc(f.errs, func(a, b located) int { return cmp.Or(a.line-b.line, a.column-b.column) })
	var errs []error
	for i, e := range f.errs {
		if i == MaxMessages {
			errs = append(errs, fmt.Errorf("%s: %s: and %d more", f.Package, f.Name, len(f.errs)-i))
			break
		}
		errs = append(errs, e.error)
	}
	return errors.Join(errs...)
}

// maxNesting limits the parser's recursion.
const maxNesting = 100

// Parse returns the top node of text, which must contain one document. After an error the Node's Given is
// false.
func (f *File) Parse(text []byte) (n Node) {
	defer func() {
		if p := recover(); p != nil { // a panic of the parser
			f.Fail(nil, "malformed YAML: %v", p)
			n = Node{}
		}
	}()
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		f.Fail(nil, "the file is not text in UTF-8")
		return Node{}
	}
	if nesting(text) > maxNesting {
		f.Fail(nil, "brackets or lists nested more than %d deep", maxNesting)
		return Node{}
	}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) && e.GetToken() != nil {
			f.Fail(e.GetToken(), "%s", e.GetMessage())
		} else {
			f.Fail(nil, "%s", err)
		}
		return Node{}
	}
	var body ast.Node
	for _, d := range parsed.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			Node{f, d.Body}.Fail("a second document, want one")
			return Node{}
		}
		body = d.Body
	}
	if body == nil {
		f.Fail(nil, "the file is empty")
	}
	return Node{f, body}
}

// nesting returns an upper bound of the depth of brackets in text, and of lists within lists on one line.
func nesting(text []byte) int {
	depth, most, dashes, leading := 0, 0, 0, true
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '-':
			if leading {
				dashes++
			}
		}
		if c == '\n' || c == '\r' {
			dashes, leading = 0, true
		} else if c != '-' && c != ' ' {
			leading = false
		}
		most = max(most, depth, dashes)
	}
	return most
}
