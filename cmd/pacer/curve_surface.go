package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/planner"
)

// axesFlags are the settings of --axes, which make a surface of a curve. Several
// accelerators do so too.
func axesFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cpus", Usage: "CPU threads per device, such as 1+4+12", DefaultText: "enough"},
		&cli.StringFlag{Name: "host-gib", Usage: "host memory per device in GiB, such as 64+256", DefaultText: "that of the usual node"},
		&cli.StringFlag{Name: "network-gbps", Usage: "network of one node in Gbit/s, one direction, all NICs, such as 100+400", DefaultText: "that of the usual node"},
	}
}

// curveAxes is what a curve varies beside devices.
type curveAxes struct {
	accelerators []string
	asked        query.Axes
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
		a.asked.CPUs = append(a.asked.CPUs, int(v))
	}
	if a.asked.HostGiB, err = numbers(c, "host-gib"); err != nil {
		return a, err
	}
	if a.asked.NetworkGbps, err = numbers(c, "network-gbps"); err != nil {
		return a, err
	}
	a.Axes, err = a.asked.Planner(c.Float64("inter-node-gbps"))
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

// runSurface answers questions that differ in their accelerator. Those on which
// nothing fits have no points, unless there are none at all.
func runSurface(c *cli.Context, questions []question, axes planner.Axes) error {
	lines := make([]query.SurfaceLine, len(questions))
	for i, q := range questions {
		lines[i] = query.SurfaceLine{Request: q.Request, Planner: q.planner}
	}
	found, err := query.Surfaces(c.Context, lines, axes)
	if err != nil {
		return err
	}
	for _, err := range found.None {
		fmt.Fprintln(c.App.ErrWriter, "warning:", err)
	}
	t := &curveRows{surface: true, teaches: questions[0].GlobalBatch == 0, rows: found.Rows, isNew: found.IsNew, none: found.None}
	t.title = curveTitle(questions[0].Request, strings.Join(found.Names, ", "))
	return command.Print(c, t.result())
}

// curveAxis is a column that says where a row is on an axis.
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
