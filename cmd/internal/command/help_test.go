package command

import (
	"strings"
	"testing"
)

// The text of a flag is indented, and wrapped at HelpWidth.
func TestFlagHelp(t *testing.T) {
	long := strings.Repeat("word ", 12) + "end"
	for line, want := range map[string]string{
		"--top N\tshow N": "--top N                    show N",
		"--top N\t" + long: "--top N                    " + strings.TrimSpace(strings.Repeat("word ", 10)) +
			"\n" + strings.Repeat(" ", helpText) + "word word end",
		"--names-that-reach-the-text\tx":   "--names-that-reach-the-text\n" + strings.Repeat(" ", helpText) + "x",
		"--switch\tdo it (default: false)": "--switch                   do it",
		"--one-less-is-just-enough\tx":     "--one-less-is-just-enough  x",
	} {
		if got := flagHelp(line); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", line, got, want)
		}
	}
}
