package console

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// clearLine erases the current line of a terminal.
const clearLine = "\r\x1b[K"

// redraw writes text over the current line of the terminal w, cut to its width.
func redraw(w io.Writer, text string) {
	width := Width(w)
	if width == 0 {
		width = 80
	}
	fmt.Fprint(w, clearLine+Cut(Quote(text), width-1))
}

// hasControls reports whether quote may change p, or p ends inside a character.
func hasControls(p []byte) bool {
	for _, b := range p {
		if b < ' ' && b != '\n' && b != '\t' || b == 0x7f || b >= 0x80 {
			return true
		}
	}
	return false
}

// Quote writes control characters, and bytes that are not UTF-8, as \x1b. Line feeds and tabs
// stay.
func Quote(s string) string { return quote(s, false) }

// quote is Quote, or with json writes \u001b.
func quote(s string, json bool) string {
	format := `\x%02x`
	if json {
		format = `\u%04x`
	}
	var b strings.Builder
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, format, s[i])
		case r < ' ' && r != '\n' && r != '\t', r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, format, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unwrap returns the writer behind a stream.
func unwrap(w io.Writer) io.Writer {
	if s, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return s.Unwrap()
	}
	return w
}

// IsTerminal reports whether w is a terminal that can redraw a line.
func IsTerminal(w io.Writer) bool {
	f, ok := unwrap(w).(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Width returns the columns of a terminal, 0 for other writers.
func Width(w io.Writer) int {
	f, ok := unwrap(w).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return max(width, 60)
}

// Show replaces the text of the progress line of the console that w belongs to; nil ends it.
// Other writers have no such line.
func Show(w io.Writer, status func() string) {
	if s, ok := w.(*stream); ok {
		s.Show(status)
	}
}

// Wrap prints a sentence in lines of the terminal's width; other writers get one line.
func Wrap(w io.Writer, text string) {
	if width := Width(w); width > 0 {
		text = strings.Join(report.Wrap(text, width), "\n")
	}
	fmt.Fprintln(w, text)
}

// Cut shortens s to n characters.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// shellSafe matches words that a shell does not change.
var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// ShellLine writes words as a command line that a shell reads back as the same words.
func ShellLine(words ...string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; !shellSafe.MatchString(w) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
