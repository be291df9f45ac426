package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/store"
)

// measurementSetup is a machine and the runner that measures its points.
type measurementSetup struct {
	machine profiler.Machine
	runner  profiler.Runner
	assumed bool // nothing is measured on a real machine
	notes   []string
	count   int    // points of the campaign, set by points
	close   func() // nil = nothing to release
}

// machineFlags select where and how a campaign is measured.
func machineFlags() []cli.Flag {
	return []cli.Flag{
		devicesListFlag(),
		&cli.StringFlag{Name: "runner", Usage: "measure by `NAME` instead of the file's: torchrun, synthetic, or replay:SOURCE of stored rows"},
	}
}

func assumeFlag() cli.Flag {
	return &cli.StringFlag{Name: "assume", Usage: "plan for a machine with `NxACCELERATOR`, such as 8xH200, instead of this one"}
}

// overrideRunner replaces the runner of the file by that of the flag.
func overrideRunner(c *cli.Context, camp *profiler.Campaign) error {
	name, source, _ := strings.Cut(c.String("runner"), ":")
	switch {
	case name == "":
		return nil
	case name == profiler.RunnerReplay && source != "":
		camp.Runner.Source = source
	case name == profiler.RunnerReplay:
		return fail.Usagef("%s: --runner replay needs the source of the stored rows, such as replay:rubick", c.Command.Name)
	case name != profiler.RunnerTorchrun && name != profiler.RunnerSynthetic || source != "":
		return fail.Usagef("%s: --runner %q is not torchrun, synthetic or replay:SOURCE", c.Command.Name, c.String("runner"))
	case camp.Space.Measured:
		return fail.Usagef("%s: campaign %s measures what a table has, --runner %s has none", c.Command.Name, camp.Name, name)
	}
	camp.Runner.Name = name
	return nil
}

// rowSource reads stored rows.
type rowSource func(store.Filter) ([]spec.Measurement, error)

// stored reads the rows of a store that is not open.
func stored(c *cli.Context) rowSource {
	return func(f store.Filter) ([]spec.Measurement, error) { return dataDir(c).Rows(c.Context, f) }
}

// newMeasurementSetup returns the set-up of camp. With dry set nothing will be measured: any
// machine may be assumed, and set-up may be incomplete.
func newMeasurementSetup(c *cli.Context, camp profiler.Campaign, rows rowSource, dry bool) (measurementSetup, error) {
	timing := runner.SimulatedTiming{Noise: camp.Runner.Noise, Delay: camp.Runner.Delay, Seed: command.Seed(c)}
	switch {
	case camp.Runner.Name == profiler.RunnerReplay:
		return replaySetup(c, camp, rows, timing)
	case camp.Runner.Name == profiler.RunnerSynthetic:
		return syntheticSetup(c, camp, timing)
	case c.String("assume") == "":
		return torchSetup(c, camp, dry)
	case !dry:
		return measurementSetup{}, fail.Usagef("%s: --assume %s is for the synthetic runner; torchrun measures this machine", c.Command.Name, c.String("assume"))
	}
	m, err := assumedMachine(c)
	if err != nil {
		return measurementSetup{}, err
	}
	m.Lacks = lacksIn(assumedTorch(), m, camp)
	m, err = withDevices(c, m)
	return measurementSetup{machine: m, assumed: true}, err
}

// replaySetup answers from stored rows; the machine is that of the rows.
func replaySetup(c *cli.Context, camp profiler.Campaign, rows rowSource, timing runner.SimulatedTiming) (measurementSetup, error) {
	if camp.Runner.Source == camp.Source() {
		return measurementSetup{}, fail.Usagef("profile: campaign %s cannot replay what it stores itself: the source is %s", camp.Name, camp.Runner.Source)
	}
	table, err := rows(store.Filter{Sources: []string{camp.Runner.Source}})
	if err != nil {
		return measurementSetup{}, err
	}
	if len(table) == 0 {
		return measurementSetup{}, fail.NoAnswerf("profile: campaign %s replays source %s, of which the store has no rows: import them first, pacer import --help",
			camp.Name, camp.Runner.Source)
	}
	m, err := withDevices(c, machineOf(table))
	return measurementSetup{machine: m, runner: runner.NewReplay(table, timing), assumed: true, notes: []string{
		"replayed rows are stored as campaign rows: keep them apart with --data DIR if they should not be fitted with what they repeat"}}, err
}

// machineOf returns the machine of rows; a property is set if all rows agree.
func machineOf(rows []spec.Measurement) profiler.Machine {
	m := profiler.Machine{
		Accelerator: query.Common(rows, func(c spec.Config) spec.Accelerator { return c.Accelerator }),
		Link:        query.Common(rows, func(c spec.Config) spec.Link { return c.Link }),
		Framework:   query.Common(rows, func(c spec.Config) string { return c.Framework }),
	}
	for _, r := range rows {
		total, _, most, _ := r.Config.Shape.Stats()
		m.PerNode = max(m.PerNode, most)
		for len(m.Devices) < total {
			m.Devices = append(m.Devices, len(m.Devices))
		}
	}
	m.CPUs = m.PerNode * query.Common(rows, func(c spec.Config) int { return c.Shape.CPUs / max(c.Shape.Total(), 1) })
	return m
}

