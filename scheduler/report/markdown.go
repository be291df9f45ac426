package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// Markdown returns the table in Markdown. Cells are escaped.
func (t Table) Markdown() string {
	rows := t.cells()
	if len(rows[0]) == 0 {
		return ""
	}
	var b strings.Builder
	for i, row := range rows {
		for _, c := range row {
			fmt.Fprintf(&b, "| %s ", EscapeMarkdown(c))
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// EscapeMarkdown escapes text for a table cell: bars, stars and line breaks.
func EscapeMarkdown(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "\n", " ").Replace(s)
}

// ErrNoMarks means that a document lacks the lines between which Splice inserts.
var ErrNoMarks = errors.New("report: the document lacks the lines around the text")

// Splice replaces the part of a document between its lines <!-- name --> and
// <!-- /name -->. Each must occur once, in this order; else the error is ErrNoMarks.
func Splice(document, text []byte, name string) ([]byte, error) {
	begin, end := []byte("<!-- "+name+" -->\n"), []byte("<!-- /"+name+" -->\n")
	before, rest, _ := bytes.Cut(document, begin)
	_, after, ok := bytes.Cut(rest, end)
	if !ok || bytes.Count(document, begin) != 1 || bytes.Count(document, end) != 1 {
		return nil, fmt.Errorf("%w: want one line %s and after it one line %s", ErrNoMarks, bytes.TrimSpace(begin), bytes.TrimSpace(end))
	}
	// The empty lines keep Markdown from joining the first mark and the text to one block.
	return bytes.Join([][]byte{before, begin, []byte("\n"), bytes.TrimSpace(text), []byte("\n\n"), end, after}, nil), nil
}

// CanSplice returns the error that SpliceFile would return now, so that long work does not end in it.
func CanSplice(path, name string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := Splice(document, nil, name); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// SpliceFile is Splice on a file, replaced atomically.
func SpliceFile(path string, text []byte, name string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	document, err = Splice(document, text, name)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return atomicfile.WriteBytes(path, info.Mode().Perm(), document)
}
