package scheduling

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/scheduler/policy/builtin"
	"github.com/pacer-ml/pacer/scheduler/report"
)

// near compares figures; expected ones have seven digits.
var near = cmp.Comparer(func(a, b report.Number) bool {
	return a.Defined() == b.Defined() && (!a.Defined() || math.Abs(float64(a-b)) <= 1e-6*math.Abs(float64(a)))
})

// figures are the average completion times of a cell and seed, by policy; 0 is a run that failed.
type figures map[string]float64

// scored has seeds 1 and 2 of cells a and b, and of x10, which is a with all times ten times longer. The 99th
// percentile is the square of the average, the makespan its cube.
func scored() *Result {
	r := &Result{Cells: []Cell{{Name: "a", TimeScale: 2}, {Name: "b"}, {Name: "x10", VariantOf: "a", TimeScale: 20}},
		Policies: []string{"pacer", "las", "themis", "srtf:backfill=false"}, Seeds: []uint64{1, 2}}
	for cell, seeds := range [][]figures{
		{{"pacer": 100, "las": 200, "themis": 150, "srtf:backfill=false": 10}, {"pacer": 50, "las": 50, "themis": 400, "srtf:backfill=false": 50}},
		{{"pacer": 80, "las": 40, "themis": 160, "srtf:backfill=false": 1000}, {"pacer": 90, "las": 0, "themis": 45, "srtf:backfill=false": 1000}},
		{{"pacer": 1500, "las": 1, "themis": 1, "srtf:backfill=false": 1}, {"pacer": 500, "las": 1, "themis": 1, "srtf:backfill=false": 1}},
	} {
		for i, f := range seeds {
			r.add(cell, r.Seeds[i], f)
		}
	}
	rho := func(cell int, policy string, seed uint64, v report.Number) {
		r.run(cell, policy, seed).Summary.MaxRho = v
	}
	rho(0, "pacer", 1, 2)
	rho(0, "pacer", 2, 2)
	rho(0, "themis", 1, 1)
	rho(0, "themis", 2, 4)
	rho(1, "pacer", 1, 3)
	rho(1, "pacer", 2, 3)
	rho(1, "themis", 1, 1)
	rho(1, "themis", 2, 3)
	late := func(cell int, seed uint64, n int, worst report.Number) {
		r.run(cell, "pacer", seed).Summary.LateBackfill = &report.Lateness{Late: n, WorstSec: worst}
	}
	late(0, 1, 2, 100)
	late(1, 1, 1, 300)
	late(1, 2, 0, 0)
	return r
}

func (r *Result) add(cell int, seed uint64, f figures) {
	for _, p := range r.Policies {
		v, ok := f[p]
		if !ok {
			continue
		}
		run := Run{Cell: cell, Policy: p, Seed: seed, Summary: report.Summary{
			AvgJCT: report.Number(v), P99JCT: report.Number(v * v), Makespan: report.Number(v * v * v), MaxRho: report.Undefined(), Restarts: int(v)}}
		if v == 0 {
			run.Err, run.Summary = "cannot run", report.Summary{}
		}
		r.Runs = append(r.Runs, run)
	}
}

func (r *Result) run(cell int, policy string, seed uint64) *Run {
	return r.table().runs[place{cell, policy, seed}]
}

func (r *Result) rowOf(cell, policy string) Row {
	for _, row := range r.Rows() {
		if row.Cell == cell && row.Policy == policy {
			return row
		}
	}
	return Row{}
}

func (r *Result) totalOf(policy string) Total {
	for _, t := range r.Totals() {
		if t.Policy == policy {
			return t
		}
	}
	return Total{}
}

// undefined is the interval of no value, single that of one.
var undefined = report.Interval{Mean: report.Undefined(), Lo: report.Undefined(), Hi: report.Undefined()}

func single(v report.Number) report.Interval {
	return report.Interval{Mean: v, Lo: report.Undefined(), Hi: report.Undefined()}
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, near); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestRows checks figures computed by hand. On cell a the best others have 150 of themis and 50 of las, so the ratios
// of pacer are 1.5 and 1: the mean of the logarithms is ln(1.5)/2 = 0.2027326, its standard error is the same, and the
// quantile of Student's t at 1 degree of freedom is 12.7062047.
func TestRows(t *testing.T) {
	r := scored()
	a := r.rowOf("a", "pacer")
	check(t, "ratio", a.BestOther.AvgJCT, report.Interval{Mean: 1.2247449, Lo: 0.09317938, Hi: 16.0979815})
	check(t, "99th percentile", a.BestOther.P99JCT.Mean, report.Number(1.5))
	check(t, "makespan", a.BestOther.Makespan.Mean, report.Number(1.8371173))
	check(t, "average", a.AvgJCT, report.Interval{Mean: 75, Lo: 75 - 25*12.7062047, Hi: 75 + 25*12.7062047})
	check(t, "restarts", a.Restarts, report.Number(75))
	check(t, "rho", a.RhoOfThemis.Mean, report.Number(1))
	check(t, "late", []report.Number{a.Late, a.WorstSec}, []report.Number{2, 100})
	check(t, "not a variant", a.OfReference, Ratios{undefined, undefined, undefined})
	if a.Seeds != 2 || a.Failed != 0 || a.Best != "las" && a.Best != "themis" || a.BestIn != 1 {
		t.Errorf("%+v", a)
	}
	check(t, "a policy that knows remaining times against the others", r.rowOf("a", "srtf:backfill=false").BestOther.AvgJCT.Mean, report.Number(math.Sqrt(10*1)))
	las := r.rowOf("b", "las")
	check(t, "one seed failed", las.BestOther.AvgJCT, single(2))
	check(t, "no guaranteed job", []report.Number{las.Late, las.WorstSec}, []report.Number{report.Undefined(), report.Undefined()})
	if las.Seeds != 1 || las.Failed != 1 || las.Error != "cannot run" || las.Best != "pacer" || las.BestIn != 1 {
		t.Errorf("%+v", las)
	}
	check(t, "variant", r.rowOf("x10", "pacer").OfReference.AvgJCT, report.Interval{Mean: 1.2247449, Lo: 0.09317938, Hi: 16.0979815})
}

