package plan

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/console"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
)

// CurveCommand is pacer curve.
func CurveCommand() *cli.Command {
	return &cli.Command{
		Name:  "curve",
		Usage: "best throughput of a model for every number of devices",
		Description: `The sensitivity curve: for each device count the best plan with at most that
many devices, so that throughput never falls. A count that brings nothing keeps
the plan of a smaller one. Example:

   pacer curve -m llama3-8b -a h100 --max-devices 32 --global-batch 128

Lists of CPU threads, host memory, network bandwidths or accelerators make it a
surface: the curve for each combination, on which more is never slower either:

   pacer curve -m llama3-8b -a h100,a100-80gb --max-devices 32 -b 128 \
       --axes network-gbps=100+400
   pacer curve -m llama3-8b -a a100-80gb --max-devices 4 -b 64 \
       --axes cpus=1+4+12,host-gib=64+256

The batch can be free, and the objective goodput:

   pacer curve -m llama3-8b -a h100 --max-devices 32 \
       --batch-range 64-2048 --objective goodput:noise-scale=500` + Groups.Help("axes", "model", "network", "space", "objective"),
		Flags:  append(requestFlags(), curveFlags()...),
		Before: command.NoArgs,
		Action: runCurve,
	}
}

// curveFlags are the flags of curve alone. A point has one number of devices, so that
// objectives about that number do not apply.
func curveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "max-devices", Usage: "show up to `N` devices", DefaultText: "none", Category: command.CategoryHardware},
		command.GroupFlag("axes", "show a surface over these values", "network-gbps=100+400,host-gib=64+256", command.CategoryHardware),
		spaceFlag(),
		&cli.StringFlag{Name: "objective", Usage: "choose by `NAME[:KEY=VALUE...]`: throughput, or goodput:noise-scale=SAMPLES, throughput x statistical efficiency", DefaultText: "throughput", Category: categoryObjective},
		batchRangeFlag(),
		plotFlag(),
	}
}

func runCurve(c *cli.Context) error {
	axes, err := readAxes(c)
	if err != nil {
		return err
	}
	requests, err := curveRequests(c, axes)
	if err != nil {
		return err
	}
	if len(requests) > 1 || axes.named.Given() {
		return runSurface(c, requests, axes.Axes)
	}
	q := requests[0]
	curve, err := q.planner.Curve(c.Context, q.Request)
	if err != nil {
		return err
	}
	t := curveTable(curve)
	t.plot = c.Bool("plot")
	return command.Print(c, t.result())
}

// PrintCurve writes the curve of a request.
func PrintCurve(ctx context.Context, w io.Writer, p *planner.Planner, r planner.Request) error {
	curve, err := p.Curve(ctx, r)
	if err != nil {
		return err
	}
	return curveTable(curve).print(w)
}

// curveRequests are the requests of a curve, one for each accelerator.
func curveRequests(c *cli.Context, axes curveAxes) ([]planRequest, error) {
	if o := planner.Objective(c.String("objective")); o == planner.Cost || o == planner.MinDevices {
		return nil, fail.Usagef("curve: --objective %s chooses among numbers of devices, and a curve shows them all: ask pacer plan", o)
	}
	out := make([]planRequest, len(axes.accelerators))
	for i, name := range axes.accelerators {
		q, err := resolveOn(c, name, "max-devices", nil)
		if err != nil {
			return nil, err
		}
		if err = readGoal(c, &q.Request); err != nil {
			return nil, err
		}
		out[i] = q
	}
	return out, command.ForVerb(c, axes.named.CheckPoints(len(axes.accelerators), out[0].Devices, maxPoints))
}

// curveRows is a curve or a surface to print.
type curveRows struct {
	title     string
	rows      []query.CurveRow
	isNew     []bool  // rows a table shows, the others are as one with less of something
	none      []error // of accelerators on which nothing fits
	surface   bool
	freeBatch bool // the batch is free
	plot      bool // draw a chart of each accelerator
}

// curveTable is the table of a curve: the counts at which something changes.
func curveTable(curve planner.Curve) *curveRows {
	t := &curveRows{rows: query.CurveRows(curve), title: curveTitle(curve.Request, curve.Request.Accelerator.Name), freeBatch: curve.Request.GlobalBatch == 0}
	for i, row := range t.rows {
		t.isNew = append(t.isNew, i == 0 || row.Plan != t.rows[i-1].Plan)
	}
	return t
}

