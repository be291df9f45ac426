package command

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Help is HelpWidth columns wide. The text of a flag begins in column helpText, below names
// that reach that column.
const (
	HelpWidth = 80
	helpText  = 30
)

// The flag library keeps how it writes help in variables of its package.
func init() {
	oneLine := cli.FlagStringer
	cli.FlagStringer = func(f cli.Flag) string { return flagHelp(oneLine(f)) }
	cli.HelpPrinter = func(w io.Writer, text string, of any) {
		cli.HelpPrinterCustom(w, text, of, map[string]any{"wrapAt": func() int { return HelpWidth }})
	}
}

// fill breaks the paragraphs of a description into lines that fit. Paragraphs with indented
// lines are examples and tables, and stay.
func fill(description string) string {
	const indent = 3 // by the library
	paragraphs := strings.Split(description, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = strings.Join(report.Wrap(strings.ReplaceAll(p, "\n", " "), HelpWidth-indent), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// flagHelp breaks the library's help of a flag, its names and its text with a tab between,
// into lines that fit. The library indents the first. The default of a switch, off, is left
// out.
func flagHelp(line string) string {
	const indent = "   "
	names, does, _ := strings.Cut(strings.TrimSuffix(line, " (default: false)"), "\t")
	start, rest := "\n"+strings.Repeat(" ", helpText), report.Wrap(does, HelpWidth-helpText)
	if gap := helpText - len(indent) - utf8.RuneCountInString(names); gap >= 2 {
		return names + strings.Repeat(" ", gap) + strings.Join(rest, start)
	}
	return names + start + strings.Join(rest, start)
}

// Entry is a name and its text in the description of a command.
func Entry(name, text string) string {
	return fmt.Sprintf("   %s\n     %s\n", name, strings.Join(report.Wrap(text, HelpWidth-8), "\n     "))
}
