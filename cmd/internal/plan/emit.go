package plan

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch"
)

// emitFlags are of the verbs that can write what starts a plan.
func emitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "emit", Usage: "print what starts the best plan under `FRAMEWORK`, see pacer ls frameworks, and predict for its training stack unless --framework names another", DefaultText: "none", Category: command.CategoryOutput},
		&cli.StringFlag{Name: "emit-out", Usage: "write the launch file of --emit to `FILE`, and print the plans as well", Category: command.CategoryOutput},
	}
}

// emitted writes what starts the first of choices, best first, where --emit asks
// for it. done is true where that was the output. all, which may be nil, finds
// every choice, to name the one that can be started instead.
func emitted(c *cli.Context, choices []planner.Choice, all func() ([]planner.Choice, error)) (done bool, err error) {
	f, err := emitFlag(c)
	if err != nil || f == nil || len(choices) == 0 {
		return false, err
	}
	out, err := console.Create(c.String("emit-out"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Discard()) }()
	details, err := detailsOf(c, choices[0].Config.Model)
	if err != nil {
		return false, err
	}
	s, err := f.EmitWith(choices[0].Config, launch.Options{Details: details, File: c.String("emit-out")})
	if errors.Is(err, launch.ErrCannotExpress) {
		return false, fail.NoAnswerf("%w%s", err, instead(f, choices[0], all))
	}
	if err != nil {
		return false, err
	}
	for _, n := range s.Notes {
		fmt.Fprintln(c.App.ErrWriter, "note:", n)
	}
	if !choices[0].Fits {
		fmt.Fprintf(c.App.ErrWriter, "warning: the plan %s: %s\n", query.Misfit(string(choices[0].Verdict)), choices[0].Why)
	}
	if out == nil {
		_, err = io.WriteString(c.App.Writer, s.Text)
		return true, err
	}
	if strings.HasPrefix(s.Text, "#!") {
		out.Executable()
	}
	return false, out.Write(func(w io.Writer) error {
		_, err := io.WriteString(w, s.Text)
		return err
	})
}

// detailsOf returns the details of m besides its shape, of the config.json of --model or of the
// catalog.
func detailsOf(c *cli.Context, m spec.Model) (spec.Details, error) {
	if path, isFile := query.ConfigPath(c.String("model")); isFile {
		return query.ReadDetails(path)
	}
	return catalog.Details(m), nil
}

// emitFlag returns the framework of --emit, nil if there is none.
func emitFlag(c *cli.Context) (*launch.Framework, error) {
	switch {
	case !c.IsSet("emit") && c.IsSet("emit-out"):
		return nil, fail.Usagef("%s: --emit-out goes with --emit", c.Command.Name)
	case !c.IsSet("emit"):
		return nil, nil
	case command.Global(c, "output") != "table" && !c.IsSet("emit-out"):
		return nil, fail.Usagef("%s: --emit prints what starts the plan, not %s: give it a file with --emit-out", c.Command.Name, command.Global(c, "output"))
	}
	f, err := launch.Lookup(c.String("emit"))
	if err != nil {
		return nil, fail.Usagef("%w", err)
	}
	return &f, nil
}

// instead names the best choice that f can express, and what it costs.
func instead(f *launch.Framework, best planner.Choice, all func() ([]planner.Choice, error)) string {
	var hint string
	if able := launch.Able(best.Config); len(able) > 0 {
		hint = fmt.Sprintf("\n%s can start this plan (--emit %s)", strings.Join(able, " and "), able[0])
	}
	if all == nil {
		return hint
	}
	choices, err := all()
	if err != nil {
		return hint
	}
	for _, ch := range choices {
		if _, err := f.Emit(ch.Config); err != nil || !ch.Fits {
			continue
		}
		return hint + fmt.Sprintf("\nthe best plan %s can start has %s %% of its throughput: pacer predict --plan %s --emit %s",
			f.Name, number.Fixed(100*ch.Prediction.Throughput/best.Prediction.Throughput, 0), ch.Config.Plan, f.Name)
	}
	return hint
}

// everyChoice ranks all plans of a request, also those that are not shown.
func everyChoice(c *cli.Context, q planRequest) ([]planner.Choice, error) {
	r := q.Request
	r.Top = 0
	ranking, err := q.planner.Rank(c.Context, r)
	return ranking.Choices, err
}
