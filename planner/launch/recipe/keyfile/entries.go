package keyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/pacer-ml/pacer/perfmodel/yamlfile"
)

// Entry is one key of a file with its value. Keys of nested mappings are joined by dots; an element of a list has
// the key of the list and [], unless all elements are plain values.
type Entry struct {
	Key    string
	Value  string
	List   []string // of plain values; nil for other values
	IsNull bool
	Bare   bool // an option of a command line without a value

	Follows    bool   // the value is computed from those of other keys
	Start, End int    // bytes of the value in the file, of a list from its first element to its last; end 0 = not known
	Written    string // the value in the syntax of the file, of settings only
}

// MaxEntries bounds the keys of a file, and so the growth of YAML by aliases.
const MaxEntries = 1 << 12

// maxDepth bounds the nesting of a file.
const maxDepth = 64

var errTooMany = fmt.Errorf("more than %d keys", MaxEntries)

// Flag reports whether the value says yes.
func (e *Entry) Flag() bool {
	switch strings.ToLower(e.Value) {
	case "true", "yes", "on", "1", "enabled":
		return true
	}
	return false
}

// Whole returns the value as a Whole number; ok is false for other values.
func (e *Entry) Whole() (n int, ok bool) {
	if hex, ok := strings.CutPrefix(strings.ToLower(e.Value), "0x"); ok {
		v, err := strconv.ParseUint(hex, 16, 40)
		return int(v), err == nil
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(e.Value), "_", ""), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > MaxNumber {
		return 0, false
	}
	return int(v), true
}

// MaxNumber bounds the numbers that are read.
const MaxNumber = 1 << 40

// Open reports whether the value leaves a setting to the framework or to another file.
func (e *Entry) Open() bool {
	if e.IsNull {
		return true
	}
	switch strings.ToLower(strings.TrimSpace(e.Value)) {
	case "", "auto", "none", "null", "~":
		return len(e.List) == 0
	}
	return false
}

// YAML reads a YAML document.
func YAML(name string, text []byte) ([]Entry, error) {
	if bytes.Count(text, []byte(": "))+bytes.Count(text, []byte(":\n")) > 4*MaxEntries { // the parser's time grows with their square
		return nil, fmt.Errorf("%s: %w", name, errTooMany)
	}
	f := yamlfile.File{Name: name, Package: "recipe", Kind: "launch"}
	top := f.Parse(text)
	if err := f.Err(); err != nil {
		return nil, err
	}
	w := yamlWalk{text: text, lines: lineStarts(text), anchors: map[string]ast.Node{}}
	if err := w.walk("", top.AST(), 0); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return w.out, nil
}

type yamlWalk struct {
	text    []byte
	lines   []int // offset of each line
	anchors map[string]ast.Node
	out     []Entry
	steps   int
}

func lineStarts(text []byte) []int {
	out := []int{0}
	for i, c := range text {
		if c == '\n' {
			out = append(out, i+1)
		}
	}
	return out
}

func (w *yamlWalk) walk(key string, n ast.Node, depth int) error {
	if w.steps++; w.steps > MaxEntries || depth > maxDepth {
		return errTooMany
	}
	switch v := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		for _, m := range v.Values {
			if err := w.walk(key, m, depth+1); err != nil {
				return err
			}
		}
		return nil
	case *ast.MappingValueNode:
		name := v.Key.GetToken().Value
		if _, merge := v.Key.(*ast.MergeKeyNode); merge {
			return w.walk(key, v.Value, depth+1)
		}
		if _, null := v.Value.(*ast.NullNode); null {
			w.out = append(w.out, w.null(Joined(key, name), v.Key.GetToken()))
			return nil
		}
		return w.walk(Joined(key, name), v.Value, depth+1)
	case *ast.AnchorNode:
		w.anchors[v.Name.GetToken().Value] = v.Value
		return w.walk(key, v.Value, depth+1)
	case *ast.AliasNode:
		return w.walk(key, w.anchors[v.Value.GetToken().Value], depth+1)
	case *ast.TagNode:
		return w.walk(key, v.Value, depth+1)
	case *ast.SequenceNode:
		return w.sequence(key, v, depth)
	}
	w.out = append(w.out, w.scalar(key, n))
	return nil
}

func (w *yamlWalk) sequence(key string, v *ast.SequenceNode, depth int) error {
	list := []string{}
	e := Entry{Key: key}
	for i, item := range v.Values {
		switch item.(type) {
		case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.AliasNode, *ast.AnchorNode:
			if err := w.walk(key+"[]", item, depth+1); err != nil {
				return err
			}
		default:
			if w.steps++; w.steps > MaxEntries {
				return errTooMany
			}
			at := w.scalar("", item)
			list = append(list, at.Value)
			if e.End = at.End; i == 0 {
				e.Start = at.Start
			}
		}
	}
	if len(list) > 0 || len(v.Values) == 0 {
		if e.Value, e.List = strings.Join(list, " "), list; e.Start == 0 || e.End <= e.Start {
			e.Start, e.End = 0, 0
		}
		w.out = append(w.out, e)
	}
	return nil
}

// scalar is a plain value with its place in the file.
func (w *yamlWalk) scalar(key string, n ast.Node) Entry {
	e := Entry{Key: key}
	t := n.GetToken()
	switch v := n.(type) {
	case *ast.NullNode:
		e.IsNull = true
		return e
	case *ast.LiteralNode:
		if v.Value != nil {
			e.Value = v.Value.Value
		}
		return e
	}
	if t == nil {
		return e
	}
	e.Value = t.Value
	e.Start, e.End = w.place(t)
	return e
}

