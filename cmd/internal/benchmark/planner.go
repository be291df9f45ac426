package benchmark

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/bench/accuracy"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

func plannerCommand() *cli.Command {
	return &cli.Command{
		Name:  "planner",
		Usage: "measure the planner: the cost of its choices, and its verdicts on plans that ran",
		Description: `Chooses among the measured plans of every job of data/rubick and data/published
by predictions that have not seen them, and prints how much longer the chosen
plans take than the best. Then checks every plan of Megatron-LM (SC21) and
Megatron-Bridge with a model of the catalog: is it legal, does it fit, how long
is a step.

   pacer bench planner --shared DIR --output csv`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "shared", Usage: "read the data sets in `DIR`", Category: category, EnvVars: []string{"PACER_SHARED"}},
		},
		Before: command.NoArgs,
		Action: runPlanner,
	}
}

func runPlanner(c *cli.Context) error {
	shared := c.String("shared")
	if shared == "" {
		return fail.Usagef("bench planner: --shared is missing: a directory with data/rubick and data/published")
	}
	r, err := accuracy.RunPlanner(c.Context, shared)
	if err != nil {
		return err
	}
	csv, err := plannerCSV(r)
	if err != nil {
		return err
	}
	return command.Print(c, console.Result{JSON: r, CSV: csv, Table: func(w io.Writer) error { return plannerText(w, r) }})
}

// plannerCSV has a line per choice, then one per plan that ran; columns of the other kind are
// empty.
func plannerCSV(r *accuracy.PlannerReport) ([][]string, error) {
	var lines []any
	for i := range r.Choices {
		lines = append(lines, struct {
			Kind string `json:"kind"`
			*accuracy.Alternatives
		}{"choice", &r.Choices[i]})
	}
	for i := range r.Plans {
		lines = append(lines, struct {
			Kind string `json:"kind"`
			*accuracy.PlanCheck
		}{"plan", &r.Plans[i]})
	}
	return console.CSV(lines)
}

// plannerText prints the tables.
func plannerText(w io.Writer, r *accuracy.PlannerReport) error {
	fmt.Fprintf(w, "How much longer the plan predicted fastest takes than the fastest measured one; by %s, which has seen\n"+
		"no row of the published source, and at most 8 rows of the job type of rubick's traces:\n\n", r.Family)
	for _, t := range []struct {
		table [][]string
		after string
	}{
		{r.ChoiceTable(), "\n"},
		{r.RegretTable(), "\nPlans that ran; predicted step time over measured, as recorded and with the least recomputation that fits:\n\n"},
		{r.PlanTable(), "\n"},
		{r.SourceTable(), "\nothers: rows of another run than they record. These, and the plans that are not legal or do not fit:\n\n"},
		{r.ReasonTable(), ""},
	} {
		if err := console.WriteTable(w, t.table); err != nil {
			return err
		}
		fmt.Fprint(w, t.after)
	}
	return nil
}
