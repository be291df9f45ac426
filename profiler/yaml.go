package profiler

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// maxMessages bounds the errors of one file that are reported.
const maxMessages = 20

// yamlFile collects what is wrong with a file, each with its place.
type yamlFile struct {
	name string
	errs []located
}

// located is an error with its place.
type located struct {
	line, column int
	error
}

// fail records what is wrong at a token.
func (f *yamlFile) fail(at *token.Token, format string, args ...any) {
	line, column := 1, 1
	if at != nil && at.Position != nil {
		line, column = max(at.Position.Line, 1), max(at.Position.Column, 1)
	}
	f.errs = append(f.errs, located{line, column,
		fmt.Errorf("profiler: %s:%d:%d: %w", f.name, line, column, fmt.Errorf(format, args...))})
}

// err returns everything that is wrong in the order of the file, one error per
// line.
func (f *yamlFile) err() error {
	slices.SortStableFunc(f.errs, func(a, b located) int { return cmp.Or(a.line-b.line, a.column-b.column) })
	var errs []error
	for i, e := range f.errs {
		if i == maxMessages {
			errs = append(errs, fmt.Errorf("profiler: %s: and %d more", f.name, len(f.errs)-i))
			break
		}
		errs = append(errs, e.error)
	}
	return errors.Join(errs...)
}

// maxNesting is deeper than any file of ours; the parser recurses.
const maxNesting = 100

// parse returns the top node of the only document in text.
func (f *yamlFile) parse(text []byte) (n yamlNode) {
	defer func() {
		if p := recover(); p != nil { // of the parser
			f.fail(nil, "malformed YAML: %v", p)
			n = yamlNode{}
		}
	}()
	if nesting(text) > maxNesting {
		f.fail(nil, "brackets or lists nested more than %d deep", maxNesting)
		return yamlNode{}
	}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) && e.GetToken() != nil {
			f.fail(e.GetToken(), "%s", e.GetMessage())
		} else {
			f.fail(nil, "%s", err)
		}
		return yamlNode{}
	}
	var body ast.Node
	for _, d := range parsed.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			yamlNode{f, d.Body}.fail("a second document, want one")
			return yamlNode{}
		}
		body = d.Body
	}
	if body == nil {
		f.fail(nil, "the file is empty")
	}
	return yamlNode{f, body}
}

// nesting bounds from above how deep brackets nest in text, or lists within
// lists on one line.
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

// yamlNode is a value of the file. Its readers record what is wrong and return
// zero values then.
type yamlNode struct {
	file *yamlFile
	node ast.Node
}

// token returns where n begins.
func (n yamlNode) token() *token.Token {
	switch v := n.node.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 && v.Values[0].Key != nil {
			return v.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		if v.Key != nil {
			return v.Key.GetToken()
		}
	}
	return n.node.GetToken()
}

func (n yamlNode) fail(format string, args ...any) { n.file.fail(n.token(), format, args...) }

// given reports whether there is a value at all; "key:" with nothing behind it
// is none.
func (n yamlNode) given() bool {
	if n.node == nil {
		return false
	}
	_, null := n.node.(*ast.NullNode)
	return !null
}

// what says in words what n is.
func (n yamlNode) what() string {
	switch v := n.node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return strconv.Quote(v.Value)
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return "an anchor or alias, which campaign files do not use"
	case *ast.TagNode:
		return "a tag, which campaign files do not use"
	}
	if t := n.node.GetToken(); t != nil {
		return t.Value
	}
	return n.node.String()
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    *token.Token // of the key
	value yamlNode
}

// entries returns the keys of mapping n, each of which must be one of known.
func (n yamlNode) entries(known ...string) []entry {
	var values []*ast.MappingValueNode
	switch v := n.node.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	default:
		n.fail("%s, want a mapping with keys of %s", n.what(), strings.Join(known, ", "))
		return nil
	}
	var out []entry
	for _, v := range values {
		if v == nil || v.Key == nil {
			continue
		}
		at := v.Key.GetToken()
		key, ok := v.Key.(*ast.StringNode)
		switch {
		case !ok:
			n.file.fail(at, "%s is not a key, want one of %s", yamlNode{n.file, v.Key}.what(), strings.Join(known, ", "))
		case !slices.Contains(known, key.Value):
			n.file.fail(at, "unknown key %q, nearest is %s", key.Value, named.Nearest(key.Value, known, 1)[0])
		case slices.ContainsFunc(out, func(e entry) bool { return e.key == key.Value }):
			n.file.fail(at, "%s is given twice", key.Value)
		default:
			out = append(out, entry{key.Value, at, yamlNode{n.file, v.Value}})
		}
	}
	return out
}

