package scheduling

import (
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// Row is the figures of a policy on a cell: means over the seeds, and ratios as geometric means of pairs with equal
// jobs. Intervals are Student's t, of logarithms for ratios.
type Row struct {
	Cell   string `json:"cell"`
	Policy string `json:"policy"`
	Seeds  int    `json:"seeds"`  // workloads with a result
	Failed int    `json:"failed"` // workloads without one
	Error  string `json:"error"`  // of the first that failed

	AvgJCT   report.Interval `json:"avg_jct_s"`
	P99JCT   report.Interval `json:"p99_jct_s"`
	Makespan report.Interval `json:"makespan_s"`
	MaxRho   report.Interval `json:"max_rho"`  // highest finish-time fairness of a job
	Restarts report.Number   `json:"restarts"` // mean for each workload
	// Guaranteed jobs of all workloads that end more than a minute later than under
	// fifo-backfill, or never, and the largest lateness in seconds; undefined without guaranteed jobs.
	Late     report.Number `json:"late_backfill"`
	WorstSec report.Number `json:"late_backfill_worst_s"`

	// The least figure among the other policies, but those that know true remaining times, over the policy's; above 1
	// is in favour of the policy.
	BestOther Ratios `json:"best_other"`
	Best      string `json:"best"` // the best other by average JCT in most workloads
	BestIn    int    `json:"best_in"`
	// RhoOfThemis is the policy's highest rho over that of themis; below 1 is in favour of the
	// policy. Undefined without themis.
	RhoOfThemis report.Interval `json:"rho_of_themis"`
	// OfReference is the figures of a variant over those of the cell it is a variant of, over
	// its time scale; undefined for other cells.
	Reference   string `json:"variant_of"`
	OfReference Ratios `json:"of_reference"`
}

// Ratios are ratios of three figures.
type Ratios struct {
	AvgJCT   report.Interval `json:"avg_jct"`
	P99JCT   report.Interval `json:"p99_jct"`
	Makespan report.Interval `json:"makespan"`
}

// Total is the figures of a policy over all cells that are no variants.
type Total struct {
	Policy string `json:"policy"`
	Cells  int    `json:"cells"`  // with a result
	Failed int    `json:"failed"` // workloads without a result
	// Geometric means over the cells, with intervals over the seeds: each is a mean over the
	// cells for one seed. With one seed, or where a run failed, intervals are over the cells.
	BestOther Ratios        `json:"best_other"`
	WorstCell report.Number `json:"worst_cell"` // least ratio of the average JCT
	Won       int           `json:"won"`        // workloads with the least average JCT of all policies
	Workloads int           `json:"workloads"`  // with a result
	MaxRho    report.Number `json:"max_rho"`    // mean over the workloads of the highest rho
	// As in Row, over all workloads.
	Late     report.Number `json:"late_backfill"`
	WorstSec report.Number `json:"late_backfill_worst_s"`
	// RhoOfThemis is the geometric mean over the cells, RhoWorst the highest.
	RhoOfThemis report.Number `json:"rho_of_themis"`
	RhoWorst    report.Number `json:"rho_of_themis_worst"`
}

// figure is a figure of a run.
type figure func(*report.Summary) report.Number

func avgJCT(s *report.Summary) report.Number   { return s.AvgJCT }
func p99JCT(s *report.Summary) report.Number   { return s.P99JCT }
func makespan(s *report.Summary) report.Number { return s.Makespan }
func maxRho(s *report.Summary) report.Number   { return s.MaxRho }

// table finds runs.
type table struct {
	*Result
	runs map[place]*Run
}

type place struct {
	cell   int
	policy string
	seed   uint64
}

func (r *Result) table() table {
	t := table{r, map[place]*Run{}}
	for i := range r.Runs {
		run := &r.Runs[i]
		t.runs[place{run.Cell, run.Policy, run.Seed}] = run
	}
	return t
}

// value returns a figure of a run, undefined without a result.
func (t table) value(cell int, policy string, seed uint64, f figure) float64 {
	run := t.runs[place{cell, policy, seed}]
	if run == nil || run.Err != "" {
		return math.NaN()
	}
	return float64(f(&run.Summary))
}

// name returns the name of a policy without its options.
func name(policy string) string {
	name, _, _ := strings.Cut(policy, ":")
	return name
}

// bestOther returns the least figure among the others of a policy, and the policy that has it.
func (t table) bestOther(cell int, policy string, seed uint64, f figure) (best float64, other string) {
	best = math.NaN()
	for _, p := range t.Policies {
		if p == policy || clairvoyant[name(p)] {
			continue
		}
		if v := t.value(cell, p, seed, f); v < best || math.IsNaN(best) && !math.IsNaN(v) {
			best, other = v, p
		}
	}
	return best, other
}

// seeds returns the seeds of a cell.
func (t table) seeds(cell int) []uint64 {
	if t.Cells[cell].Drawn() {
		return t.Seeds
	}
	return t.Seeds[:1]
}

// over returns f of every seed of a cell.
func (t table) over(cell int, f func(seed uint64) float64) []float64 {
	var out []float64
	for _, seed := range t.seeds(cell) {
		out = append(out, f(seed))
	}
	return out
}

// Rows returns a row per cell and policy.
func (r *Result) Rows() []Row {
	t := r.table()
	var out []Row
	for c := range r.Cells {
		for _, p := range r.Policies {
			out = append(out, t.row(c, p))
		}
	}
	return out
}

func (t table) row(c int, policy string) Row {
	cell := &t.Cells[c]
	r := Row{Cell: cell.Name, Policy: policy, Reference: cell.VariantOf}
	restarts := report.Number(0)
	for _, seed := range t.seeds(c) {
		switch run := t.runs[place{c, policy, seed}]; {
		case run == nil:
		case run.Err == "":
			r.Seeds++
			restarts += report.Number(run.Summary.Restarts)
		default:
			if r.Failed++; r.Error == "" {
				r.Error = run.Err
			}
		}
	}
	r.Late, r.WorstSec = t.late(c, policy)
	r.Restarts = report.Undefined()
	if r.Seeds > 0 {
		r.Restarts = restarts / report.Number(r.Seeds)
	}
	mean := func(f figure) report.Interval {
		return report.StudentT(t.over(c, func(seed uint64) float64 { return t.value(c, policy, seed, f) }), Confidence)
	}
	r.AvgJCT, r.P99JCT, r.Makespan, r.MaxRho = mean(avgJCT), mean(p99JCT), mean(makespan), mean(maxRho)
	r.BestOther = ratios(func(f figure) []float64 { return t.againstBest(c, policy, f) })
	r.Best, r.BestIn = t.mostlyBest(c, policy)
	r.RhoOfThemis = report.GeometricT(t.ofThemis(c, policy), Confidence)
	r.OfReference = ratios(func(f figure) []float64 { return t.ofReference(c, policy, f) })
	return r
}

// late counts the late guaranteed jobs of a cell, and returns the largest lateness.
func (t table) late(c int, policy string) (n, worst report.Number) {
	n, worst = report.Undefined(), report.Undefined()
	for _, seed := range t.seeds(c) {
		run := t.runs[place{c, policy, seed}]
		if run == nil || run.Err != "" || run.Summary.LateBackfill == nil {
			continue
		}
		l := run.Summary.LateBackfill
		n, worst = sum(n, report.Number(l.Late)), highest(worst, l.WorstSec)
	}
	return n, worst
}

// sum adds numbers; undefined ones count as none.
func sum(a, b report.Number) report.Number {
	switch {
	case !a.Defined():
		return b
	case !b.Defined():
		return a
	}
	return a + b
}

// highest returns the higher of two numbers, the other one if one is undefined.
func highest(a, b report.Number) report.Number {
	if !a.Defined() || b > a {
		return b
	}
	return a
}

// ratios returns the geometric means of three figures.
func ratios(of func(figure) []float64) Ratios {
	mean := func(f figure) report.Interval { return report.GeometricT(of(f), Confidence) }
	return Ratios{mean(avgJCT), mean(p99JCT), mean(makespan)}
}

// againstBest returns the best other's figure over the policy's, by seed.
func (t table) againstBest(c int, policy string, f figure) []float64 {
	return t.over(c, func(seed uint64) float64 {
		best, _ := t.bestOther(c, policy, seed, f)
		return best / t.value(c, policy, seed, f)
	})
}

// ofThemis returns the policy's highest rho over that of themis, by seed.
func (t table) ofThemis(c int, policy string) []float64 {
	return t.over(c, func(seed uint64) float64 {
		return t.value(c, policy, seed, maxRho) / t.value(c, "themis", seed, maxRho)
	})
}

// ofReference returns the figure of a variant over that of its reference and its time scale, by seed; nil for cells
// that are no variants.
func (t table) ofReference(c int, policy string, f figure) []float64 {
	cell := &t.Cells[c]
	of := slices.IndexFunc(t.Cells, func(o Cell) bool { return o.Name == cell.VariantOf })
	if cell.VariantOf == "" || of < 0 {
		return nil
	}
	scale := cell.scale() / t.Cells[of].scale()
	return t.over(c, func(seed uint64) float64 {
		return t.value(c, policy, seed, f) / t.value(of, policy, seed, f) / scale
	})
}

// mostlyBest returns the best other in most workloads of a cell, and in how many.
func (t table) mostlyBest(c int, policy string) (name string, times int) {
	count := map[string]int{}
	for _, seed := range t.seeds(c) {
		if _, best := t.bestOther(c, policy, seed, avgJCT); best != "" {
			count[best]++
		}
	}
	for _, p := range t.Policies {
		if count[p] > times {
			name, times = p, count[p]
		}
	}
	return name, times
}

// Totals returns the figures of every policy over the cells.
func (r *Result) Totals() []Total {
	t := r.table()
	var cells []int
	for c := range r.Cells {
		if r.Cells[c].VariantOf == "" {
			cells = append(cells, c)
		}
	}
	var out []Total
	for _, p := range r.Policies {
		out = append(out, t.total(p, cells))
	}
	return out
}

func (t table) total(policy string, cells []int) Total {
	out := Total{Policy: policy, WorstCell: report.Undefined(), RhoWorst: report.Undefined(), Late: report.Undefined(),
		WorstSec: report.Undefined()}
	var rho, themis []float64
	for _, c := range cells {
		row := t.row(c, policy)
		out.Failed += row.Failed
		out.Late, out.WorstSec = sum(out.Late, row.Late), highest(out.WorstSec, row.WorstSec)
		if row.Seeds == 0 {
			continue
		}
		out.Cells++
		if m := row.BestOther.AvgJCT.Mean; m.Defined() && !(m >= out.WorstCell) {
			out.WorstCell = m
		}
		out.RhoWorst = highest(out.RhoWorst, row.RhoOfThemis.Mean)
		themis = append(themis, float64(row.RhoOfThemis.Mean))
		out.Workloads += row.Seeds
		for _, seed := range t.seeds(c) {
			rho = append(rho, t.value(c, policy, seed, maxRho))
			if own := t.value(c, policy, seed, avgJCT); t.least(c, seed) == own {
				out.Won++
			}
		}
	}
	out.MaxRho = report.StudentT(rho, Confidence).Mean
	out.RhoOfThemis = report.GeometricT(themis, Confidence).Mean
	out.BestOther = Ratios{t.overall(policy, cells, avgJCT), t.overall(policy, cells, p99JCT), t.overall(policy, cells, makespan)}
	return out
}

// least returns the least average JCT of a workload.
func (t table) least(c int, seed uint64) float64 {
	best := math.NaN()
	for _, p := range t.Policies {
		if v := t.value(c, p, seed, avgJCT); !(v >= best) && !math.IsNaN(v) {
			best = v
		}
	}
	return best
}

// overall returns the geometric mean over cells of the ratios to the best other.
func (t table) overall(policy string, cells []int, f figure) report.Interval {
	var means []float64
	bySeed := make([][]float64, len(t.Seeds))
	complete := len(t.Seeds) > 1
	for _, c := range cells {
		row := t.againstBest(c, policy, f)
		means = append(means, float64(report.GeometricT(row, Confidence).Mean))
		complete = complete && len(row) == len(t.Seeds) && !slices.ContainsFunc(row, math.IsNaN)
		for i, ratio := range row {
			bySeed[i] = append(bySeed[i], ratio)
		}
	}
	if !complete {
		return report.GeometricT(means, Confidence)
	}
	means = nil
	for _, ratios := range bySeed {
		means = append(means, float64(report.GeometricT(ratios, Confidence).Mean))
	}
	return report.GeometricT(means, Confidence)
}
