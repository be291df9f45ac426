package recipe

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// value writes a value as the syntax has it.
func (r *Recipe) value(v string) string {
	if quoted, err := syntax.Quote(v, syntax.LangBash); err == nil && r.format.syntax == isShell {
		return quoted
	}
	if _, err := strconv.ParseFloat(v, 64); err == nil || v == "true" || v == "false" || v == "null" || r.format.syntax != isJSON {
		return v
	}
	return strconv.Quote(v)
}

// place returns the entry of a key that has a place in the file. Options of MODEL_ARGS that are false are among them.
func (r *Recipe) place(key string) (keyfile.Entry, bool) {
	for _, list := range [][]keyfile.Entry{r.entries, r.off} {
		if i := slices.IndexFunc(list, func(e keyfile.Entry) bool { return e.Key == key && e.End > 0 }); i >= 0 {
			return list[i], true
		}
	}
	return keyfile.Entry{}, false
}

// editYAML applies a change to a document in block style.
func (r *Recipe) editYAML(c *change) (string, bool) {
	text := r.text
	e, has := r.place(c.key)
	switch {
	case c.remove:
		return r.removeYAML(c.key)
	case has && e.Start == e.End || has && text[e.Start-1] == ':': // nothing is written
		return text[:e.Start] + " " + c.value + text[e.End:], true
	case has:
		return text[:e.Start] + c.value + text[e.End:], true
	case r.has(c.key):
		return "", false
	}
	path := strings.Split(c.key, ".")
	if r.format == &megatronYAML {
		path = []string{"MODEL_ARGS", c.key}
	}
	return r.insertYAML(path[:len(path)-1], []string{path[len(path)-1] + ": " + c.value})
}

// insertYAML puts lines into the mapping at a path: before its first key, and after the last line of the file for a new
// section at the top.
func (r *Recipe) insertYAML(path, lines []string) (string, bool) {
	parent := strings.Join(append(slices.Clone(path), ""), ".")
	indented := func(indent string) string {
		return indent + strings.Join(lines, "\n"+indent) + "\n"
	}
	if len(path) == 0 && len(lines) > 1 {
		return keyfile.InsertLine(r.text, len(r.text), indented("")), true
	}
	for _, e := range append(slices.Clone(r.entries), r.off...) {
		full := e.Key
		if r.format == &megatronYAML && strings.HasPrefix(full, "--") {
			full = "MODEL_ARGS." + full
		}
		rest, inside := strings.CutPrefix(full, parent)
		if !inside || strings.ContainsAny(rest, ".[") || e.End == 0 {
			continue
		}
		start, _ := keyfile.LineOf(r.text, e.Start)
		if at := strings.LastIndex(r.text[:e.Start], "{") + 1; at > start && len(lines) == 1 { // {a: 1, b: 2}
			return r.text[:at] + lines[0] + ", " + r.text[at:], true
		}
		return keyfile.InsertLine(r.text, start, indented(keyfile.IndentAt(r.text, start))), true
	}
	if len(path) == 0 {
		return "", false
	}
	name := path[len(path)-1]
	if e, ok := r.place(strings.Join(path, ".")); ok && e.IsNull { // a section without keys
		start, end := keyfile.LineOf(r.text, e.Start)
		return keyfile.InsertLine(r.text[:e.Start]+r.text[e.End:], end-(e.End-e.Start), indented(keyfile.IndentAt(r.text, start)+"  ")), true
	}
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return r.insertYAML(path[:len(path)-1], append([]string{name + ":"}, lines...))
}

// removeYAML removes the lines of a key, and those of all keys below it.
func (r *Recipe) removeYAML(key string) (string, bool) {
	e, ok := r.place(key)
	at := e.Start
	if !ok { // a section: the line above its first key
		i := slices.IndexFunc(r.entries, func(e keyfile.Entry) bool { return strings.HasPrefix(e.Key, key+".") && e.End > 0 })
		if i < 0 {
			return r.text, !r.has(key)
		}
		header := "\n" + key[strings.LastIndex(key, ".")+1:] + ":"
		at = strings.LastIndex("\n"+r.text[:r.entries[i].Start], header)
		if at < 0 {
			return "", false
		}
	}
	start, end := keyfile.LineOf(r.text, at)
	indent := len(keyfile.IndentAt(r.text, start))
	for end < len(r.text) {
		_, next := keyfile.LineOf(r.text, end)
		line := r.text[end:next]
		deeper := len(keyfile.IndentAt(r.text, end)) > indent || strings.HasPrefix(strings.TrimLeft(line, " "), "- ") && len(keyfile.IndentAt(r.text, end)) == indent
		if strings.TrimSpace(line) == "" || !deeper {
			break
		}
		end = next
	}
	return r.text[:start] + r.text[end:], true
}

// editJSON applies a change to an object.
func (r *Recipe) editJSON(c *change) (string, bool) {
	e, has := r.place(c.key)
	switch {
	case has && c.remove:
		return removeMember(r.text, e.Start, e.End, c.key[strings.LastIndex(c.key, ".")+1:])
	case has:
		return r.text[:e.Start] + c.value + r.text[e.End:], true
	case c.remove:
		return r.text, !r.has(c.key)
	case r.has(c.key):
		return "", false
	}
	path := strings.Split(c.key, ".")
	return r.insertJSON(path[:len(path)-1], strconv.Quote(path[len(path)-1])+": "+c.value)
}

// insertJSON puts a member before the first one of the object at a path that has a plain value. Objects that are missing
// are made.
func (r *Recipe) insertJSON(path []string, member string) (string, bool) {
	parent := strings.Join(append(slices.Clone(path), ""), ".")
	for _, e := range r.entries {
		name, inside := strings.CutPrefix(e.Key, parent)
		if !inside || strings.ContainsAny(name, ".[") || e.End == 0 {
			continue
		}
		at := strings.LastIndex(r.text[:e.Start], strconv.Quote(name))
		if at < 0 {
			return "", false
		}
		start, _ := keyfile.LineOf(r.text, at)
		if strings.TrimSpace(r.text[start:at]) != "" { // other members are on the line
			return r.text[:at] + member + ", " + r.text[at:], true
		}
		return keyfile.InsertLine(r.text, start, keyfile.IndentAt(r.text, start)+member+",\n"), true
	}
	if len(path) == 0 {
		return "", false
	}
	return r.insertJSON(path[:len(path)-1], strconv.Quote(path[len(path)-1])+": {"+member+"}")
}

// removeMember removes a member of an object, with the comma after it, or else before it.
func removeMember(text string, start, end int, name string) (string, bool) {
	from := strings.LastIndex(text[:start], strconv.Quote(name))
	if from < 0 {
		return "", false
	}
	if rest := strings.TrimLeft(text[end:], " \t\r\n"); strings.HasPrefix(rest, ",") {
		end = len(text) - len(rest) + 1
	} else if before := strings.TrimRight(text[:from], " \t\r\n"); strings.HasSuffix(before, ",") {
		return text[:len(before)-1] + text[end:], true
	}
	first, _ := keyfile.LineOf(text, from)
	_, last := keyfile.LineOf(text, end)
	if strings.TrimSpace(text[first:from]+text[end:last]) == "" {
		return text[:first] + text[last:], true
	}
	return text[:from] + strings.TrimLeft(text[end:], " "), true
}
