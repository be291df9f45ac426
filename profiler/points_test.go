package profiler

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func mustPoints(t testing.TB, c Campaign, m Machine) ([]Point, []Rejected) {
	t.Helper()
	points, rejected, err := c.Points(m)
	if err != nil {
		t.Fatal(err)
	}
	return points, rejected
}

func plansOf(points []Point) []string {
	out := make([]string, len(points))
	for i, p := range points {
		out[i] = p.Config.Plan.String()
	}
	return out
}

func TestPointsOfADefaultSpace(t *testing.T) {
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}}
	points, rejected, err := c.Points(cpuMachine(2))
	if err != nil || len(rejected) != 0 || len(points) != 1 {
		t.Fatalf("%v, %v, %v; want one point", points, rejected, err)
	}
	m := cpuMachine(2)
	want := spec.Config{
		Model: tinyModel("a", 4), SeqLen: 64, Accelerator: m.Accelerator, Link: m.Link, Framework: "pacer-torch",
		Plan:  spec.Plan{Precision: spec.FP32}.Normal(),
		Shape: spec.Shape{Devices: "1", CPUs: 1},
	}
	if points[0].Config != want {
		t.Errorf("%+v\nwant %+v", points[0].Config, want)
	}
}

// TestDefaultPrecision: fp32 on CPUs, regardless of the formats they can convert; elsewhere the accelerator's
// default.
func TestDefaultPrecision(t *testing.T) {
	m := cpuMachine(1)
	m.Accelerator.BF16 = 1e10
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}}
	for _, cpu := range []bool{true, false} {
		m.CPU = cpu
		points, _, err := c.Points(m)
		want := spec.BF16
		if cpu {
			want = spec.FP32
		}
		if err != nil || points[0].Config.Plan.Precision != want {
			t.Errorf("CPU %v: %s, %v; want %s", cpu, points[0].Config.Plan, err, want)
		}
	}
}

// TestPointsOfAProduct compares with a count by hand. On 2 devices tp=2 leaves 1 replica, so ZeRO has nothing
// to shard; on 1 device tp=2 does not fit.
func TestPointsOfAProduct(t *testing.T) {
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{
		Shapes: []spec.Shape{spec.NewShape(1), spec.NewShape(2)}, TP: []int{1, 2}, ZeRO: []int{0, 1}, MicroBatch: []int{2},
		Plans: []spec.Plan{{DP: 2, MicroBatch: 2}, {PP: 2, MicroBatch: 3}}, // the first plan is in the product too
	}}
	points, rejected := mustPoints(t, c, cpuMachine(2))
	want := []string{
		"dp=1,tp=1,pp=1,mb=2,ga=1,precision=fp32",
		"dp=1,tp=1,pp=2,mb=3,ga=1,precision=fp32", "dp=1,tp=2,pp=1,mb=2,ga=1,precision=fp32",
		"dp=2,tp=1,pp=1,mb=2,ga=1,precision=fp32", "dp=2,tp=1,pp=1,mb=2,ga=1,zero=1,precision=fp32",
	}
	if got := plansOf(points); !slices.Equal(got, want) {
		t.Errorf("points %q\nwant %q", got, want)
	}
	groups := map[Group]int{}
	for _, r := range rejected {
		groups[r.Group]++
		if r.UnusedValue != "" {
			t.Errorf("%s, unused value, is in a point", r.UnusedValue)
		}
	}
	if want := map[Group]int{ForDevices: 2, ForDuplicate: 2}; !maps.Equal(groups, want) {
		t.Errorf("rejected %v, want %v: %+v", groups, want, rejected)
	}
}