var nullWord = regexp.MustCompile(`^[ \t]*(?:null|Null|NULL|~)?`)

// null is a value of nothing. Its place is all after the colon.
func (w *yamlWalk) null(key string, name *token.Token) Entry {
	e := Entry{Key: key, IsNull: true}
	if _, end := w.place(name); end > 0 && end < len(w.text) && w.text[end] == ':' {
		e.Start = end + 1
		if e.End = e.Start + len(nullWord.Find(w.text[e.Start:])); strings.TrimSpace(string(w.text[e.Start:e.End])) == "" {
			e.End = e.Start
		}
	}
	return e
}

// place returns the bytes of a token, 0 and 0 where they are not found at its position.
func (w *yamlWalk) place(t *token.Token) (start, end int) {
	if t.Position == nil || t.Position.Line < 1 || t.Position.Line > len(w.lines) {
		return 0, 0
	}
	at := w.lines[t.Position.Line-1]
	for range t.Position.Column - 1 {
		if at >= len(w.text) {
			return 0, 0
		}
		_, n := utf8.DecodeRune(w.text[at:])
		at += n
	}
	for _, quote := range []string{"", `"`, "'"} {
		if written := quote + t.Value + quote; t.Value != "" && bytes.HasPrefix(w.text[min(at, len(w.text)):], []byte(written)) {
			return at, at + len(written)
		}
	}
	return 0, 0
}

// Joined is the key of an element of a mapping.
func Joined(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// JSON reads a JSON object.
func JSON(name string, text []byte) ([]Entry, error) {
	text = withoutComments(text)
	w := jsonWalk{text: text, d: json.NewDecoder(bytes.NewReader(text))}
	w.d.UseNumber()
	err := w.value("", 0)
	if err == nil {
		if _, end := w.d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("there is text after the object")
		}
	}
	if err == nil && len(text) > 0 && bytes.TrimSpace(text)[0] != '{' {
		err = errors.New("it is not an object")
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		line := 1 + bytes.Count(text[:min(int(w.d.InputOffset()), len(text))], []byte("\n"))
		return nil, fmt.Errorf("%s:%d: malformed JSON: %w", name, line, err)
	}
	return w.out, nil
}

type jsonWalk struct {
	text []byte
	d    *json.Decoder
	out  []Entry
}

func (w *jsonWalk) value(key string, depth int) error {
	if len(w.out) > MaxEntries || depth > maxDepth {
		return errTooMany
	}
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Delim:
		if v == '{' {
			return w.object(key, depth)
		}
		return w.array(key, depth)
	case nil:
		w.out = append(w.out, Entry{Key: key, IsNull: true})
	default:
		e := Entry{Key: key, Value: fmt.Sprint(v), End: int(w.d.InputOffset())}
		written := e.Value
		if s, isText := v.(string); isText {
			written = strconv.Quote(s)
		}
		if e.Start = e.End - len(written); e.Start < 0 || string(w.text[e.Start:e.End]) != written {
			e.Start, e.End = 0, 0 // written with escapes
		}
		w.out = append(w.out, e)
	}
	return nil
}

func (w *jsonWalk) object(key string, depth int) error {
	names := map[json.Token]bool{}
	for w.d.More() {
		name, err := w.d.Token()
		if err != nil {
			return err
		}
		if names[name] {
			return fmt.Errorf("key %q stands twice", Joined(key, fmt.Sprint(name)))
		}
		names[name] = true
		if err := w.value(Joined(key, fmt.Sprint(name)), depth+1); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return err
}

func (w *jsonWalk) array(key string, depth int) error {
	from := len(w.out)
	for w.d.More() {
		if err := w.value(key+"[]", depth+1); err != nil {
			return err
		}
	}
	list := []string{}
	for _, e := range w.out[from:] {
		if e.Key != key+"[]" {
			list = nil
			break
		}
		list = append(list, e.Value)
	}
	if list != nil {
		w.out = append(w.out[:from], Entry{Key: key, Value: strings.Join(list, " "), List: list})
	}
	_, err := w.d.Token()
	return err
}

// TOML reads a TOML document.
func TOML(name string, text []byte) ([]Entry, error) {
	var top map[string]any
	if _, err := toml.Decode(string(text), &top); err != nil {
		return nil, fmt.Errorf("%s: malformed TOML: %w", name, err)
	}
	var out []Entry
	if err := tomlWalk(&out, "", top, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	at := layoutOf(string(text))
	for i := range out {
		if p, ok := at.values[out[i].Key]; ok {
			out[i].Start, out[i].End = p[0], p[1]
		}
	}
	return out, nil
}

func tomlWalk(out *[]Entry, key string, v any, depth int) error {
	if len(*out) > MaxEntries || depth > maxDepth {
		return errTooMany
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := tomlWalk(out, Joined(key, name), v[name], depth+1); err != nil {
				return err
			}
		}
	case []map[string]any:
		for _, m := range v {
			if err := tomlWalk(out, key+"[]", m, depth+1); err != nil {
				return err
			}
		}
	case []any:
		e := Entry{Key: key, List: []string{}}
		for _, item := range v {
			e.List = append(e.List, fmt.Sprint(item))
		}
		e.Value = strings.Join(e.List, " ")
		*out = append(*out, e)
	default:
		*out = append(*out, Entry{Key: key, Value: fmt.Sprint(v)})
	}
	return nil
}
