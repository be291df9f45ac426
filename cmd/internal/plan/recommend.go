package plan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// RecommendCommand is pacer recommend.
func RecommendCommand() *cli.Command {
	flags := slices.DeleteFunc(requestFlags(), func(f cli.Flag) bool {
		return slices.Contains([]string{"accelerator", "node", "per-node", "adapter"}, f.Names()[0])
	})
	return &cli.Command{
		Name:  "recommend",
		Usage: "how many devices to train on, and their type, by days, cost and energy",
		Description: `For every number of each type of device the best plan is found. The output is the
fewest devices that fit, the cheapest and the fastest choice, every choice that no other beats in time and
cost at once, and what would change if the things that are not known were otherwise. Examples:

   pacer recommend -m llama3-70b --tokens 1e12 \
       --have h100:256@2.1,b200:64@4.5
   pacer recommend -m llama3-70b --tokens 1e12 --have h100:256@2.1 \
       --deadline 60d
   pacer recommend -m llama3-8b --tokens 1e8 --have h100:8@2 --method lora

h100:256@2.1 is at most 256 devices at 2.1 per device-hour. Prices are yours. Without --global-batch the
usual one is assumed, and said. Exit code 3 if nothing fits, or nothing is within budget and deadline.` + Groups.Help("model", "network", "space"),
		Flags: append(flags, spaceFlag(),
			&cli.Float64Flag{Name: "tokens", Usage: "train on `N` tokens, such as 1e12", DefaultText: "none", Category: command.CategoryModel},
			&cli.StringFlag{Name: "method", Usage: "train by `METHOD`: full, or an adapter such as lora or qlora:64:qkv+o+mlp", DefaultText: "full", Category: command.CategoryModel},
			&cli.StringFlag{Name: "have", Usage: "choose among `TYPE:MAX@PRICE,...`: at most MAX devices of a type, at PRICE per device-hour", DefaultText: "none", Category: command.CategoryHardware},
			&cli.Float64Flag{Name: "budget", Usage: "spend at most `COST`", DefaultText: "no limit", Category: categoryObjective},
			&cli.StringFlag{Name: "deadline", Usage: "take at most `TIME`, such as 14d", DefaultText: "no limit", Category: categoryObjective},
			plotFlag(),
		),
		Before: command.NoArgs,
		Action: runRecommend,
	}
}

// plotFlag draws a chart below a table.
func plotFlag() cli.Flag {
	return &cli.BoolFlag{Name: "plot", Usage: "draw a chart of the table", Category: command.CategoryOutput}
}

func runRecommend(c *cli.Context) error {
	if c.String("have") == "" {
		return fail.Usagef("recommend: --have is missing, such as h100:256@2.1: which devices are there?")
	}
	for _, f := range []string{"tokens", "budget"} {
		if err := command.NotZero(c, f); err != nil {
			return err
		}
	}
	q := query.RecommendRequest{Tokens: c.Float64("tokens"), Have: c.String("have"), Budget: c.Float64("budget"), Deadline: c.String("deadline"), Method: c.String("method")}
	var err error
	if q.Space, err = spaceOf(c); err != nil {
		return err
	}
	if q.Request, err = looseRequest(c); err != nil {
		return err
	}
	if q.Model == "" && q.Network.Name == "" {
		return fail.Usagef("recommend: --model is missing; pacer ls models lists the known ones")
	}
	d, err := datadir.Of(c).Resolver()
	if err != nil {
		return err
	}
	out, err := query.Recommend(c.Context, d.Resolve, q)
	if err != nil {
		return hintDirectory(c, command.ForVerb(c, err))
	}
	if err := command.Print(c, recommendResult(out, c.Bool("plot"))); err != nil {
		return err
	}
	if !out.Within {
		return fail.NoAnswerf("recommend: no choice is within budget and deadline: the least cost is %s, the least time %s",
			number.Significant(out.Cheapest.Cost, 4), daysText(out.Fastest.Days))
	}
	return nil
}