// syntheticSetup generates step times, for an assumed machine unless the campaign names none.
func syntheticSetup(c *cli.Context, camp profiler.Campaign, timing runner.SimulatedTiming) (measurementSetup, error) {
	s := measurementSetup{assumed: true, notes: []string{"the synthetic runner invents its step times: keep them apart with --data DIR"}}
	truth, err := query.Analytic()
	if err != nil {
		return s, err
	}
	s.runner = &runner.Synthetic{Truth: truth, Timing: timing}
	switch {
	case c.String("assume") != "":
		s.machine, err = assumedMachine(c)
	case camp.Space.Accelerator != "" && camp.Space.Accelerator != profiler.AnyGPU:
		s.machine, err = assumed(camp.Space.Accelerator, 0)
	default:
		var notes []string
		s.machine, _, notes, err = thisMachine(c, camp)
		s.notes = append(s.notes, notes...)
	}
	if err != nil {
		return s, err
	}
	s.machine.Framework = "synthetic"
	s.machine, err = withDevices(c, s.machine)
	return s, err
}

// assumedMachine returns the machine of --assume.
func assumedMachine(c *cli.Context) (profiler.Machine, error) {
	text := c.String("assume")
	var n int
	count, name, ok := strings.Cut(text, "x")
	if _, err := fmt.Sscanf(count+"\n", "%d\n", &n); err != nil || !ok || name == "" || n < 1 || n > 1024 {
		return profiler.Machine{}, fail.Usagef("%s: --assume %q is not NxACCELERATOR with N in 1..1024, such as 8xH200", c.Command.Name, text)
	}
	return assumed(name, n)
}

// assumed returns n devices of an accelerator of the catalog, 0 = as many as its
// usual node has, with that node's share of everything else.
func assumed(accelerator string, n int) (profiler.Machine, error) {
	a, err := catalog.Accelerator(accelerator)
	if err != nil {
		return profiler.Machine{}, err
	}
	node := query.NodeOf(a)
	n = cmp.Or(n, node.Devices)
	cl, err := catalog.Cluster(fmt.Sprintf("1x%dx%s", n, a.Name))
	if err != nil {
		return profiler.Machine{}, err
	}
	g := cl.Groups[0]
	m := profiler.Machine{Accelerator: a, PerNode: n, CPUs: g.CPUs, HostBytes: g.HostBytes, Link: g.Link, Framework: spec.FrameworkWorker}
	for i := range n {
		m.Devices = append(m.Devices, i)
	}
	return m, nil
}

// withDevices leaves m those of its devices that --devices names.
func withDevices(c *cli.Context, m profiler.Machine) (profiler.Machine, error) {
	want, err := []int(nil), error(nil)
	if !m.CPU || c.String("devices") != cpuDevices {
		want, err = deviceIndices(c)
	}
	if err != nil || want == nil {
		return m, err
	}
	for i, d := range want {
		if !slices.Contains(m.Devices, d) {
			return m, fail.Usagef("%s: --devices %q: there is no device %d, there are %v", c.Command.Name, c.String("devices"), d, m.Devices)
		}
		if slices.Contains(want[:i], d) {
			return m, fail.Usagef("%s: --devices %q names device %d twice", c.Command.Name, c.String("devices"), d)
		}
	}
	m.Devices = want
	return m, nil
}

// points returns the points of camp here, and what cannot be run.
func (s *measurementSetup) points(camp profiler.Campaign) ([]profiler.Point, []profiler.Rejected, error) {
	if t, ok := s.runner.(profiler.Tabled); ok {
		s.machine.Configs = t.Configs()
	}
	points, rejected, err := camp.Points(s.machine)
	if s.count = len(points); s.count == 0 {
		for i := range rejected {
			rejected[i].UnusedValue = "" // without any point every value is unused
		}
	}
	if err != nil {
		want := camp.Space.Accelerator
		if want == profiler.AnyGPU && s.machine.CPU {
			want = "H100" // for one
		}
		if !s.assumed && want != "" && want != profiler.AnyGPU && want != s.machine.Accelerator.Name {
			err = errors.Join(err, fmt.Errorf("profile: --assume 8x%s plans for such a machine without one", want))
		}
		err = fail.WithCode(fail.NoAnswer, err)
	}
	return points, rejected, err
}

// printNotes says what should be known of s beforehand.
func (s measurementSetup) printNotes(w io.Writer) {
	for _, note := range s.notes {
		fmt.Fprintln(w, "note:", note)
	}
}

// String says what s is in a line: "2 x CPU ... (pacer-torch, torch 1.13.0a0)".
func (s measurementSetup) String() string {
	m := s.machine
	var about []string
	if m.Framework != "" {
		about = append(about, m.Framework)
	}
	if v := m.Env["torch"]; v != "" {
		about = append(about, "torch "+v)
	}
	if v := m.Env["driver"]; v != "" {
		about = append(about, "driver "+v)
	}
	if s.assumed {
		about = append(about, "assumed")
	}
	name := cmp.Or(m.Accelerator.Name, "several accelerators")
	return fmt.Sprintf("%d x %s (%s)", len(m.Devices), name, strings.Join(about, ", "))
}

// setupJSON is the machine in JSON.
type setupJSON struct {
	Accelerator string            `json:"accelerator"`
	Devices     []int             `json:"devices"`
	PerNode     int               `json:"per_node"`
	MemGiB      float64           `json:"mem_gib"` // of a device
	CPUs        int               `json:"cpus"`
	HostGiB     float64           `json:"host_gib"`
	Framework   string            `json:"framework"`
	Env         map[string]string `json:"env"`
	Assumed     bool              `json:"assumed"`
}

func (s measurementSetup) describe() setupJSON {
	m := s.machine
	j := setupJSON{m.Accelerator.Name, m.Devices, m.PerNode, m.Accelerator.MemBytes / memory.GiB, m.CPUs, m.HostBytes / memory.GiB,
		m.Framework, m.Env, s.assumed}
	if j.Devices == nil {
		j.Devices = []int{}
	}
	if j.Env == nil {
		j.Env = map[string]string{}
	}
	return j
}
