package yamlfile

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Node is a value in the file. A method that reads a type records an error in the File and returns a zero value
// if the node has another type.
type Node struct {
	file *File
	node ast.Node
}

// AST returns the node of the parser; nil if n is not Given.
func (n Node) AST() ast.Node { return n.node }

// Token returns the token at which n begins.
func (n Node) Token() *token.Token {
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

// Fail records an error at n.
func (n Node) Fail(format string, args ...any) { n.file.Fail(n.Token(), format, args...) }

// Given reports whether n has a value; "key:" without a value has none.
func (n Node) Given() bool {
	if n.node == nil {
		return false
	}
	_, null := n.node.(*ast.NullNode)
	return !null
}

// What describes n for error messages.
func (n Node) What() string {
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
		return "an anchor or alias, which " + n.file.Kind + " files do not use"
	case *ast.TagNode:
		return "a tag, which " + n.file.Kind + " files do not use"
	}
	if t := n.node.GetToken(); t != nil {
		return t.Value
	}
	return n.node.String()
}

// Entry is one key of a mapping with its value.
type Entry struct {
	Key   string
	At    *token.Token // of the key
	Value Node
}

// Entries returns the entries of mapping n. Keys that are not in known, and repeated keys, are errors.
func (n Node) Entries(known ...string) []Entry {
	return n.entries(known, func(key string) bool { return slices.Contains(known, key) })
}

// AnyEntries returns the entries of a mapping n with keys of the user's choice. Repeated keys are errors.
func (n Node) AnyEntries() []Entry {
	return n.entries([]string{"your choice"}, func(string) bool { return true })
}

func (n Node) entries(known []string, isKnown func(string) bool) []Entry {
	var values []*ast.MappingValueNode
	switch v := n.node.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{v}
	default:
		n.Fail("%s, want a mapping with keys of %s", n.What(), strings.Join(known, ", "))
		return nil
	}
	var out []Entry
	for _, v := range values {
		if v == nil || v.Key == nil {
			continue
		}
		at := v.Key.GetToken()
		key, ok := v.Key.(*ast.StringNode)
		switch {
		case !ok:
			n.file.Fail(at, "%s is not a key, want one of %s", Node{n.file, v.Key}.What(), strings.Join(known, ", "))
		case !isKnown(key.Value):
			n.file.Fail(at, "unknown key %q, nearest is %s", key.Value, named.Nearest(key.Value, known, 1)[0])
		case slices.ContainsFunc(out, func(e Entry) bool { return e.Key == key.Value }):
			n.file.Fail(at, "%s is given twice", key.Value)
		default:
			out = append(out, Entry{key.Value, at, Node{n.file, v.Value}})
		}
	}
	return out
}

// Key returns the value of a key of mapping n. Without that key the Node's Given is false.
func (n Node) Key(key string) Node {
	values := []*ast.MappingValueNode{}
	switch v := n.node.(type) {
	case *ast.MappingNode:
		values = v.Values
	case *ast.MappingValueNode:
		values = append(values, v)
	}
	for _, v := range values {
		if v == nil {
			continue
		}
		if k, ok := v.Key.(*ast.StringNode); ok && k.Value == key {
			return Node{n.file, v.Value}
		}
	}
	return Node{file: n.file}
}

// IsList reports whether n has elements.
func (n Node) IsList() bool {
	_, ok := n.node.(*ast.SequenceNode)
	return ok
}

// List returns the elements of n; a single value is a list of one.
func (n Node) List() []Node {
	if !n.Given() {
		return nil
	}
	s, ok := n.node.(*ast.SequenceNode)
	if !ok {
		return []Node{n}
	}
	out := make([]Node, 0, len(s.Values))
	for _, v := range s.Values {
		e := Node{n.file, v}
		if !e.Given() {
			n.file.Fail(s.Start, "an element of the list is empty")
			continue
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		n.Fail("an empty list: leave the key out for its default")
	}
	return out
}

// Text returns the text of n without quotes, or a number as written. Empty text is an error.
func (n Node) Text() string {
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
		n.Fail("%s, want text", n.What())
	case s == "":
		n.Fail("empty text")
	}
	return s
}

// Scalar returns text, a number, true or false as written.
func (n Node) Scalar() string {
	if b, ok := n.node.(*ast.BoolNode); ok {
		return strconv.FormatBool(b.Value)
	}
	return n.Text()
}

// Whole returns n, which must be a whole number from lo to hi.
func (n Node) Whole(lo, hi int) int {
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
		n.Fail("%s is not in %d..%d", n.What(), lo, hi)
		return 0
	}
	n.Fail("%s is not a whole number", n.What())
	return 0
}

// Number returns n, which must be a number above lo, or equal to lo if included is true, and at most hi.
func (n Node) Number(lo float64, included bool, hi float64) float64 {
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
		n.Fail("%s is not a number", n.What())
		return 0
	}
	if x > lo && x <= hi || included && x == lo {
		return x
	}
	if included {
		n.Fail("%s is not in %g..%g", n.What(), lo, hi)
	} else {
		n.Fail("%s is not above %g and at most %g", n.What(), lo, hi)
	}
	return 0
}

// Flag returns n, which must be true or false.
func (n Node) Flag() bool {
	if b, ok := n.node.(*ast.BoolNode); ok {
		return b.Value
	}
	n.Fail("%s is not true or false", n.What())
	return false
}

// maxDuration is one year; longer durations are taken for mistakes.
const maxDuration = 365 * 24 * time.Hour

// Duration returns n, which must be a positive duration with a unit, such as 90s.
func (n Node) Duration() time.Duration {
	switch n.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		n.Fail("%s has no unit, want a form like 90s, 8m or 1h30m", n.What())
		return 0
	}
	s := n.Text()
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		n.Fail("%q is not a duration, want a form like 90s, 8m or 1h30m", s)
		return 0
	}
	if d <= 0 || d > maxDuration {
		n.Fail("%s is not above 0 and at most %s", s, maxDuration)
		return 0
	}
	return d
}

// Word returns n, which must be one of words.
func Word[T ~string](n Node, words ...T) T {
	s := n.Text()
	if s == "" || slices.Contains(words, T(s)) {
		return T(s)
	}
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	n.Fail("%q is not one of %s; nearest is %s", s, strings.Join(names, ", "), named.Nearest(s, names, 1)[0])
	return ""
}

// IsMapping reports whether n has keys.
func (n Node) IsMapping() bool {
	switch n.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}
