package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/store"
)

// station is a machine and the way its points are measured.
type station struct {
	machine profiler.Machine
	runner  profiler.Runner
	assumed bool // nothing can be measured, or what is, is invented
	notes   []string
	count   int    // points of the campaign, once asked for
	close   func() // nil = nothing to let go of
}

// machineFlags say where and how a campaign is measured.
func machineFlags() []cli.Flag {
	return []cli.Flag{
		devicesListFlag(),
		&cli.StringFlag{Name: "runner", Usage: "measure by `NAME` instead of the file's: torchrun, synthetic, or replay:SOURCE of stored rows"},
	}
}

func assumeFlag() cli.Flag {
	return &cli.StringFlag{Name: "assume", Usage: "plan for a machine with `NxACCELERATOR`, such as 8xH200, instead of this one"}
}

// overrideRunner puts the runner of the flag in place of the file's.
func overrideRunner(c *cli.Context, camp *profiler.Campaign) error {
	name, source, _ := strings.Cut(c.String("runner"), ":")
	switch {
	case name == "":
		return nil
	case name == profiler.RunnerReplay && source != "":
		camp.Runner.Source = source
	case name == profiler.RunnerReplay:
		return usagef("%s: --runner replay needs the source of the stored rows, such as replay:rubick", c.Command.Name)
	case name != profiler.RunnerTorchrun && name != profiler.RunnerSynthetic || source != "":
		return usagef("%s: --runner %q is not torchrun, synthetic or replay:SOURCE", c.Command.Name, c.String("runner"))
	case camp.Space.Measured:
		return usagef("%s: campaign %s measures what a table has, --runner %s has none", c.Command.Name, camp.Name, name)
	}
	camp.Runner.Name = name
	return nil
}

// rowSource reads stored rows.
type rowSource func(store.Filter) ([]spec.Measurement, error)

// stored reads the rows of a store nobody has opened.
func stored(c *cli.Context) rowSource {
	return func(f store.Filter) ([]spec.Measurement, error) { return storedRows(c, f) }
}

// newStation returns what camp is measured on and by. With dry set nothing need
// be measured: any machine may be assumed, and set-up may be incomplete.
func newStation(c *cli.Context, camp profiler.Campaign, rows rowSource, dry bool) (station, error) {
	play := runner.Play{Noise: camp.Runner.Noise, Delay: camp.Runner.Delay, Seed: seed(c)}
	switch {
	case camp.Runner.Name == profiler.RunnerReplay:
		return replayStation(c, camp, rows, play)
	case camp.Runner.Name == profiler.RunnerSynthetic:
		return syntheticStation(c, camp, play)
	case c.String("assume") == "":
		return torchStation(c, camp, dry)
	case !dry:
		return station{}, usagef("%s: --assume %s is for the synthetic runner; torchrun measures this machine", c.Command.Name, c.String("assume"))
	}
	m, err := assumedMachine(c)
	if err != nil {
		return station{}, err
	}
	m.Lacks = lacksIn(assumedTorch(), m, camp)
	m, err = withDevices(c, m)
	return station{machine: m, assumed: true}, err
}

// replayStation answers from stored rows; the machine is the one they are of.
func replayStation(c *cli.Context, camp profiler.Campaign, rows rowSource, play runner.Play) (station, error) {
	if camp.Runner.Source == camp.Source() {
		return station{}, usagef("profile: campaign %s cannot replay what it stores itself: the source is %s", camp.Name, camp.Runner.Source)
	}
	table, err := rows(store.Filter{Sources: []string{camp.Runner.Source}})
	if err != nil {
		return station{}, err
	}
	if len(table) == 0 {
		return station{}, &exitError{exitNoAnswer, fmt.Errorf("profile: campaign %s replays source %s, of which the store has no rows: import them first, pacer import --help",
			camp.Name, camp.Runner.Source)}
	}
	m, err := withDevices(c, machineOf(table))
	return station{machine: m, runner: runner.NewReplay(table, play), assumed: true, notes: []string{
		"replayed rows are stored as campaign rows: keep them apart with --data DIR if they should not be fitted with what they repeat"}}, err
}

// machineOf returns the machine rows are of, as far as they agree on one.
func machineOf(rows []spec.Measurement) profiler.Machine {
	m := profiler.Machine{
		Accelerator: ask.Common(rows, func(c spec.Config) spec.Accelerator { return c.Accelerator }),
		Link:        ask.Common(rows, func(c spec.Config) spec.Link { return c.Link }),
		Framework:   ask.Common(rows, func(c spec.Config) string { return c.Framework }),
	}
	for _, r := range rows {
		total, _, most, _ := r.Config.Shape.Stats()
		m.PerNode = max(m.PerNode, most)
		for len(m.Devices) < total {
			m.Devices = append(m.Devices, len(m.Devices))
		}
	}
	m.CPUs = m.PerNode * ask.Common(rows, func(c spec.Config) int { return c.Shape.CPUs / max(c.Shape.Total(), 1) })
	return m
}

// syntheticStation invents step times, for a machine that is assumed unless
// the campaign is for none in particular.
func syntheticStation(c *cli.Context, camp profiler.Campaign, play runner.Play) (station, error) {
	s := station{assumed: true, notes: []string{"the synthetic runner invents its step times: keep them apart with --data DIR"}}
	truth, err := ask.Analytic()
	if err != nil {
		return s, err
	}
	s.runner = &runner.Synthetic{Truth: truth, Play: play}
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
		return profiler.Machine{}, usagef("%s: --assume %q is not NxACCELERATOR with N in 1..1024, such as 8xH200", c.Command.Name, text)
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
	node := ask.NodeOf(a)
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
			return m, usagef("%s: --devices %q: there is no device %d, there are %v", c.Command.Name, c.String("devices"), d, m.Devices)
		}
		if slices.Contains(want[:i], d) {
			return m, usagef("%s: --devices %q names device %d twice", c.Command.Name, c.String("devices"), d)
		}
	}
	m.Devices = want
	return m, nil
}

// points returns the points of camp here, and what cannot be run.
func (s *station) points(camp profiler.Campaign) ([]profiler.Point, []profiler.Rejected, error) {
	if t, ok := s.runner.(profiler.Tabled); ok {
		s.machine.Configs = t.Configs()
	}
	points, rejected, err := camp.Points(s.machine)
	if s.count = len(points); s.count == 0 {
		for i := range rejected {
			rejected[i].Asked = "" // everything was asked for in vain
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
		err = &exitError{exitNoAnswer, err}
	}
	return points, rejected, err
}

// printNotes says what should be known of s beforehand.
func (s station) printNotes(w io.Writer) {
	for _, note := range s.notes {
		fmt.Fprintln(w, "note:", note)
	}
}

// String says what s is in a line: "2 x CPU ... (pacer-torch, torch 1.13.0a0)".
func (s station) String() string {
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

// stationJSON is the machine in JSON.
type stationJSON struct {
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

func (s station) describe() stationJSON {
	m := s.machine
	j := stationJSON{m.Accelerator.Name, m.Devices, m.PerNode, m.Accelerator.MemBytes / memory.GiB, m.CPUs, m.HostBytes / memory.GiB,
		m.Framework, m.Env, s.assumed}
	if j.Devices == nil {
		j.Devices = []int{}
	}
	if j.Env == nil {
		j.Env = map[string]string{}
	}
	return j
}