// TestTotals checks figures computed by hand. The ratios of pacer are 1.5 and 1 on a, 0.5 and 0.5 on b; their
// geometric means by seed are 0.8660254 and 0.7071068. Variants count nowhere.
func TestTotals(t *testing.T) {
	r := scored()
	p := r.totalOf("pacer")
	check(t, "pacer", p, Total{Policy: "pacer", Cells: 2, Won: 1, Workloads: 4, WorstCell: 0.5, MaxRho: 2.5, Late: 3, WorstSec: 300,
		RhoOfThemis: 1.3160740, RhoWorst: 1.7320508,
		BestOther: Ratios{report.Interval{Mean: 0.7825423, Lo: 0.2158465, Hi: 2.8370743}, p.BestOther.P99JCT, p.BestOther.Makespan}})
	check(t, "99th percentile", p.BestOther.P99JCT.Mean, report.Number(0.6123724))
	check(t, "makespan", p.BestOther.Makespan.Mean, report.Number(0.4792074))
	las := r.totalOf("las")
	check(t, "over the cells, since a run failed", las.BestOther.AvgJCT, report.GeometricT([]float64{math.Sqrt(0.5), 2}, Confidence))
	if las.Failed != 1 || las.Won != 2 || las.Workloads != 3 || las.Late.Defined() {
		t.Errorf("%+v", las)
	}
	order := ""
	for _, row := range PolicyTable(r.Totals()).Rows {
		order += row[0] + " " + row[4] + "; "
	}
	if want := "las 2/3; pacer 1/4; themis 1/4; srtf:backfill=false 2/4; "; order != want {
		t.Errorf("policies by ratio: %s, want %s", order, want)
	}
}

// TestRecordedCells: a recorded workload runs with the first seed, and then intervals are over the cells. Failures of
// all cells count.
func TestRecordedCells(t *testing.T) {
	r := &Result{Cells: []Cell{{Name: "drawn"}, {Name: "jobs.csv", Workload: "jobs.csv"}}, Policies: []string{"pacer", "las", "drf"}, Seeds: []uint64{1, 2}}
	r.add(0, 1, figures{"pacer": 100, "las": 150, "drf": 0})
	r.add(0, 2, figures{"pacer": 100, "las": 600, "drf": 0})
	r.add(1, 1, figures{"pacer": 100, "las": 200, "drf": 0})
	if drf := r.totalOf("drf"); drf.Failed != 3 || drf.Cells != 0 || drf.Workloads != 0 || drf.BestOther.AvgJCT.Mean.Defined() {
		t.Errorf("drf: %+v", drf)
	}
	check(t, "by cell", r.rowOf("jobs.csv", "pacer").BestOther.AvgJCT, single(2))
	check(t, "over the cells", r.totalOf("pacer").BestOther.AvgJCT, report.GeometricT([]float64{3, 2}, Confidence))
}

// TestTables: the rows of one policy, with "-" where there is no figure.
func TestTables(t *testing.T) {
	rows := scored().Rows()
	for _, c := range []struct{ what, got, want string }{
		{"cells", CellTable(rows, "las").String(), "b     1 of 2    40.0 s  pacer 1/2                  2.000 "},
		{"variants", VariantTable(rows, "pacer").String(), "x10      a       2  1.225 (0.093-16.098) "},
		{"failures", strings.Join(Failures(rows), "\n"), "las on b, 1 of 2 workloads: cannot run"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: want %q in:\n%s", c.what, c.want, c.got)
		}
	}
	if n := len(VariantTable(rows, "pacer").Rows); n != 1 {
		t.Errorf("%d variants, want 1", n)
	}
}

// TestClairvoyant: the policies that are no rivals are built in.
func TestClairvoyant(t *testing.T) {
	for p := range clairvoyant {
		if _, err := builtin.Policies.Lookup(p); err != nil {
			t.Error(err)
		}
	}
}
