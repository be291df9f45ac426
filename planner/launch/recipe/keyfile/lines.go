package keyfile

import "strings"

// LineOf returns the bytes of the line at a place.
func LineOf(text string, at int) (start, end int) {
	start = strings.LastIndex(text[:at], "\n") + 1
	if n := strings.Index(text[at:], "\n"); n >= 0 {
		return start, at + n + 1
	}
	return start, len(text)
}

// InsertLine puts a line at the start of another one.
func InsertLine(text string, at int, line string) string {
	if at > 0 && text[at-1] != '\n' {
		line = "\n" + line
	}
	return text[:at] + line + text[at:]
}

// IndentAt returns the blanks at the start of a line.
func IndentAt(text string, start int) string {
	_, end := LineOf(text, start)
	line := text[start:end]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}
