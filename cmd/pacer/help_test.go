package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// Help fits a terminal of 80 columns, and what is set by hand is not set anew,
// which would join the lines of examples.
func TestHelpFits(t *testing.T) {
	app := newApp(nil, nil, nil)
	helpFits(t, []string{"pacer"}, app.Description)
	eachCommand(app.Commands, []string{"pacer"}, func(path []string, c *cli.Command) { helpFits(t, path, c.Description) })
}

// eachCommand calls do with every command below cmds and the words it is called
// by.
func eachCommand(cmds []*cli.Command, above []string, do func([]string, *cli.Command)) {
	for _, c := range cmds {
		path := append(above[:len(above):len(above)], c.Name)
		do(path, c)
		eachCommand(c.Subcommands, path, do)
	}
}

func helpFits(t *testing.T, path []string, description string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), append(path, "--help"), nil, &out, &errs); code != exitOK || !strings.Contains(out.String(), "NAME:\n   "+strings.Join(path, " ")) {
		t.Errorf("%s --help: exit code %d, %s%s", strings.Join(path, " "), code, errs.String(), out.String())
	}
	for line := range strings.Lines(description) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth-3 {
			t.Errorf("%s: a line of the description has %d columns of %d: %s", strings.Join(path, " "), n, helpWidth-3, line)
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth {
			t.Errorf("%s --help: a line has %d columns: %s", strings.Join(path, " "), n, line)
		}
	}
}

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
