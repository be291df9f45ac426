package plan

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// FitCheckCommand is pacer fit-check.
func FitCheckCommand() *cli.Command {
	return &cli.Command{
		Name:  "fit-check",
		Usage: "does it fit in memory, by how much, and what would make it fit",
		Description: `Of one plan, or, without --plan, of the best there is on the given devices.
Examples:

   pacer fit-check -m llama3-8b -a h100 --plan dp=8,mb=4,ga=2,zero=2
   pacer fit-check -m llama3-70b -a a100 --devices 8 --global-batch 64

Exit code 3 unless it fits with a probability of 95 %; what would make it fit is
printed all the same.` + Groups.Help("model", "network", "space"),
		Flags: append(requestFlags(), spaceFlag(),
			&cli.StringFlag{Name: "plan", Usage: "check `PLAN`, such as dp=2,tp=4,pp=1,mb=2,ga=8,zero=1,recompute=full", DefaultText: "the best one", Category: command.CategoryModel},
			command.DevicesFlag("those of the plan"),
			&cli.StringFlag{Name: "shape", Usage: "place the plan on nodes of `N+N...` devices, or 2x8", DefaultText: "as few nodes as possible", Category: command.CategoryHardware},
		),
		Before: command.NoArgs,
		Action: runFitCheck,
	}
}

func runFitCheck(c *cli.Context) error {
	var q planRequest
	var err error
	if c.IsSet("plan") {
		q, err = readFixedPlan(c)
	} else {
		q, err = readRequest(c)
	}
	if err != nil {
		return err
	}
	report, err := q.planner.FitCheck(c.Context, q.Request)
	if err != nil {
		return err
	}
	r := query.NewFitCheck(report)
	if err := command.Print(c, fitCheckResult(r, q.Request)); err != nil {
		return err
	}
	if !r.Fits {
		return fail.NoAnswerf("fit-check: plan %s %s", r.Plan, query.Misfit(r.Verdict))
	}
	return nil
}

func fitCheckResult(r query.FitCheck, about planner.Request) console.Result {
	return console.Result{
		JSON: r,
		CSV: [][]string{
			append([]string{"plan", "shape", "fits", "probability", "mem_gib", "budget_gib", "device_gib", "headroom_gib", "host_gib", "why", "fix", "by"}, lastColumns...),
			{r.Plan, r.Shape, surelyFits(r.Fits, r.Verdict), number.Float(r.Probability), number.Float(r.MemGiB), number.Float(r.BudgetGiB), number.Float(r.DeviceGiB), number.Float(r.HeadroomGiB),
				number.Float(r.HostGiB), r.Why, firstFix(r), r.By, r.Verdict, given(r.Allocated), given(r.Reserved)},
		},
		Table: func(w io.Writer) error { return printFitCheck(w, r, about) },
	}
}

func firstFix(r query.FitCheck) string {
	if len(r.Fixes) == 0 {
		return ""
	}
	return r.Fixes[0].Change
}

func printFitCheck(w io.Writer, r query.FitCheck, about planner.Request) error {
	verdict := fmt.Sprintf("fits, %s GiB of each device to spare", number.Fixed(r.HeadroomGiB, 1))
	switch {
	case !r.Fits:
		verdict = query.Misfit(r.Verdict)
	case r.BudgetGiB == 0:
		verdict = "fits as far as is known"
	}
	console.Wrap(w, fmt.Sprintf("%s on %s x %s, global batch %d%s: %s", about.Model.Name, r.Shape, about.Accelerator.Name, about.GlobalBatch, sequence(about), verdict))
	fmt.Fprintf(w, "plan %s\n", r.Plan)
	switch {
	case !r.Fits:
		console.Wrap(w, r.Why)
	case r.BudgetGiB > 0:
		fmt.Fprintf(w, "needs %s GiB; up to %s of %s GiB are sure enough to fit (%s %% likely)\n", number.Fixed(r.MemGiB, 1), number.Fixed(r.BudgetGiB, 1), number.Fixed(r.DeviceGiB, 1), number.Fixed(100*r.Probability, 0))
	}
	if r.Offloads {
		console.Wrap(w, fmt.Sprintf("It fits because it moves something to host memory, %s GiB of it in all; nothing fits without (see --space offload=none).", number.Fixed(r.HostGiB, 1)))
	}
	if err := printShares(w, partsOf(r), "GiB", 2); err != nil {
		return err
	}
	if err := printFixes(w, r); err != nil {
		return err
	}
	plans := []string{r.Plan}
	for _, f := range r.Fixes {
		plans = append(plans, f.Plan)
	}
	PrintLegend(w, plans...)
	return nil
}

// partsOf names the parts of a report for people.
func partsOf(r query.FitCheck) []query.Share {
	parts := query.MemoryShares(memory.Breakdown{})
	for i := range parts {
		parts[i].Size = r.Parts[parts[i].Name]
	}
	return parts
}

func printFixes(w io.Writer, r query.FitCheck) error {
	if r.Fits {
		return nil
	}
	if len(r.Fixes) == 0 {
		fmt.Fprintln(w, "\nNo change of the plan makes it fit, nor do up to 64 times as many devices.")
		return nil
	}
	fmt.Fprintln(w)
	table := [][]string{{"what would make it fit", "devices", "GiB", "samples/s", "plan"}}
	for _, f := range r.Fixes {
		table = append(table, []string{cmp.Or(f.Change, "-"), strconv.Itoa(f.Devices), number.Fixed(f.MemGiB, 1), number.Significant(f.SamplesPerS, 3), f.Plan})
	}
	return console.WriteTable(w, table)
}
