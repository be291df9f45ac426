package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/runner"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Setup is a machine and the runner that measures its points.
type Setup struct {
	Machine profiler.Machine
	Runner  profiler.Runner
	Assumed bool // nothing is measured on a real machine
	Notes   []string
	Count   int // points of the campaign, set by Points
	close   func()
	check   func([]profiler.Point) error // nil = none
}

// newSetup returns the set-up of camp. A dry one may assume any machine and be incomplete.
func newSetup(ctx context.Context, camp profiler.Campaign, o Options, rows RowSource) (Setup, error) {
	timing := runner.SimulatedTiming{Noise: camp.Runner.Noise, Delay: camp.Runner.Delay, Seed: o.Seed}
	switch {
	case camp.Runner.Name == profiler.RunnerReplay:
		return o.replaySetup(ctx, camp, rows, timing)
	case camp.Runner.Name == profiler.RunnerSynthetic:
		return o.syntheticSetup(ctx, camp, timing)
	case o.Cluster != nil && o.Assume == "":
		return o.clusterSetup(ctx, camp)
	case o.Cluster != nil:
		return Setup{}, badField("assume", o.Assume, "conflicts with --on")
	case o.Assume == "" && o.Nodes > 1:
		return Setup{}, badField("nodes", strconv.Itoa(o.Nodes), "needs the nodes: --on slurm, or --on ssh --hosts node1,node2; to plan, --assume 8xH100")
	case o.Assume == "" && camp.Runner.Name == profiler.RunnerCommand:
		return o.commandSetup(ctx, camp)
	case o.Assume == "":
		return o.torchSetup(ctx, camp)
	case !o.Dry:
		return Setup{}, badField("assume", o.Assume, "is for the synthetic runner; %s measures this machine", cmp.Or(camp.Runner.Name, profiler.RunnerTorchrun))
	}
	m, err := o.assumedMachine()
	if err != nil {
		return Setup{}, err
	}
	o.addNodes(&m)
	if camp.Runner.Name == profiler.RunnerCommand {
		s := Setup{Assumed: true}
		if err = s.useCommand(m, camp, runner.CommandOptions{}); err == nil {
			s.Machine, err = o.withDevices(s.Machine)
		}
		return s, err
	}
	m.Lacks = lacksIn(assumedTorch(), m, camp)
	m, err = o.withDevices(m)
	return Setup{Machine: m, Assumed: true}, err
}

