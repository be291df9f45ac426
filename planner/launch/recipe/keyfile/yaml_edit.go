package keyfile

import (
	"slices"
	"strings"
)

// Document is a text with its entries, which an edit changes in their places.
type Document struct {
	Text    string
	Entries []Entry
}

// place returns the entry of a key that has a place in the text.
func (d *Document) place(key string) (Entry, bool) {
	i := slices.IndexFunc(d.Entries, func(e Entry) bool { return e.Key == key && e.End > 0 })
	if i < 0 {
		return Entry{}, false
	}
	return d.Entries[i], true
}

func (d *Document) has(key string) bool {
	return slices.ContainsFunc(d.Entries, func(e Entry) bool { return e.Key == key })
}

// EditYAML is EditTOML of a document in block style. The value of a list of words is its words with spaces between.
func (d *Document) EditYAML(key, value string, remove bool) (string, bool) {
	text := d.Text
	e, has := d.place(key)
	switch {
	case remove:
		return d.removeYAML(key)
	case has && len(e.List) > 0:
		return e.editList(text, strings.Fields(value))
	case has && e.Start == e.End || has && text[e.Start-1] == ':': // nothing is written
		return text[:e.Start] + " " + value + text[e.End:], true
	case has:
		return text[:e.Start] + value + text[e.End:], true
	case d.has(key):
		return "", false
	}
	path := strings.Split(key, ".")
	return d.insertYAML(path[:len(path)-1], []string{path[len(path)-1] + ": " + value})
}

// editList writes other words into a list of words, in block or flow style.
func (e *Entry) editList(text string, words []string) (string, bool) {
	start, _ := LineOf(text, e.Start)
	separator, block := text[start:e.Start], false
	if block = strings.TrimSpace(separator) == "-"; !block {
		separator = " "
	}
	written := strings.FieldsFunc(text[e.Start:e.End], func(c rune) bool { return strings.ContainsRune(" \t\r\n,-", c) })
	if !slices.Equal(written, e.List) || len(words) == 0 { // quotes, comments, or words with such signs
		return "", false
	}
	if block {
		return text[:e.Start] + strings.Join(words, "\n"+separator) + text[e.End:], true
	}
	return text[:e.Start] + strings.Join(words, ","+separator) + text[e.End:], true
}

// insertYAML puts lines into the mapping at a path: before its first key, and after the last line of the file for a new
// section at the top.
func (d *Document) insertYAML(path, lines []string) (string, bool) {
	parent := strings.Join(append(slices.Clone(path), ""), ".")
	indented := func(indent string) string {
		return indent + strings.Join(lines, "\n"+indent) + "\n"
	}
	if len(path) == 0 && len(lines) > 1 {
		return InsertLine(d.Text, len(d.Text), indented("")), true
	}
	for _, e := range d.Entries {
		rest, inside := strings.CutPrefix(e.Key, parent)
		if !inside || strings.ContainsAny(rest, ".[") || e.End == 0 || len(e.List) > 0 {
			continue
		}
		start, _ := LineOf(d.Text, e.Start)
		if at := strings.LastIndex(d.Text[:e.Start], "{") + 1; at > start && len(lines) == 1 { // {a: 1, b: 2}
			return d.Text[:at] + lines[0] + ", " + d.Text[at:], true
		}
		return InsertLine(d.Text, start, indented(IndentAt(d.Text, start))), true
	}
	if len(path) == 0 {
		return "", false
	}
	name := path[len(path)-1]
	if e, ok := d.place(strings.Join(path, ".")); ok && e.IsNull { // a section without keys
		start, end := LineOf(d.Text, e.Start)
		return InsertLine(d.Text[:e.Start]+d.Text[e.End:], end-(e.End-e.Start), indented(IndentAt(d.Text, start)+"  ")), true
	}
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return d.insertYAML(path[:len(path)-1], append([]string{name + ":"}, lines...))
}

// removeYAML removes the lines of a key, and those of all keys below it.
func (d *Document) removeYAML(key string) (string, bool) {
	e, ok := d.place(key)
	at := e.Start
	if !ok || len(e.List) > 0 { // a section or list: the line above its first key
		i := slices.IndexFunc(d.Entries, func(e Entry) bool { return (e.Key == key || strings.HasPrefix(e.Key, key+".")) && e.End > 0 })
		if i < 0 {
			return d.Text, !d.has(key)
		}
		header := "\n" + key[strings.LastIndex(key, ".")+1:] + ":"
		at = strings.LastIndex("\n"+d.Text[:d.Entries[i].Start], header)
		if at < 0 {
			return "", false
		}
	}
	start, end := LineOf(d.Text, at)
	indent := len(IndentAt(d.Text, start))
	for end < len(d.Text) {
		_, next := LineOf(d.Text, end)
		line := d.Text[end:next]
		deeper := len(IndentAt(d.Text, end)) > indent || strings.HasPrefix(strings.TrimLeft(line, " "), "- ") && len(IndentAt(d.Text, end)) == indent
		if strings.TrimSpace(line) == "" || !deeper {
			break
		}
		end = next
	}
	return d.Text[:start] + d.Text[end:], true
}
