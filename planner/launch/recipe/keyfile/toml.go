package keyfile

import "strings"

// tomlLayout says where the parts of a TOML document are.
type tomlLayout struct {
	values map[string][2]int // bytes of a value, by key
	tables map[string]int    // first byte after the line of a table's header, by name
}

// layoutOf finds the parts of a document that is valid.
func layoutOf(text string) tomlLayout {
	s := tomlScan{text: text, tomlLayout: tomlLayout{map[string][2]int{}, map[string]int{}}}
	table := ""
	for s.skip(); s.at < len(s.text); s.skip() {
		list := strings.HasPrefix(s.text[s.at:], "[[")
		switch {
		case list:
			s.at += 2
			table = s.path(']') + "[]"
		case s.text[s.at] == '[':
			s.at++
			table = s.path(']')
		default:
			s.pair(table)
			_, s.at = LineOf(s.text, s.at)
			continue
		}
		if _, s.at = LineOf(s.text, s.at); !list {
			s.tables[table] = s.at
		}
	}
	return s.tomlLayout
}

// tomlScan walks over a TOML document.
type tomlScan struct {
	text string
	at   int
	tomlLayout
}

// skip goes to the next key, value or bracket.
func (s *tomlScan) skip() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n', ',':
		case '#':
			s.at += max(strings.IndexByte(s.text[s.at:], '\n'), 0)
			if s.text[s.at] == '#' { // the last line
				s.at = len(s.text)
				return
			}
		default:
			return
		}
	}
}

// path returns the dotted key before end, without quotes and blanks.
func (s *tomlScan) path(end byte) string {
	var out strings.Builder
	for ; s.at < len(s.text) && s.text[s.at] != end; s.at++ {
		switch c := s.text[s.at]; c {
		case '"', '\'':
			from := s.at + 1
			s.quoted()
			s.at--
			out.WriteString(s.text[from:max(s.at, from)])
		case ' ', '\t':
		default:
			out.WriteByte(c)
		}
	}
	s.at = min(s.at+1, len(s.text))
	return out.String()
}

// pair goes over KEY = VALUE.
func (s *tomlScan) pair(table string) {
	key := Joined(table, s.path('='))
	s.skip()
	s.value(key)
}

func (s *tomlScan) value(key string) {
	from := s.at
	if from == len(s.text) {
		return
	}
	switch s.text[s.at] {
	case '"', '\'':
		s.quoted()
	case '[':
		s.at++
		for s.skip(); s.at < len(s.text) && s.text[s.at] != ']'; s.skip() {
			s.value(key + "[]")
		}
		s.at = min(s.at+1, len(s.text))
	case '{':
		s.at++
		for s.skip(); s.at < len(s.text) && s.text[s.at] != '}'; s.skip() {
			s.pair(key)
		}
		s.at = min(s.at+1, len(s.text))
	default:
		for s.at++; s.at < len(s.text) && !strings.ContainsRune(" \t\r\n,]}#", rune(s.text[s.at])); s.at++ {
		}
	}
	s.values[key] = [2]int{from, s.at}
}

// quoted goes over a string.
func (s *tomlScan) quoted() {
	mark := s.text[s.at : s.at+1]
	if triple := strings.Repeat(mark, 3); strings.HasPrefix(s.text[s.at:], triple) {
		mark = triple
	}
	for s.at += len(mark); s.at < len(s.text) && !strings.HasPrefix(s.text[s.at:], mark); s.at++ {
		if mark[0] == '"' && s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at = min(s.at+len(mark), len(s.text))
	for len(mark) == 3 && s.at < len(s.text) && s.text[s.at] == mark[0] { // quotes before the last three
		s.at++
	}
}

// EditTOML sets a key of a document to a value in the syntax of TOML, or removes it. Comments stay. ok is false where a key is
// removed that shares its line.
func EditTOML(text, key, value string, remove bool) (edited string, ok bool) {
	at := layoutOf(text)
	place, has := at.values[key]
	switch {
	case has && remove:
		start, _ := LineOf(text, place[0])
		_, end := LineOf(text, place[1])
		after := strings.TrimSpace(text[place[1]:end])
		alone := !strings.ContainsAny(text[start:place[0]], "{,") && (after == "" || after[0] == '#')
		return text[:start] + text[end:], alone
	case has:
		return text[:place[0]] + value + text[place[1]:], true
	case remove:
		return text, true
	}
	i := strings.LastIndex(key, ".")
	if i < 0 {
		return "", false
	}
	table, line := key[:i], key[i+1:]+" = "+value+"\n"
	if start, known := at.tables[table]; known {
		return InsertLine(text, start, IndentAt(text, start)+line), true
	}
	if inline, known := at.values[table]; known { // {A = 1, B = 2}
		start := inline[0] + 1
		if line = strings.TrimSuffix(line, "\n"); strings.TrimSpace(text[start:inline[1]-1]) != "" {
			line += ", "
		}
		return text[:start] + line + text[start:], text[inline[0]] == '{'
	}
	sibling := -1 // the first key of the table, which has no header
	for other, place := range at.values {
		if rest, inside := strings.CutPrefix(other, table+"."); inside && !strings.Contains(rest, ".") && (sibling < 0 || place[0] < sibling) {
			sibling = place[0]
		}
	}
	if sibling >= 0 {
		start, _ := LineOf(text, sibling)
		name := strings.TrimRight(text[start:sibling], " \t=")
		last := strings.LastIndex(name, ".")
		return InsertLine(text, start, name[:last+1]+line), last >= 0 && !strings.ContainsAny(name, "{,")
	}
	return InsertLine(text, len(text), "\n["+table+"]\n"+line), true
}