func curveTitle(r planner.Request, accelerators string) string {
	batch := strconv.Itoa(r.GlobalBatch)
	if r.GlobalBatch == 0 {
		batch = fmt.Sprintf("%d to %d", r.MinBatch, r.MaxBatch)
	}
	return fmt.Sprintf("%s on 1 to %d x %s, global batch %s", r.Model.Name, r.Devices, accelerators, batch)
}

func (t *curveRows) result() console.Result {
	csv := [][]string{{"devices", "plan", "samples_per_s", "lo", "hi", "used", "by", "warnings",
		"marginal_samples_per_s", "global_batch", "goodput_samples_per_s"}}
	if t.surface {
		csv[0] = append(csv[0], "accelerator", "network_gbps", "host_gib", "cpus")
	}
	for _, p := range t.rows {
		line := []string{strconv.Itoa(p.Devices), p.Plan, number.Float(p.SamplesPerS), number.Float(p.Lo), number.Float(p.Hi), strconv.Itoa(p.Used), p.By, strings.Join(p.Warnings, "; "),
			number.Float(p.Marginal), strconv.Itoa(p.GlobalBatch), number.Float(p.GoodputPerS)}
		if t.surface {
			line = append(line, p.Accelerator, given(p.NetworkGbps), given(p.HostGiB), given(float64(p.CPUs)))
		}
		csv = append(csv, line)
	}
	return console.Result{JSON: query.Curve{Points: t.rows, Warnings: query.Texts(t.none)}, CSV: csv, Table: t.print}
}

// given writes a place on an axis, nothing without an axis.
func given(v float64) string {
	if v == 0 {
		return ""
	}
	return number.Float(v)
}

// print shows only the points at which something changes, each accelerator by
// itself.
func (t *curveRows) print(w io.Writer) error {
	fmt.Fprintln(w, t.title)
	plans := make([]planRow, len(t.rows))
	for i, p := range t.rows {
		plans[i] = planRow{PlanRow: query.PlanRow{Plan: p.Plan, Warnings: p.Warnings}}
	}
	common := commonPrecision(plans)
	several := t.rows[0].Accelerator != t.rows[len(t.rows)-1].Accelerator
	for from := 0; from < len(t.rows); {
		to := from
		for to < len(t.rows) && t.rows[to].Accelerator == t.rows[from].Accelerator {
			to++
		}
		if several {
			fmt.Fprintf(w, "\n%s\n", t.rows[from].Accelerator)
		}
		if err := t.printRows(w, from, to, common); err != nil {
			return err
		}
		if err := t.chart(w, from, to); err != nil {
			return err
		}
		from = to
	}
	less := "counts not shown keep the plan of the next smaller one"
	if t.surface {
		less = "points not shown are no faster than ones with fewer devices or a slower network"
	}
	if several {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "by %s%s; %s\n", t.by(), strings.Replace(common, ",", "; all with ", 1), less)
	texts := make([]string, len(plans))
	for i := range plans {
		texts[i] = plans[i].Plan
	}
	PrintLegend(w, texts...)
	return printNotes(w, plans)
}

// chart draws throughput over devices of the rows from..to, with --plot.
func (t *curveRows) chart(w io.Writer, from, to int) error {
	if !t.plot {
		return nil
	}
	ch := console.Chart{X: "devices", Y: "samples/s"}
	for _, p := range t.rows[from:to] {
		ch.Points = append(ch.Points, [2]float64{float64(p.Devices), p.SamplesPerS})
	}
	fmt.Fprintln(w)
	return ch.Write(w)
}

// printRows prints those of the rows from..to that are new, without the precision
// they have in common.
func (t *curveRows) printRows(w io.Writer, from, to int, common string) error {
	axes := t.axes()
	table := [][]string{t.header(axes)}
	for i := from; i < to; i++ {
		if t.isNew[i] {
			table = append(table, t.line(&t.rows[i], axes, common))
		}
	}
	return console.WriteTable(w, table)
}

func (t *curveRows) header(axes []curveAxis) (out []string) {
	for _, a := range axes {
		out = append(out, a.title)
	}
	out = append(out, "devices", "plan", "samples/s", "90 % interval")
	if t.freeBatch {
		out = append(out, "batch", "goodput")
	}
	if !t.surface && !t.freeBatch {
		out = append(out, "per device")
	}
	return append(out, "each adds")
}

