package planner_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/memory"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
)

// speeds predicts the samples/s of plans, with an interval of e to the power of
// +-width.
func speeds(width float64, of map[string]float64) predictor {
	return func(c spec.Config) (spec.Prediction, error) {
		thr, ok := of[c.Plan.String()]
		if !ok {
			return spec.Prediction{}, perfmodel.ErrNotCovered
		}
		return spec.Prediction{Throughput: thr, Lo: thr * math.Exp(-width), Hi: thr * math.Exp(width)}, nil
	}
}

func config(t testing.TB, plan, shape string) spec.Config {
	p, err := spec.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	m := testModel(4, 256, 4)
	m.ParamCount = 1e9
	return spec.Config{Model: m, Accelerator: testAccelerator(80), Plan: p, Shape: spec.Shape{Devices: shape},
		Link: spec.Link{IntraBps: 1e11, InterBps: 1e10}}
}

func TestMigrate(t *testing.T) {
	of := map[string]float64{"dp=1,tp=1,pp=1,mb=1,ga=4": 10, "dp=2,tp=1,pp=1,mb=1,ga=2": 20}
	pl := planner.New(speeds(0, of), planner.Options{})
	mv := planner.Move{From: config(t, "ga=4", "1"), To: config(t, "dp=2,ga=2", "2"), RemainingSamples: 1000}
	got, err := pl.Migrate(ctx, mv)
	if err != nil {
		t.Fatal(err)
	}
	// 14 GB saved and loaded at 2 GB/s, 30 s of restart: 44 s against 50 s gained.
	if got.StateBytes != 14e9 || !near(got.CostSec, 44) || !near(got.StaySec, 100) || !near(got.GoSec, 94) || !got.Worth || got.Probability != 1 {
		t.Errorf("%+v", got)
	}
	if !near(got.BreakEvenSamples, 880) {
		t.Errorf("pays from %g samples, want 880", got.BreakEvenSamples)
	}
	mv.RemainingSamples = got.BreakEvenSamples * 0.99
	if got, _ := pl.Migrate(ctx, mv); got.Worth {
		t.Errorf("worth it below the break-even: %+v", got)
	}
	mv.RemainingSamples, mv.Costs.InPlace = 1000, true
	got, err = pl.Migrate(ctx, mv)
	// The first device has everything, the second nothing: 14 GB at 100 GB/s.
	if err != nil || !near(got.MovedBytes, 14e9) || !near(got.CostSec, 30.14) {
		t.Errorf("in place: %+v, %v", got, err)
	}
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Abs(want) }

// A device does not receive what it already holds. An unchanged plan moves nothing on
// the same devices and everything on others.
func TestMigrateBytes(t *testing.T) {
	const gb = 1e9
	for _, c := range []struct {
		from, to string
		moved    bool
		want     float64
	}{
		{"dp=4,mb=1", "dp=4,mb=1", false, 0},
		{"dp=4,mb=1", "dp=4,mb=1", true, 4 * 14 * gb},
		{"dp=4,mb=1", "tp=4,mb=4", false, 0}, // each has all, needs a quarter
		{"tp=4,mb=4", "dp=4,mb=1", false, 4 * 14 * gb * 3 / 4},
		{"dp=4,mb=1,zero=1", "dp=4,mb=1", false, 4 * 12 * gb * 3 / 4},
		{"dp=4,mb=1,zero=3", "dp=4,mb=1,zero=1", false, 4 * 2 * gb * 3 / 4},
		{"dp=2,tp=2,mb=2", "dp=4,mb=1", false, 4 * 14 * gb / 2},
		{"pp=4,mb=4", "pp=2,tp=2,mb=4", false, 14 * gb / 2},
		{"pp=2,dp=2,ga=2,mb=1", "pp=2,dp=2,vp=2,ga=2,mb=1", false, 14 * gb}, // each stage gives a layer of two away
		{"dp=4,mb=1,zero=1,precision=tf32", "dp=4,mb=1,precision=tf32", false, 4 * 12 * gb * 3 / 4},
	} {
		of := map[string]float64{}
		from, to := config(t, c.from, "4"), config(t, c.to, "4")
		of[from.Plan.String()], of[to.Plan.String()] = 1, 2
		got, err := planner.New(speeds(0, of), planner.Options{}).Migrate(ctx, planner.Move{From: from, To: to, RemainingSamples: 1, Moved: c.moved})
		if err != nil || math.Abs(got.MovedBytes-c.want) > 1 {
			t.Errorf("%s -> %s: %g GB, want %g (%v)", c.from, c.to, got.MovedBytes/gb, c.want/gb, err)
		}
	}
}

// mixture is a model of 4 layers with 8 experts each, and the experts' share of its
// parameters.
func mixture() (m spec.Model, routed float64) {
	m = spec.Model{Name: "moe", Kind: spec.Decoder, Layers: 4, Hidden: 32, Heads: 4, Vocab: 100, SeqLen: 64, TiedEmbeddings: true,
		Experts: 8, ExpertsPerToken: 2, ExpertFFN: 64}
	routed = 4 * 8 * 2 * 32 * 64 / m.Params() // two matrices each
	m.ParamCount = 1e9
	return m, routed
}

