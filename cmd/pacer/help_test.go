package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/plan"
	"github.com/urfave/cli/v2"
)

// Help fits a terminal of 80 columns, and what is set by hand is not set anew,
// which would join the lines of examples.
func TestHelpFits(t *testing.T) {
	app := command.Prepare(newApp(), plan.Groups)
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
	if code := run(t.Context(), append(path, "--help"), nil, &out, &errs); code != fail.OK || !strings.Contains(out.String(), "NAME:\n   "+strings.Join(path, " ")) {
		t.Errorf("%s --help: exit code %d, %s%s", strings.Join(path, " "), code, errs.String(), out.String())
	}
	for line := range strings.Lines(description) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > command.HelpWidth-3 {
			t.Errorf("%s: a line of the description has %d columns of %d: %s", strings.Join(path, " "), n, command.HelpWidth-3, line)
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > command.HelpWidth {
			t.Errorf("%s --help: a line has %d columns: %s", strings.Join(path, " "), n, line)
		}
	}
}