func (t *curveRows) line(p *query.CurveRow, axes []curveAxis, common string) (out []string) {
	for _, a := range axes {
		out = append(out, a.of(p))
	}
	out = append(out, strconv.Itoa(p.Devices), strings.TrimSuffix(p.Plan, common), number.Significant(p.SamplesPerS, 4),
		number.Significant(p.Lo, 3)+" - "+number.Significant(p.Hi, 3))
	if t.freeBatch {
		out = append(out, strconv.Itoa(p.GlobalBatch), number.Significant(p.GoodputPerS, 4))
	}
	if !t.surface && !t.freeBatch {
		out = append(out, number.Significant(p.SamplesPerS/float64(p.Devices), 3))
	}
	return append(out, number.Significant(p.Marginal, 3))
}

// by names the performance models that answered, each once.
func (t *curveRows) by() string {
	var names []string
	for _, p := range t.rows {
		if !slices.Contains(names, p.By) {
			names = append(names, p.By)
		}
	}
	return strings.Join(names, ", ")
}

// axesFlags are the settings of --axes, which make a surface of a curve. Several
// accelerators do so too.
func axesFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cpus", Usage: "CPU threads per device, such as 1+4+12", DefaultText: "enough"},
		&cli.StringFlag{Name: "host-gib", Usage: "host memory per device in GiB, such as 64+256", DefaultText: "that of the usual node"},
		&cli.StringFlag{Name: "network-gbps", Usage: "network of one node in Gbit/s, one direction, all NICs, such as 100+400", DefaultText: "that of the usual node"},
	}
}

// curveAxes are the axes of a curve besides devices.
type curveAxes struct {
	accelerators []string
	named        query.Axes
	planner.Axes
}

// maxPoints bounds a surface.
const maxPoints = 1 << 20

// readAxes reads axesFlags and the accelerators.
func readAxes(c *cli.Context) (a curveAxes, err error) {
	if a.accelerators, err = query.AcceleratorList(c.String("accelerator")); err != nil {
		return a, command.ForVerb(c, err)
	}
	cpus, err := numbers(c, "cpus")
	if err != nil {
		return a, err
	}
	for _, v := range cpus {
		if v != float64(int(v)) {
			return a, fail.Usagef("%s: --cpus %g is not a whole number", c.Command.Name, v)
		}
		a.named.CPUs = append(a.named.CPUs, int(v))
	}
	if a.named.HostGiB, err = numbers(c, "host-gib"); err != nil {
		return a, err
	}
	if a.named.NetworkGbps, err = numbers(c, "network-gbps"); err != nil {
		return a, err
	}
	a.Axes, err = a.named.Planner(c.Float64("inter-node-gbps"))
	return a, command.ForVerb(c, err)
}

// numbers reads a comma-separated list of numbers. It is nil where the flag is
// not given.
func numbers(c *cli.Context, flag string) (out []float64, err error) {
	for _, text := range command.List(c, flag) {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, fail.Usagef("%s: --%s: %q is not a number; want numbers such as 1+4+12", c.Command.Name, flag, text)
		}
		out = append(out, v)
	}
	return out, nil
}

// runSurface answers requests that differ in their accelerator. Accelerators on which nothing
// fits have no points; if nothing fits on any, it returns an error.
func runSurface(c *cli.Context, requests []planRequest, axes planner.Axes) error {
	lines := make([]query.SurfaceLine, len(requests))
	for i, q := range requests {
		lines[i] = query.SurfaceLine{Request: q.Request, Planner: q.planner}
	}
	found, err := query.Surfaces(c.Context, lines, axes)
	if err != nil {
		return err
	}
	for _, err := range found.None {
		fmt.Fprintln(c.App.ErrWriter, "warning:", err)
	}
	t := &curveRows{surface: true, plot: c.Bool("plot"), freeBatch: requests[0].GlobalBatch == 0, rows: found.Rows, isNew: found.IsNew, none: found.None}
	t.title = curveTitle(requests[0].Request, strings.Join(found.Names, ", "))
	return command.Print(c, t.result())
}

// curveAxis is a column with the place of a row on an axis.
type curveAxis struct {
	title string
	of    func(*query.CurveRow) string
}

// axes returns the columns of the axes on which rows of t differ, but for the
// accelerators and devices.
func (t *curveRows) axes() (out []curveAxis) {
	for _, a := range []curveAxis{
		{"Gbit/s", func(p *query.CurveRow) string { return given(p.NetworkGbps) }},
		{"host GiB", func(p *query.CurveRow) string { return given(p.HostGiB) }},
		{"CPUs", func(p *query.CurveRow) string { return given(float64(p.CPUs)) }},
	} {
		first := a.of(&t.rows[0])
		if slices.ContainsFunc(t.rows, func(p query.CurveRow) bool { return a.of(&p) != first }) {
			out = append(out, a)
		}
	}
	return out
}
