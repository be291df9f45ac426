package main

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Help is helpWidth columns wide; what a flag does begins in column helpText,
// on a line of its own below names that reach there.
const (
	helpWidth = 80
	helpText  = 30
)

// The flag library keeps how it writes help in variables of its package.
func init() {
	oneLine := cli.FlagStringer
	cli.FlagStringer = func(f cli.Flag) string { return flagHelp(oneLine(f)) }
	cli.HelpPrinter = func(w io.Writer, text string, of any) {
		cli.HelpPrinterCustom(w, text, of, map[string]any{"wrapAt": func() int { return helpWidth }})
	}
}

// fill sets the paragraphs of a description anew, on lines that fit. Those that
// have indented lines are examples and tables, and stay as they are.
func fill(description string) string {
	const indent = 3 // by the library
	paragraphs := strings.Split(description, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = strings.Join(report.Wrap(strings.ReplaceAll(p, "\n", " "), helpWidth-indent), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// flagHelp sets what the library says of a flag, its names and what it does
// with a tab between, on lines that fit. The library indents the first. That a
// switch is off goes without saying.
func flagHelp(line string) string {
	const indent = "   "
	names, does, _ := strings.Cut(strings.TrimSuffix(line, " (default: false)"), "\t")
	start, rest := "\n"+strings.Repeat(" ", helpText), report.Wrap(does, helpWidth-helpText)
	if gap := helpText - len(indent) - utf8.RuneCountInString(names); gap >= 2 {
		return names + strings.Repeat(" ", gap) + strings.Join(rest, start)
	}
	return names + start + strings.Join(rest, start)
}