// TestUnusedValues: values that no point has are distinguished from combinations that only arise from the
// product.
func TestUnusedValues(t *testing.T) {
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{
		Shapes: []spec.Shape{spec.NewShape(2), spec.NewShape(8), spec.NewShape(1, 1)}, TP: []int{1, 2}, SP: []bool{false, true},
		Offload: []spec.Offload{spec.OffloadNone, spec.OffloadParams}, Precision: []spec.Precision{spec.FP32, spec.FP8},
	}}
	points, rejected, err := c.Points(cpuMachine(2))
	if err != nil || len(points) != 3 {
		t.Fatalf("%d points, %v; want dp=2, tp=2 and tp=2 with sp", len(points), err)
	}
	why := map[string]string{}
	for _, r := range rejected {
		why[r.UnusedValue] = r.Why
	}
	for asked, want := range map[string]string{
		"shape=8": "needs 8 devices, this machine has 2", "shape=2x1": "has 2 nodes, this machine is one",
		"offload=params": "offload=params needs zero=3", "precision=fp8": "TestCPU has no fp8, only fp32", "": "a: sp=1 needs tp > 1",
	} {
		if !strings.Contains(why[asked], want) {
			t.Errorf("%q: %q, want %q", asked, why[asked], want)
		}
	}
	if len(why) != 5 {
		t.Errorf("unused values: %v", why)
	}
}

// TestSeveralNodes: points use as many nodes as there are, with equally many devices on each.
func TestSeveralNodes(t *testing.T) {
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{
		Shapes: []spec.Shape{spec.NewShape(2), spec.NewShape(2, 2), spec.NewShape(2, 1), spec.NewShape(1, 1, 1), spec.NewShape(4, 4)}, MicroBatch: []int{1},
	}}
	m := cpuMachine(2)
	m.Nodes = 2
	points, rejected, err := c.Points(m)
	if err != nil || len(points) != 2 || points[1].Config.Shape != (spec.Shape{Devices: "2+2", CPUs: 4}) || points[1].Config.Plan.DP != 4 {
		t.Errorf("%+v, %v; want the shapes 2 and 2+2", points, err)
	}
	why := map[string]string{}
	for _, r := range rejected {
		why[r.Config.Shape.Devices] = r.Why
	}
	for shape, want := range map[string]string{"2+1": "different numbers of devices on its nodes", "1+1+1": "has 3 nodes, a point may use 2", "4+4": "needs 4 devices on a node, nodes have 2"} {
		if !strings.Contains(why[shape], want) {
			t.Errorf("%s: %q, want %q", shape, why[shape], want)
		}
	}
}

func TestImpossiblePlansAreErrors(t *testing.T) {
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{
		Shapes: []spec.Shape{spec.NewShape(2), spec.NewShape(8)},
		Plans:  []spec.Plan{{TP: 2}, {TP: 8}, {DP: 3}, {DP: 2, Precision: spec.FP8}, {PP: 2, ZeRO: 2}},
	}}
	_, _, err := c.Points(cpuMachine(2))
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		"profiler: campaign c: plan dp=1,tp=8,pp=1,mb=1,ga=1: a: tp=8 does not divide 4 heads",
		"profiler: campaign c: plan dp=3,tp=1,pp=1,mb=1,ga=1: no shape has its 3 devices",
		"profiler: campaign c: plan dp=2,tp=1,pp=1,mb=1,ga=1,precision=fp8: TestCPU has no fp8, only fp32",
		"profiler: campaign c: plan dp=1,tp=1,pp=2,mb=1,ga=1,zero=2: a: zero=2 with pp=2",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of\n%v\nwant %s", i, err, want)
		}
	}
	m := cpuMachine(2)
	m.Lacks = func(c spec.Config) string {
		if c.Plan.TP > 1 {
			return "torch 1.0 has no tensor parallel"
		}
		return ""
	}
	c.Space.Plans = c.Space.Plans[:1]
	if _, _, err := c.Points(m); err == nil || !strings.HasSuffix(err.Error(), "torch 1.0 has no tensor parallel") {
		t.Errorf("a plan the stack cannot run: %v", err)
	}
}