func recommendResult(r *query.Recommendation, plot bool) console.Result {
	csv := [][]string{{"accelerator", "devices", "plan", "days", "days_lo", "days_hi", "cost", "cost_lo", "cost_hi", "energy_kwh", "mfu", "samples_per_s"}}
	for _, p := range r.Front {
		csv = append(csv, []string{p.Accelerator, strconv.Itoa(p.Devices), p.Plan, number.Float(p.Days), number.Float(p.DaysLo), number.Float(p.DaysHi),
			number.Float(p.Cost), number.Float(p.CostLo), number.Float(p.CostHi), given(p.EnergyKWh), given(p.MFU), number.Float(p.SamplesPerS)})
	}
	return console.Result{JSON: r, CSV: csv, Table: func(w io.Writer) error {
		if err := printRecommendation(w, r); err != nil || !plot {
			return err
		}
		fmt.Fprintln(w)
		return recommendChart(r).Write(w)
	}}
}

func printRecommendation(w io.Writer, r *query.Recommendation) error {
	console.Wrap(w, fmt.Sprintf("%s on %s tokens, global batch %d of %d tokens (%s)", r.Model, number.Count(r.Tokens), r.GlobalBatch, r.SeqLen, r.BatchSource))
	for _, text := range r.None {
		console.Wrap(w, "nothing fits on "+text)
	}
	money := "device-hours"
	if r.Priced {
		money = "cost"
	}
	unit := unitOf(r.Fastest.Days)
	head := []string{"", "type", "devices", unit.name, "90 % interval", money, "MWh", "MFU", "plan"}
	table := [][]string{head}
	for _, a := range []struct {
		name string
		row  *query.RecommendRow
	}{{"cheapest", r.Cheapest}, {"fastest", r.Fastest}, {"fewest devices", r.Fewest}} {
		table = append(table, recommendLine(a.name, a.row, unit))
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nNo other choice is both faster and cheaper than these:")
	table = [][]string{head}
	for i := range r.Front {
		table = append(table, recommendLine("", &r.Front[i], unit))
	}
	if err := console.WriteTable(w, table); err != nil {
		return err
	}
	var texts []string
	for _, s := range r.Cheapest.Sensitivities {
		texts = append(texts, fmt.Sprintf("%s: %+.0f %%", s.What, 100*(s.Ratio-1)))
	}
	if len(texts) > 0 {
		console.Wrap(w, "Time of the cheapest with "+strings.Join(texts, "; ")+".")
	}
	console.Wrap(w, fmt.Sprintf("by %s; MWh is of the devices at their power limit, MFU the share of their peak", r.Cheapest.By))
	plans := []string{r.Cheapest.Plan, r.Fastest.Plan, r.Fewest.Plan}
	for _, p := range r.Front {
		plans = append(plans, p.Plan)
	}
	PrintLegend(w, plans...)
	return nil
}

func recommendLine(name string, p *query.RecommendRow, unit timeUnit) []string {
	return []string{name, p.Accelerator, strconv.Itoa(p.Devices), unit.of(p.Days), unit.of(p.DaysLo) + " - " + unit.of(p.DaysHi),
		number.Significant(p.Cost, 4), unless0(p.EnergyKWh/1000, 3), percent(p.MFU), p.Plan}
}

// unless0 writes a number, - for 0.
func unless0(v float64, digits int) string {
	if v == 0 {
		return "-"
	}
	return number.Significant(v, digits)
}

// percent writes a share, - for 0.
func percent(v float64) string {
	if v == 0 {
		return "-"
	}
	return number.Fixed(100*v, 0) + " %"
}

// recommendChart is the front, time against cost.
func recommendChart(r *query.Recommendation) console.Chart {
	ch := console.Chart{X: "days", Y: "cost", LogX: true, LogY: true}
	for _, p := range r.Front {
		ch.Points = append(ch.Points, [2]float64{p.Days, p.Cost})
	}
	return ch
}