// list returns the elements of n; a single value is a list of one.
func (n yamlNode) list() []yamlNode {
	if !n.given() {
		return nil
	}
	s, ok := n.node.(*ast.SequenceNode)
	if !ok {
		return []yamlNode{n}
	}
	out := make([]yamlNode, 0, len(s.Values))
	for _, v := range s.Values {
		e := yamlNode{n.file, v}
		if !e.given() {
			n.file.fail(s.Start, "an element of the list is empty")
			continue
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		n.fail("an empty list: leave the key out for its default")
	}
	return out
}

// text returns n, which may not be empty, without its quotes; numbers are text
// where text is wanted.
func (n yamlNode) text() string {
	s, ok := "", false
	switch v := n.node.(type) {
	case *ast.StringNode:
		s, ok = v.Value, true
	case *ast.LiteralNode:
		if v.Value != nil {
			s, ok = v.Value.Value, true
		}
	case *ast.IntegerNode, *ast.FloatNode:
		if t := n.node.GetToken(); t != nil {
			s, ok = t.Value, true
		}
	}
	switch s = strings.TrimSpace(s); {
	case !ok:
		n.fail("%s, want text", n.what())
	case s == "":
		n.fail("empty text")
	}
	return s
}

// whole returns n as a whole number in lo..hi.
func (n yamlNode) whole(lo, hi int) int {
	if i, ok := n.node.(*ast.IntegerNode); ok {
		switch v := i.Value.(type) {
		case int64:
			if int64(lo) <= v && v <= int64(hi) {
				return int(v)
			}
		case uint64:
			if v <= math.MaxInt64 && int64(lo) <= int64(v) && int64(v) <= int64(hi) {
				return int(v)
			}
		}
		n.fail("%s is not in %d..%d", n.what(), lo, hi)
		return 0
	}
	n.fail("%s is not a whole number", n.what())
	return 0
}

// number returns n as a finite number above lo, or at it if included, and at
// most hi.
func (n yamlNode) number(lo float64, included bool, hi float64) float64 {
	var x float64
	switch v := n.node.(type) {
	case *ast.FloatNode:
		x = v.Value
	case *ast.IntegerNode:
		switch i := v.Value.(type) {
		case int64:
			x = float64(i)
		case uint64:
			x = float64(i)
		}
	default:
		n.fail("%s is not a number", n.what())
		return 0
	}
	if x > lo && x <= hi || included && x == lo {
		return x
	}
	if included {
		n.fail("%s is not in %g..%g", n.what(), lo, hi)
	} else {
		n.fail("%s is not above %g and at most %g", n.what(), lo, hi)
	}
	return 0
}

// flag returns n as true or false.
func (n yamlNode) flag() bool {
	if b, ok := n.node.(*ast.BoolNode); ok {
		return b.Value
	}
	n.fail("%s is not true or false", n.what())
	return false
}

// maxDuration is a year: longer ones are mistakes.
const maxDuration = 365 * 24 * time.Hour

// duration returns n as a positive time with its unit.
func (n yamlNode) duration() time.Duration {
	switch n.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		n.fail("%s has no unit, want a form like 90s, 8m or 1h30m", n.what())
		return 0
	}
	s := n.text()
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		n.fail("%q is not a duration, want a form like 90s, 8m or 1h30m", s)
		return 0
	}
	if d <= 0 || d > maxDuration {
		n.fail("%s is not above 0 and at most %s", s, maxDuration)
		return 0
	}
	return d
}

// word returns n as one of the words there are.
func word[T ~string](n yamlNode, words ...T) T {
	s := n.text()
	if s == "" || slices.Contains(words, T(s)) {
		return T(s)
	}
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	n.fail("%q is not one of %s; nearest is %s", s, strings.Join(names, ", "), named.Nearest(s, names, 1)[0])
	return ""
}

func (n yamlNode) isMapping() bool {
	switch n.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}