// TestHopelessMemory: the product omits points that need 1.5 times the memory; exact plans are tried.
func TestHopelessMemory(t *testing.T) {
	m := cpuMachine(1)
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{MicroBatch: []int{1, 1 << 20}}}
	big, err := memory.Estimate(m.config(c.Models[0], 0, spec.NewShape(1), spec.Plan{MicroBatch: 1 << 20}, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ memory, points float64 }{{big.Total() / 1.6, 1}, {big.Total() / 1.4, 2}, {0, 2}} {
		m.Accelerator.MemBytes = tc.memory
		points, rejected, err := c.Points(m)
		if err != nil || len(points) != int(tc.points) {
			t.Errorf("with %g bytes: %d points, %+v, %v; want %g", tc.memory, len(points), rejected, err, tc.points)
		}
	}
	m.Accelerator.MemBytes = big.Total() / 1.6
	c.Space.Plans = []spec.Plan{{MicroBatch: 1 << 20}}
	if points, rejected, err := c.Points(m); err != nil || len(points) != 2 || len(rejected) != 0 {
		t.Errorf("an exact plan: %d points, %+v, %v; want 2", len(points), rejected, err)
	}
}

// TestHostMemory: offloaded states must fit on the host.
func TestHostMemory(t *testing.T) {
	m := gpuMachine(2, 16)
	c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4)}, Space: Space{
		Shapes: []spec.Shape{spec.NewShape(2)}, ZeRO: []int{1}, Offload: []spec.Offload{spec.OffloadNone, spec.OffloadOptimizer},
	}}
	points, _, err := c.Points(m)
	if err != nil || len(points) != 2 {
		t.Fatalf("%d points, %v; want 2", len(points), err)
	}
	i := slices.IndexFunc(points, func(p Point) bool { return p.Config.Plan.Offload == spec.OffloadOptimizer })
	b, err := memory.Estimate(points[i].Config)
	if err != nil || b.HostBytes <= 0 {
		t.Fatal(b, err)
	}
	for _, tc := range []struct{ host, points float64 }{{1.99 * b.HostBytes, 1}, {2.01 * b.HostBytes, 2}, {0, 2}} {
		m.HostBytes = tc.host
		points, rejected, err := c.Points(m)
		if err != nil || len(points) != int(tc.points) {
			t.Fatalf("%g bytes: %d points, %v; want %g", tc.host, len(points), err, tc.points)
		}
		if len(points) == 1 && (len(rejected) != 1 || rejected[0].Group != ForMemory || !strings.Contains(rejected[0].Why, "of host memory")) {
			t.Errorf("%+v", rejected)
		}
	}
}