// replaySetup answers from stored rows; the machine is that of the rows.
func (o *Options) replaySetup(ctx context.Context, camp profiler.Campaign, rows RowSource, timing runner.SimulatedTiming) (Setup, error) {
	if camp.Runner.Source == camp.Source() {
		return Setup{}, fail.Usagef("profile: campaign %s cannot replay what it stores itself: the source is %s", camp.Name, camp.Runner.Source)
	}
	table, err := rows(ctx, store.Filter{Sources: []string{camp.Runner.Source}})
	if err != nil {
		return Setup{}, err
	}
	if len(table) == 0 {
		return Setup{}, fail.NoAnswerf("profile: campaign %s replays source %s, but the store has no rows of it: import them first, pacer import --help",
			camp.Name, camp.Runner.Source)
	}
	m, err := o.withDevices(machineOf(table))
	return Setup{Machine: m, Runner: runner.NewReplay(table, timing), Assumed: true, Notes: []string{
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
func (o *Options) syntheticSetup(ctx context.Context, camp profiler.Campaign, timing runner.SimulatedTiming) (Setup, error) {
	s := Setup{Assumed: true, Notes: []string{"the synthetic runner invents its step times: keep them apart with --data DIR"}}
	truth, err := query.Analytic()
	if err != nil {
		return s, err
	}
	s.Runner = &runner.Synthetic{Truth: truth, Timing: timing}
	switch {
	case o.Assume != "":
		s.Machine, err = o.assumedMachine()
	case camp.Space.Accelerator != "" && camp.Space.Accelerator != profiler.AnyGPU:
		s.Machine, err = assumed(camp.Space.Accelerator, 0)
	default:
		var notes []string
		s.Machine, _, notes, err = o.thisMachine(ctx, camp)
		s.Notes = append(s.Notes, notes...)
	}
	if err != nil {
		return s, err
	}
	s.Machine.Framework = "synthetic"
	o.addNodes(&s.Machine)
	s.Machine, err = o.withDevices(s.Machine)
	return s, err
}

// assumedMachine returns the machine of --assume.
func (o *Options) assumedMachine() (profiler.Machine, error) {
	text := o.Assume
	var n int
	count, name, ok := strings.Cut(text, "x")
	if _, err := fmt.Sscanf(count+"\n", "%d\n", &n); err != nil || !ok || name == "" || n < 1 || n > 1024 {
		return profiler.Machine{}, badField("assume", text, "is not NxACCELERATOR with N in 1..1024, such as 8xH200")
	}
	return assumed(name, n)
}

// assumed returns n devices of an accelerator of the catalog, 0 = as many as its
// usual node has, with that node's share of everything else.
func assumed(accelerator string, n int) (profiler.Machine, error) {
	a, err := catalog.AcceleratorOf(accelerator)
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
func (o *Options) withDevices(m profiler.Machine) (profiler.Machine, error) {
	want, err := []int(nil), error(nil)
	if !m.CPU || o.Devices != cpuDevices {
		want, err = o.deviceIndices()
	}
	if err != nil || want == nil {
		return m, err
	}
	for i, d := range want {
		if !slices.Contains(m.Devices, d) {
			return m, badField("devices", o.Devices, ": no device %d, want one of %v", d, m.Devices)
		}
		if slices.Contains(want[:i], d) {
			return m, badField("devices", o.Devices, "names device %d twice", d)
		}
	}
	m.Devices = want
	return m, nil
}

// points returns the points of camp here, and what cannot be run.
func (s *Setup) points(camp profiler.Campaign) ([]profiler.Point, []profiler.Rejected, error) {
	if t, ok := s.Runner.(profiler.Tabled); ok {
		s.Machine.Configs = t.Configs()
	}
	points, rejected, err := camp.Points(s.Machine)
	if s.check != nil && err == nil {
		if err = s.check(points); err != nil {
			return points, rejected, fail.WithCode(fail.Usage, err)
		}
	}
	if s.Count = len(points); s.Count == 0 {
		for i := range rejected {
			rejected[i].UnusedValue = "" // without any point every value is unused
		}
	}
	if err != nil {
		want := camp.Space.Accelerator
		if want == profiler.AnyGPU && s.Machine.CPU {
			want = "H100" // for one
		}
		if !s.Assumed && want != "" && want != profiler.AnyGPU && want != s.Machine.Accelerator.Name {
			err = errors.Join(err, fmt.Errorf("profile: --assume 8x%s plans for such a machine without one", want))
		}
		err = fail.WithCode(fail.NoAnswer, err)
	}
	return points, rejected, err
}

// PrintNotes prints remarks about the set-up.
func (s *Setup) PrintNotes(w io.Writer) {
	for _, note := range s.Notes {
		fmt.Fprintln(w, "note:", note)
	}
}

// String says what s is in a line: "2 x CPU ... (pacer-torch, torch 1.13.0a0)".
func (s *Setup) String() string {
	m := s.Machine
	var about []string
	if m.Framework != "" {
		about = append(about, m.Framework)
	}
	if v := m.Env[profiler.EnvTorch]; v != "" {
		about = append(about, "torch "+v)
	}
	if v := m.Env[profiler.EnvDriver]; v != "" {
		about = append(about, "driver "+v)
	}
	if m.Env[profiler.EnvCommand] != "" {
		about = append(about, "your command")
	}
	if s.Assumed {
		about = append(about, "assumed")
	}
	name := cmp.Or(m.Accelerator.Name, "several accelerators")
	return fmt.Sprintf("%d x %s (%s)", len(m.Devices), name, strings.Join(about, ", "))
}

// SetupJSON is the machine in JSON.
type SetupJSON struct {
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

func (s *Setup) JSON() SetupJSON {
	m := s.Machine
	j := SetupJSON{m.Accelerator.Name, m.Devices, m.PerNode, m.Accelerator.MemBytes / memory.GiB, m.CPUs, m.HostBytes / memory.GiB,
		m.Framework, m.Env, s.Assumed}
	if j.Devices == nil {
		j.Devices = []int{}
	}
	if j.Env == nil {
		j.Env = map[string]string{}
	}
	return j
}