// movedBytes is the bytes that all devices of a mixture receive between two plans.
func movedBytes(t *testing.T, from, to string) float64 {
	t.Helper()
	mv := planner.Move{From: config(t, from, "8"), To: config(t, to, "8"), RemainingSamples: 1}
	mv.From.Model, _ = mixture()
	mv.To.Model = mv.From.Model
	return mv.Price().MovedBytes
}

// Experts move where the rank of a device in its expert parallel group changes; the
// rest of the model stays.
func TestMigrateExperts(t *testing.T) {
	_, routed := mixture()
	for _, c := range []struct {
		from, to string
		moved    float64 // how often all experts
	}{
		{"dp=4", "dp=4,ep=4", 0},                              // each has all, needs a quarter
		{"dp=4,ep=4", "dp=4", 4 * 3. / 4},                     // each has a quarter
		{"dp=4,ep=4", "dp=4,ep=2", 1./4 + 1./2 + 1./2 + 1./4}, // the quarters 0 1 2 3, then 01 23 01 23
		{"dp=4,ep=2", "dp=4,ep=4", 0 + 1./4 + 1./4 + 0},       // 01 23 01 23, then 0 1 2 3
		{"tp=4", "tp=4,ep=4", 4 * (1./4 - 1./16)},             // a quarter of each, then each of a quarter
		{"tp=4,ep=2", "tp=4", 1./8 + 1./4 + 1./4 + 1./8},      // half of half of them, then a quarter of each: for 0 and 3 of that half
		{"dp=2,tp=2", "dp=2,tp=2,ep=4", 4 * (1./4 - 1./8)},    // half of each, then each of a quarter
		{"dp=2,pp=2,ep=2", "dp=2,pp=2", 4 * (1./2 - 1./4)},    // of the half on a stage
		{"dp=4,ep=4,zero=1", "dp=4,ep=4,zero=1,shard=2", 0},   // no other rank has the same
	} {
		want := 14e9 * routed * c.moved
		if strings.Contains(c.to, "shard") { // the dense part is cut in two and no longer in four
			want += 12e9 * (1 - routed) * (1./4 + 1./2 + 1./2 + 1./4)
		}
		if got := movedBytes(t, c.from, c.to); math.Abs(got-want) > 1 {
			t.Errorf("%s -> %s: %g GB, want %g", c.from, c.to, got/1e9, want/1e9)
		}
	}
}

// The bytes moved equal a count of single parameters: each device needs those of its
// ranks and receives those it does not hold.
func TestMigrateCountsParameters(t *testing.T) {
	_, routed := mixture()
	plans := []string{"dp=8", "dp=8,ep=8", "dp=8,ep=2,zero=1", "dp=8,ep=4,zero=3", "dp=8,ep=2,zero=1,shard=4", "dp=2,tp=4", "dp=2,tp=4,ep=2",
		"dp=2,tp=4,ep=8,zero=1", "dp=4,tp=2,ep=4,zero=1", "dp=4,pp=2,ep=4", "dp=2,tp=2,pp=2,ep=2,zero=3", "dp=4,cp=2,ep=8", "tp=2,pp=4,ep=2", "dp=4,ep=4"}
	for _, f := range plans {
		for _, g := range plans {
			from, to := config(t, f, "8").Plan.Normal(), config(t, g, "8").Plan.Normal()
			want := 0.0
			for r := range to.Devices() {
				want += lacks(&from, &to, r, routed)
			}
			if got := movedBytes(t, f, g); math.Abs(got-1e9*want) > 1 {
				t.Errorf("%s -> %s: %g GB, want %g", f, g, got/1e9, want)
			}
		}
	}
}

// lacks returns the bytes per parameter of a mixture that rank r needs under one plan
// and does not hold under another. Each of 4 layers is a grid of 8 columns in 8
// pieces, which ZeRO splits, and 8 such grids for the experts.
func lacks(from, to *spec.Plan, r int, routed float64) (bytes float64) {
	for i := range 4 * 9 * 8 * 8 {
		layer, expert, column, piece := i/(9*8*8), i/(8*8)%9-1, i/8%8, i%8 // expert -1 is the dense part
		share := (1 - routed) / (4 * 8 * 8)
		if expert >= 0 {
			share = routed / (4 * 8 * 8 * 8)
		}
		for _, state := range []struct {
			bytes float64
			zero  int // stage from which it is cut
		}{{12, 1}, {2, 3}} {
			if has(to, r, layer, expert, column, piece, to.ZeRO >= state.zero) && !has(from, r, layer, expert, column, piece, from.ZeRO >= state.zero) {
				bytes += state.bytes * share
			}
		}
	}
	return bytes
}

