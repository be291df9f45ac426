package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/planner"
)

// axesFlags make a surface of a curve. Several accelerators do so too.
func axesFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cpus", Usage: "CPU `THREADS` per device, such as 1,4,12", DefaultText: "enough"},
		&cli.StringFlag{Name: "host-gib", Usage: "host memory per device in `GIB`, such as 64,256", DefaultText: "that of the usual node"},
		&cli.StringFlag{Name: "network-gbps", Usage: "network of one node in `GBIT/S`, one direction, all NICs, such as 100,400", DefaultText: "that of the usual node"},
	}
}

// curveAxes is what a curve varies beside devices; Machines are those of the
// accelerators.
type curveAxes struct {
	accelerators []string
	planner.Axes
}

// Bounds of a surface.
const (
	maxCPUs    = 4096    // per device
	maxHostGiB = 1 << 20 // per device
	maxNetwork = 1e9     // Gbit/s
	maxPoints  = 1 << 20
)

// readAxes reads axesFlags and the accelerators.
func readAxes(c *cli.Context) (curveAxes, error) {
	a := curveAxes{accelerators: acceleratorList(c.String("accelerator"))}
	if slices.Contains(a.accelerators, "") && len(a.accelerators) > 1 {
		return a, usagef("%s: --accelerator %s has a name missing beside a comma", c.Command.Name, c.String("accelerator"))
	}
	cpus, err := numbers(c, "cpus", 1, maxCPUs)
	if err != nil {
		return a, err
	}
	for _, v := range cpus {
		if v != float64(int(v)) {
			return a, usagef("%s: --cpus %g is not a whole number", c.Command.Name, v)
		}
		a.CPUs = append(a.CPUs, int(v))
	}
	if a.HostBytes, err = numbers(c, "host-gib", 0, maxHostGiB); err != nil {
		return a, err
	}
	if a.InterBps, err = numbers(c, "network-gbps", 0, maxNetwork); err != nil {
		return a, err
	}
	if len(a.InterBps) > 0 && c.IsSet("inter-node-gbps") {
		return a, usagef("%s: --network-gbps %s and --inter-node-gbps %g both say how fast the network is: give one", c.Command.Name, c.String("network-gbps"), c.Float64("inter-node-gbps"))
	}
	for i := range a.HostBytes {
		a.HostBytes[i] *= memory.GiB
	}
	for i := range a.InterBps {
		a.InterBps[i] *= 1e9 / 8
	}
	return a, nil
}

// threads is the end of the name of a CPU as an accelerator, after its comma.
var threads = regexp.MustCompile(`^ \d+ threads?$`)

// acceleratorList splits "h100,a100-80gb", and leaves "CPU X, 2 threads" whole.
func acceleratorList(s string) (names []string) {
	for i, part := range strings.Split(s, ",") {
		if i > 0 && threads.MatchString(part) {
			names[len(names)-1] += "," + part
			continue
		}
		names = append(names, strings.TrimSpace(part))
	}
	return names
}

// numbers reads a comma-separated list of numbers, sorted, each once; those with
// 0 as the least are above it. It is nil where the flag is not given.
func numbers(c *cli.Context, flag string, least, most float64) ([]float64, error) {
	if !c.IsSet(flag) {
		return nil, nil
	}
	from := "above 0 and at most "
	if least > 0 {
		from = fmt.Sprintf("in %g..", least)
	}
	var out []float64
	for _, text := range strings.Split(c.String(flag), ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, usagef("%s: --%s: %q is not a number; it wants such as 1,4,12", c.Command.Name, flag, text)
		}
		if !(v >= least && v <= most) || v == 0 {
			return nil, usagef("%s: --%s %g is not %s%.0f", c.Command.Name, flag, v, from, most)
		}
		out = append(out, v)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// asked reports whether anything but devices and accelerators varies.
func (a *curveAxes) asked() bool { return len(a.CPUs)+len(a.HostBytes)+len(a.InterBps) > 0 }

// check reports a surface of too many points.
func (a *curveAxes) check(c *cli.Context, devices int) error {
	points := float64(devices)
	for _, n := range []int{len(a.accelerators), len(a.CPUs), len(a.HostBytes), len(a.InterBps)} {
		points *= float64(max(n, 1))
	}
	if points > maxPoints && (a.asked() || len(a.accelerators) > 1) {
		return usagef("%s: %.0f points are more than %d: fewer values, or a smaller --max-devices", c.Command.Name, points, maxPoints)
	}
	return nil
}

// runSurface answers questions that differ in their accelerator. Those on which
// nothing fits have no points, unless there are none at all.
func runSurface(c *cli.Context, questions []question, axes planner.Axes) error {
	t := &curveRows{surface: true, teaches: questions[0].GlobalBatch == 0}
	var names []string
	var nothing []error
	for _, q := range questions {
		s, err := q.planner.Surface(c.Context, q.Request, axes)
		if errors.Is(err, planner.ErrInfeasible) {
			nothing = append(nothing, err)
			continue
		}
		if err != nil {
			return err
		}
		names = append(names, q.Accelerator.Name)
		rows, isNew := ask.SurfaceRows(s, axes)
		t.rows, t.isNew = append(t.rows, rows...), append(t.isNew, isNew...)
	}
	if len(t.rows) == 0 {
		return errors.Join(nothing...)
	}
	for _, err := range nothing {
		fmt.Fprintln(c.App.ErrWriter, "warning:", err)
	}
	t.title = curveTitle(questions[0].Request, strings.Join(names, ", "))
	return emit(c, t.result())
}

// curveAxis is a column that says where a row is on an axis.
type curveAxis struct {
	title string
	of    func(*ask.CurveRow) string
}

// axes returns the columns of the axes on which rows of t differ, but for the
// accelerators and devices.
func (t *curveRows) axes() (out []curveAxis) {
	for _, a := range []curveAxis{
		{"Gbit/s", func(p *ask.CurveRow) string { return given(p.NetworkGbps) }},
		{"host GiB", func(p *ask.CurveRow) string { return given(p.HostGiB) }},
		{"CPUs", func(p *ask.CurveRow) string { return given(float64(p.CPUs)) }},
	} {
		first := a.of(&t.rows[0])
		if slices.ContainsFunc(t.rows, func(p ask.CurveRow) bool { return a.of(&p) != first }) {
			out = append(out, a)
		}
	}
	return out
}
