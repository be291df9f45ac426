package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/launch/recipe"
)

// CheckCommand is pacer check.
func CheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "read a launch file: does it fit, how fast is it, what would be better",
		ArgsUsage: "FILE",
		Description: `Reads launch files of Megatron-LM (arguments, shell scripts and YAML), torchtitan, DeepSpeed,
NeMo, NeMo Automodel, axolotl, HF TrainingArguments and Accelerate, and MaxText. It prints
what was understood and what was not, whether the plan fits, the predicted step time, and the
five best single changes with the diff of the file. No program is run. Examples:

   pacer check --accelerator h100 train.sh
   pacer check -a h100 -n 8 --model llama3-8b ds_config.json
   pacer check -a a100-80gb --to h100 --price 2.1 job.toml
   pacer check -a h100 --measured 12.3s --set NNODES=4 train.sh

What the format cannot hold comes by flag: without it the exit code is 2. It is 3 if the plan is
illegal or does not fit.` + Groups.Help("model", "network"),
		Flags: append(requestFlags(),
			command.DevicesFlag("those of the file"),
			&cli.StringFlag{Name: "format", Usage: "read the file as `FORMAT`: " + strings.Join(recipeFormats(), " "), DefaultText: "the one that has its keys", Category: command.CategoryModel},
			&cli.StringSliceFlag{Name: "set", Usage: "set a shell variable or a field of the file, `NAME=VALUE`; may be repeated", DefaultText: "none", Category: command.CategoryModel},
			&cli.StringFlag{Name: "to", Usage: "port the recipe to accelerator `TYPE`", DefaultText: "none", Category: command.CategoryHardware},
			&cli.StringFlag{Name: "measured", Usage: "compare with a step that took `TIME`, such as 12.3s", DefaultText: "none", Category: command.CategoryOutput},
			&cli.Float64Flag{Name: "tokens", Usage: "train on `N` tokens", DefaultText: "those of the file", Category: command.CategoryModel},
			&cli.Float64Flag{Name: "price", Usage: "`PRICE` of a device-hour, in any currency", DefaultText: "none", Category: categoryObjective},
		),
		Action: runCheck,
	}
}

func recipeFormats() (out []string) {
	for _, f := range recipe.Formats() {
		out = append(out, f[0])
	}
	return out
}

// maxRecipe bounds the size of a launch file.
const maxRecipe = 1 << 20

func runCheck(c *cli.Context) error {
	q, err := readCheck(c)
	if err != nil {
		return err
	}
	d, err := datadir.Of(c).Resolver()
	if err != nil {
		return err
	}
	out, err := d.CheckFile(c.Context, q)
	if out == nil {
		return command.ForVerb(c, err)
	}
	if printed := command.Print(c, checkResult(out, &q)); printed != nil {
		return printed
	}
	var bad *query.FieldError
	var infeasible *planner.InfeasibleError
	switch {
	case errors.As(err, &bad) && len(out.Unset) > 0:
		return fmt.Errorf("%w\nshell variables without a value: %s; --set NAME=VALUE gives one", command.ForVerb(c, err), strings.Join(out.Unset, " "))
	case errors.As(err, &bad), errors.As(err, &infeasible), err != nil:
		return command.ForVerb(c, err)
	case out.Plan == nil:
		return fail.NoAnswerf("check: %s: %s", q.File, cmp.Or(strings.Join(out.Problems, "; "), "the plan is illegal"))
	case !out.Plan.Fits && out.Verdict != "unsure" && (q.Accelerator != "" || out.Port == nil):
		return fail.NoAnswerf("check: %s: the plan does not fit", q.File)
	}
	return nil
}