// has reports whether rank r of p has a piece of the grid.
func has(p *spec.Plan, r, layer, expert, column, piece int, sharded bool) bool {
	stage := p.TP * p.CP * p.DP
	if r >= p.Devices() || layer/(4/p.PP) != r/stage {
		return false
	}
	if !place(p, r, expert, column) {
		return false
	}
	if !sharded {
		return true
	}
	// ZeRO splits the pieces over the ranks of its group with the column.
	group := p.Shards() * p.TP
	alike, me := 0, 0
	for other := r / group * group; other < (r/group+1)*group; other++ {
		if place(p, other, expert, column) {
			if other == r {
				me = alike
			}
			alike++
		}
	}
	return piece/(8/alike) == me
}

// place reports whether rank r of p computes with a column of an expert; expert -1 is
// the dense part.
func place(p *spec.Plan, r, expert, column int) bool {
	switch {
	case expert < 0:
		return column/(8/p.TP) == r%p.TP
	case p.EP >= p.TP: // whole experts, dealt to the ranks of each EP in turn
		return expert/(8/p.EP) == r%p.EP
	}
	each := p.TP / p.EP // of a tensor parallel group have the same experts
	return expert/(8/p.EP) == r%p.TP/each && column/(8/each) == r%each
}

func TestMigrateProbability(t *testing.T) {
	of := map[string]float64{"dp=1,tp=1,pp=1,mb=1,ga=4": 10, "dp=2,tp=1,pp=1,mb=1,ga=2": 12}
	mv := planner.Move{From: config(t, "ga=4", "1"), To: config(t, "dp=2,ga=2", "2"), RemainingSamples: 1e6}
	last := 1.1
	for _, width := range []float64{0, 0.1, 0.5, 1} {
		got, err := planner.New(speeds(width, of), planner.Options{}).Migrate(ctx, mv)
		if err != nil || !(got.Probability < last) || !(got.Probability > 0.5) {
			t.Errorf("width %g: probability %g, want one in (0.5, %g): %v", width, got.Probability, last, err)
		}
		last = got.Probability
	}
}

func TestMigrateRefuses(t *testing.T) {
	pl := planner.New(speeds(0, nil), planner.Options{})
	good := planner.Move{From: config(t, "ga=4", "1"), To: config(t, "dp=2,ga=2", "2"), RemainingSamples: 1}
	for _, c := range []struct {
		want   string
		change func(*planner.Move)
	}{
		{"NaN remaining samples", func(m *planner.Move) { m.RemainingSamples = math.NaN() }},
		{"restart of -1 s", func(m *planner.Move) { m.Costs.RestartSec = -1 }},
		{"is none", func(m *planner.Move) { m.To.Model.Name = "other" }},
		{"degree or count", func(m *planner.Move) { m.To.Plan.DP = -2 }},
	} {
		m := good
		c.change(&m)
		if _, err := pl.Migrate(ctx, m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error with %q", err, c.want)
		}
	}
	if _, err := pl.Migrate(ctx, good); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("a move that cannot be predicted: %v", err)
	}
}

// A job runs as From: only a plan that surely does not fit refutes that. To has to fit surely.
func TestMigrateFromUnsure(t *testing.T) {
	needs := map[string]float64{}
	pl := planner.New(predictor(func(c spec.Config) (spec.Prediction, error) {
		return spec.Prediction{Throughput: 1, Lo: 1, Hi: 1, MemoryBytes: needs[c.Plan.String()] * memory.GiB}, nil
	}), planner.Options{})
	m := planner.Move{From: config(t, "ga=4", "1"), To: config(t, "dp=2,ga=2", "2"), RemainingSamples: 1}
	for _, c := range []struct {
		from, to float64 // GiB of 80
		ok       bool
	}{{10, 10, true}, {75, 10, true}, {10, 75, false}, {500, 10, false}} {
		needs[m.From.Plan.String()], needs[m.To.Plan.String()] = c.from, c.to
		if _, err := pl.Migrate(ctx, m); (err == nil) != c.ok || err != nil && !errors.Is(err, planner.ErrInfeasible) {
			t.Errorf("from %g to %g GiB: %v", c.from, c.to, err)
		}
	}
}

// Errors that both plans share hardly change which is faster.
func TestMigrateProbabilityOfSharedErrors(t *testing.T) {
	of := map[string]float64{"dp=1,tp=1,pp=1,mb=1,ga=4": 10, "dp=2,tp=1,pp=1,mb=1,ga=2": 12}
	mv := planner.Move{From: config(t, "ga=4", "1"), To: config(t, "dp=2,ga=2", "2"), RemainingSamples: 1e6}
	width := 0.2 * 1.6448536269514722 // of the variance alike says
	own, err := planner.New(speeds(width, of), planner.Options{}).Migrate(ctx, mv)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := planner.New(alike{speeds(width, of)}, planner.Options{}).Migrate(ctx, mv)
	if err != nil || !(shared.Probability > 0.99) || !(own.Probability < 0.9) {
		t.Errorf("probability %g with one error, %g with two (%v)", shared.Probability, own.Probability, err)
	}
	mv.To = config(t, "dp=99,ga=2", "")
	if _, err := planner.New(speeds(0, of), planner.Options{}).Migrate(ctx, mv); err == nil {
		t.Error("a plan without a prediction is accepted")
	}
}