func TestPointsErrors(t *testing.T) {
	m := cpuMachine(2)
	a := []spec.Model{tinyModel("a", 4)}
	wide := make([]int, 1001)
	for i := range wide {
		wide[i] = i + 1
	}
	for name, tc := range map[string]struct {
		c    Campaign
		want string
	}{
		"no models":         {Campaign{Name: "c"}, "profiler: campaign c has no models"},
		"other accelerator": {Campaign{Name: "c", Models: a, Space: Space{Accelerator: "H100"}}, "profiler: campaign c is for H100, this machine has TestCPU"},
		"no GPU":            {Campaign{Name: "c", Models: a, Space: Space{Accelerator: AnyGPU}}, "profiler: campaign c needs a GPU (accelerator: gpu), the devices here are TestCPU"},
		"too many":          {Campaign{Name: "c", Models: a, Space: Space{SeqLens: wide, MicroBatch: wide}}, "profiler: campaign c has 1002001 combinations, want at most 1000000"},
		"no table": {Campaign{Name: "c", Space: Space{Measured: true}, Runner: RunnerSpec{Source: "s"}},
			`profiler: campaign c has measured: true, but the table of "s" is empty`},
	} {
		if _, _, err := tc.c.Points(m); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

func TestPointsOfATable(t *testing.T) {
	config := func(model, acc string, mb int) spec.Config {
		return spec.Config{Model: spec.Model{Name: model}, Accelerator: spec.Accelerator{Name: acc}, Plan: spec.Plan{MicroBatch: mb}, Shape: spec.NewShape(1)}
	}
	m := Machine{Configs: []spec.Config{config("b", "x", 1), config("a", "x", 2), config("a", "y", 1), config("a", "x", 1), config("a", "x", 1)}}
	c := Campaign{Name: "c", Space: Space{Measured: true}, Runner: RunnerSpec{Source: "s"}}
	count := func(models []spec.Model, acc string) int {
		c.Models, c.Space.Accelerator = models, acc
		points, rejected, err := c.Points(m)
		if err != nil || len(rejected) != 0 {
			t.Fatal(rejected, err)
		}
		if !slices.IsSortedFunc(points, func(a, b Point) int { return perfmodel.CompareConfigs(a.Config, b.Config) }) {
			t.Error("not in canonical order")
		}
		return len(points)
	}
	a := []spec.Model{{Name: "a"}}
	if all, ofA, onX, both := count(nil, ""), count(a, ""), count(nil, "x"), count(a, "x"); all != 4 || ofA != 3 || onX != 3 || both != 2 {
		t.Errorf("%d in all, %d of a, %d on x, %d of a on x; want 4, 3, 3, 2", all, ofA, onX, both)
	}
	c.Models, c.Space.Accelerator = []spec.Model{{Name: "q"}}, ""
	if _, _, err := c.Points(m); err == nil || !strings.Contains(err.Error(), `the table of "s" has no rows of model q`) {
		t.Errorf("a model the table lacks: %v", err)
	}
	c.Models, c.Space.Accelerator = nil, "z"
	if _, _, err := c.Points(m); err == nil || !strings.Contains(err.Error(), `has no rows on z`) {
		t.Errorf("an accelerator the table lacks: %v", err)
	}
}

// TestPointsOfAnySpace: every combination is a point or rejected, exactly once; points can run and are in
// order.
func TestPointsOfAnySpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ints := func(name string, of ...int) []int {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 3, rapid.ID[int]).Draw(t, name)
		}
		c := Campaign{Name: "c", Models: []spec.Model{tinyModel("a", 4), tinyModel("b", 8)}}
		s := &c.Space
		for _, n := range ints("shapes", 1, 2, 3, 4, 8) {
			s.Shapes = append(s.Shapes, spec.NewShape(n))
		}
		s.TP, s.PP, s.ZeRO = ints("tp", 1, 2, 4), ints("pp", 1, 2, 4), ints("zero", 0, 1, 2, 3)
		s.MicroBatch, s.AccumSteps, s.SeqLens = ints("mb", 1, 2, 1<<22), ints("ga", 1, 3), ints("seq", 64, 65, 128)
		s.SP = rapid.SliceOfNDistinct(rapid.Bool(), 0, 2, rapid.ID[bool]).Draw(t, "sp")
		s.Offload = rapid.SliceOfNDistinct(rapid.SampledFrom([]spec.Offload{"none", "optimizer", "params"}), 0, 3, rapid.ID[spec.Offload]).Draw(t, "offload")
		points, rejected, err := c.Points(cpuMachine(4))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(points) + len(rejected); n != int(s.combinations(2)) {
			t.Fatalf("%d points and rejections of %g combinations", n, s.combinations(2))
		}
		used, seen := map[string]bool{}, map[Identity]bool{}
		for _, p := range points {
			if err := p.Config.Check(); err != nil || p.Config.Shape.Total() > 4 || seen[IdentityOf(p.Config)] {
				t.Fatalf("point %s on %s: %v, twice: %v", p.Config.Plan, p.Config.Shape, err, seen[IdentityOf(p.Config)])
			}
			seen[IdentityOf(p.Config)] = true
			for _, v := range valuesOf(p.Config) {
				used[v] = true
			}
		}
		if !slices.IsSortedFunc(points, func(a, b Point) int { return perfmodel.CompareConfigs(a.Config, b.Config) }) {
			t.Fatal("not in canonical order")
		}
		for _, r := range rejected {
			if r.Why == "" || r.Group == "" || used[r.UnusedValue] {
				t.Fatalf("%+v: unused value %q, which is in a point: %v", r, r.UnusedValue, used[r.UnusedValue])
			}
		}
	})
}