// readCheck reads the flags and the file.
func readCheck(c *cli.Context) (q query.CheckRequest, err error) {
	if c.NArg() != 1 {
		return q, fail.Usagef("check: want one FILE, got %d arguments", c.NArg())
	}
	for _, f := range []string{"tokens", "price", "devices"} {
		if err := command.NotZero(c, f); err != nil {
			return q, err
		}
	}
	for _, f := range []string{"tokens", "price"} {
		if v := c.Float64(f); c.IsSet(f) && !(v > 0 && v < 1e18) {
			return q, fail.Usagef("check: --%s %g is not above 0", f, v)
		}
	}
	if c.IsSet("devices") {
		if q.Devices, err = devicesFlag(c, "devices"); err != nil {
			return q, err
		}
	}
	q.File, q.Format, q.To, q.Tokens, q.Price = c.Args().First(), c.String("format"), c.String("to"), c.Float64("tokens"), c.Float64("price")
	if q.Format != "" && !slices.Contains(recipeFormats(), q.Format) {
		return q, fail.Usagef("check: --format %q is not one of %s", q.Format, strings.Join(recipeFormats(), ", "))
	}
	if q.Measured, err = seconds(c, "measured"); err != nil {
		return q, err
	}
	if q.Set, err = assignments(c, "set"); err != nil {
		return q, err
	}
	if q.Request, err = looseRequest(c); err != nil {
		return q, err
	}
	text, err := query.ReadFile("file", q.File, maxRecipe)
	if errors.Is(err, os.ErrNotExist) {
		return q, fail.Usagef("check: %s: no such file", q.File)
	}
	q.Text = text
	return q, err
}

// seconds reads a duration in seconds or with a unit, 0 where the flag is not given.
func seconds(c *cli.Context, flag string) (float64, error) {
	text := c.String(flag)
	if text == "" {
		return 0, nil
	}
	if v, ok := query.Seconds(text); ok {
		return v, nil
	}
	return 0, fail.Usagef("%s: --%s %q is not a time above 0, such as 12.3s, 14d or 36h", c.Command.Name, flag, text)
}

// assignments reads NAME=VALUE.
func assignments(c *cli.Context, flag string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range c.StringSlice(flag) {
		name, value, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fail.Usagef("%s: --%s %q is not NAME=VALUE", c.Command.Name, flag, text)
		}
		out[strings.TrimSpace(name)] = value
	}
	return out, nil
}

func checkResult(r *query.Check, q *query.CheckRequest) console.Result {
	csv := [][]string{{"field", "value"}}
	for _, f := range slices.Sorted(maps.Keys(r.Understood)) {
		csv = append(csv, []string{string(f), fmt.Sprint(r.Understood[f])})
	}
	return console.Result{JSON: r, CSV: csv, Table: func(w io.Writer) error { return printCheck(w, r, q) }}
}

func printCheck(w io.Writer, r *query.Check, q *query.CheckRequest) error {
	var said []string
	for _, f := range slices.Sorted(maps.Keys(r.Understood)) {
		said = append(said, fmt.Sprintf("%s=%v", f, r.Understood[f]))
	}
	console.Wrap(w, fmt.Sprintf("%s is a file of %s: %s", q.File, r.Format, strings.Join(said, " ")))
	for _, list := range []struct {
		title string
		items []string
	}{{"wrong: ", r.Problems}, {"assumed: ", r.Assumed}} {
		for _, text := range list.items {
			console.Wrap(w, list.title+text)
		}
	}
	for _, u := range r.Uncounted {
		console.Wrap(w, fmt.Sprintf("not counted: %s=%s: %s", u.Key, u.Value, u.Why))
	}
	if len(r.Unknown) > 0 {
		console.Wrap(w, "not known, so that the prediction is less certain: "+strings.Join(r.Unknown, " "))
	}
	if r.Plan == nil {
		return nil
	}
	fmt.Fprintln(w)
	p := *r.Plan
	title := "The memory of the devices is not known."
	switch r.Verdict {
	case "fits":
		title = fmt.Sprintf("The plan fits, with a probability of %.0f %%.", 100*r.FitChance)
	case "unsure", "does not fit":
		title = fmt.Sprintf("The plan %s: the probability that it fits is %.0f %%.", query.Misfit(r.Verdict), 100*r.FitChance)
	}
	if err := printColumns(w, []planRow{{PlanRow: p}}, title, columns{}); err != nil {
		return err
	}
	plans := []string{p.Plan}
	for _, c := range r.Changes {
		plans = append(plans, c.Plan)
	}
	PrintLegend(w, plans...)
	printTotals(w, r, q)
	if err := printChanges(w, r, q); err != nil {
		return err
	}
	if err := printPort(w, r); err != nil {
		return err
	}
	return printComparison(w, r.Measured)
}

