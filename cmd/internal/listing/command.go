package listing

import (
	"fmt"
	"io"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/spec/named"
	"github.com/urfave/cli/v2"
)

// Command is pacer ls.
func Command() *cli.Command {
	cmd := &cli.Command{
		Name:  "ls",
		Usage: "list known names: models, accelerators, policies, stored measurements, ...",
		Description: `Names are found whatever their case and punctuation: llama3-8b, Llama-3-8B.
With words, entries that have each word in one of their names are listed:

   pacer ls models llama 70b`,
	}
	for _, l := range all() {
		sub := &cli.Command{
			Name: l.Name, Usage: l.Usage, ArgsUsage: "[WORD...]",
			Description: "With words, entries that have each word in one of their names.",
			Action:      func(c *cli.Context) error { return run(c, &l) },
		}
		if l.Name == "accelerators" {
			sub.Flags = []cli.Flag{&cli.BoolFlag{Name: "template", Usage: "print an example of a file for --accelerator FILE.yaml instead"}}
		}
		cmd.Subcommands = append(cmd.Subcommands, sub)
	}
	return cmd
}

func run(c *cli.Context, l *listing) error {
	words := c.Args().Slice()
	if c.Bool("template") {
		if len(words) > 0 {
			return fail.Usagef("ls %s: --template conflicts with %q: it prints no entries", l.Name, strings.Join(words, " "))
		}
		_, err := io.WriteString(c.App.Writer, query.ChipTemplate)
		return err
	}
	for _, w := range words {
		if named.Fold(w) == "" {
			return fail.Usagef("ls %s: %q has no letter or digit to find names by", l.Name, w)
		}
	}
	found, err := l.find(c.Context, datadir.Of(c), words)
	if err != nil {
		return err
	}
	if err := printListing(c, l, found); err != nil {
		return err
	}
	if len(found) == 0 && len(words) > 0 {
		return fail.NoAnswerf("ls %s: no name has %q (all: pacer ls %[1]s)", l.Name, strings.Join(words, " "))
	}
	return nil
}

func printListing(c *cli.Context, l *listing, entries []entry) error {
	objects, lines, short := []any{}, [][]string{l.Header}, false
	for _, e := range entries {
		objects = append(objects, e.Object)
		if e.Brief == nil || len(entries) == 1 || e.is(c.Args().Slice()) {
			lines = append(lines, e.Lines...)
			continue
		}
		lines, short = append(lines, e.Brief...), true
	}
	table, err := console.CSV(objects)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{
		JSON: map[string]any{l.Name: objects}, CSV: table,
		Table: func(w io.Writer) error {
			err := console.WriteTable(w, lines)
			if err == nil && short {
				_, err = fmt.Fprintf(w, "\npacer ls %s NAME prints one in full.\n", l.Name)
			}
			return err
		},
	})
}
