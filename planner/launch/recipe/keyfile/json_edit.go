package keyfile

import (
	"slices"
	"strconv"
	"strings"
)

// EditJSON is EditTOML of an object.
func (d *Document) EditJSON(key, value string, remove bool) (string, bool) {
	e, has := d.place(key)
	switch {
	case has && remove:
		return removeMember(d.Text, e.Start, e.End, key[strings.LastIndex(key, ".")+1:])
	case has:
		return d.Text[:e.Start] + value + d.Text[e.End:], true
	case remove:
		return d.Text, !d.has(key)
	case d.has(key):
		return "", false
	}
	path := strings.Split(key, ".")
	return d.insertJSON(path[:len(path)-1], strconv.Quote(path[len(path)-1])+": "+value)
}

// insertJSON puts a member before the first one of the object at a path that has a plain value. Objects that are missing
// are made.
func (d *Document) insertJSON(path []string, member string) (string, bool) {
	parent := strings.Join(append(slices.Clone(path), ""), ".")
	for _, e := range d.Entries {
		name, inside := strings.CutPrefix(e.Key, parent)
		if !inside || strings.ContainsAny(name, ".[") || e.End == 0 {
			continue
		}
		at := strings.LastIndex(d.Text[:e.Start], strconv.Quote(name))
		if at < 0 {
			return "", false
		}
		start, _ := LineOf(d.Text, at)
		if strings.TrimSpace(d.Text[start:at]) != "" { // other members are on the line
			return d.Text[:at] + member + ", " + d.Text[at:], true
		}
		return InsertLine(d.Text, start, IndentAt(d.Text, start)+member+",\n"), true
	}
	if len(path) == 0 {
		return "", false
	}
	return d.insertJSON(path[:len(path)-1], strconv.Quote(path[len(path)-1])+": {"+member+"}")
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
	first, _ := LineOf(text, from)
	_, last := LineOf(text, end)
	if strings.TrimSpace(text[first:from]+text[end:last]) == "" {
		return text[:first] + text[last:], true
	}
	return text[:from] + strings.TrimLeft(text[end:], " "), true
}