// printTotals prints days and cost of the training.
func printTotals(w io.Writer, r *query.Check, q *query.CheckRequest) {
	if r.Days == 0 {
		return
	}
	text := fmt.Sprintf("%s tokens take %s and %s device-hours", number.Count(r.Tokens), daysText(r.Days), number.Significant(r.DeviceHrs, 3))
	if q.Price > 0 {
		text += fmt.Sprintf(", %s in money", number.Significant(r.Cost, 4))
	}
	if r.EnergyKWh > 0 {
		text += fmt.Sprintf(", at most %s kWh of the devices", number.Significant(r.EnergyKWh, 3))
	}
	console.Wrap(w, text+".")
}

func printChanges(w io.Writer, r *query.Check, q *query.CheckRequest) error {
	if len(r.Changes) == 0 {
		text := "No single change that fits, and that the file can hold, makes it faster."
		if !r.Plan.Fits {
			text = "No single change makes the plan fit."
		}
		if r.Port == nil && q.Accelerator != "" {
			if accelerator, err := child.Quote([]string{q.Accelerator}); err == nil {
				text += fmt.Sprintf(" --to %s searches for the best plan of several changes, with its diff.", accelerator)
			}
		}
		fmt.Fprintln(w)
		console.Wrap(w, text)
		return nil
	}
	fmt.Fprintln(w)
	table := [][]string{{"best single changes", "gain", "step s", "GiB"}}
	for _, c := range r.Changes {
		table = append(table, []string{c.Change, fmt.Sprintf("%+.1f %%", 100*c.Gain), number.Significant(c.StepS, 3), number.Fixed(c.MemGiB, 1)})
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	for _, c := range r.Changes {
		switch {
		case c.Diff != "":
			fmt.Fprintf(w, "\n%s:\n%s", c.Change, c.Diff)
		case c.Elsewhere != "":
			fmt.Fprintln(w)
			console.Wrap(w, fmt.Sprintf("%s: not in this file alone: %s", c.Change, c.Elsewhere))
		default:
			fmt.Fprintln(w)
			console.Wrap(w, fmt.Sprintf("%s: no diff: %s", c.Change, c.NoDiff))
		}
	}
	return nil
}

func printPort(w io.Writer, r *query.Check) error {
	if r.Port == nil {
		return nil
	}
	fmt.Fprintln(w)
	rows, names := []planRow{{PlanRow: r.Port.Best}}, []string{"the best plan"}
	if r.Port.Same != nil {
		rows, names = append(rows, planRow{PlanRow: *r.Port.Same}), append(names, "that of the file")
	}
	if held := r.Port.Held; held != nil && held.Plan != r.Port.Best.Plan {
		rows, names = append(rows, planRow{PlanRow: *held}), append(names, "the best that the file can hold")
	}
	title := "On " + r.Port.Accelerator + " " + strings.Join(names, ", ") + ":"
	if err := printColumns(w, rows, title, columns{}); err != nil {
		return err
	}
	for _, note := range r.Port.Notes {
		console.Wrap(w, note)
	}
	fmt.Fprintln(w)
	if r.Port.Diff != "" {
		fmt.Fprintf(w, "the file for the best plan that it can hold:\n%s", r.Port.Diff)
	} else {
		console.Wrap(w, "no diff: "+r.Port.NoDiff)
	}
	return nil
}

func printComparison(w io.Writer, m *query.Comparison) error {
	if m == nil {
		return nil
	}
	fmt.Fprintln(w)
	mfu := ""
	if m.MFU > 0 {
		mfu = fmt.Sprintf(", an MFU of %s where %s is predicted", percent(m.MFU), percent(m.MFU*m.Ratio))
	}
	console.Wrap(w, fmt.Sprintf("A measured step of %s s is %.2f times the predicted one%s; %.0f %% of the predicted distribution is faster.", number.Significant(m.StepS, 4), m.Ratio, mfu, 100*m.Quantile))
	question := "where the difference may come from"
	if m.Ratio < 1 {
		question = "what may slow the run, though it is faster than predicted"
	}
	table := [][]string{{question, "probability"}}
	for _, c := range m.Causes {
		table = append(table, []string{c.Cause, fmt.Sprintf("%.0f %%", 100*c.Probability)})
	}
	return console.WriteTable(w, table)
}
