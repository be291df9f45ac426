package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/scheduler/report"
)

// CellTable has a row per cell for one policy: its ratios to the best other.
func CellTable(rows []Row, policy string) report.Table {
	t := report.Table{Header: []string{"cell", "seeds", "avg JCT", "best other", "JCT ratio", "p99 ratio", "makespan ratio",
		"rho / themis"}}
	for _, r := range rows {
		if r.Policy != policy {
			continue
		}
		best := "-"
		if r.Best != "" {
			best = fmt.Sprintf("%s %d/%d", r.Best, r.BestIn, r.Seeds+r.Failed)
		}
		t.Rows = append(t.Rows, []string{r.Cell, count(r.Seeds, r.Failed), report.Human(r.AvgJCT.Mean), best,
			Ratio(r.BestOther.AvgJCT), Ratio(r.BestOther.P99JCT), Ratio(r.BestOther.Makespan), Ratio(r.RhoOfThemis)})
	}
	return t
}

// PolicyTable has a row per policy, best first.
func PolicyTable(totals []Total) report.Table {
	t := report.Table{Header: []string{"policy", "cells", "JCT ratio", "worst cell", "won", "p99 ratio", "makespan ratio",
		"max rho", "late", "worst late", "failed"}}
	for _, r := range ranked(totals) {
		t.Rows = append(t.Rows, []string{r.Policy, strconv.Itoa(r.Cells), Ratio(r.BestOther.AvgJCT), r.WorstCell.Fixed(3),
			fmt.Sprintf("%d/%d", r.Won, r.Workloads), Ratio(r.BestOther.P99JCT), Ratio(r.BestOther.Makespan), r.MaxRho.Fixed(3), r.Late.Fixed(0),
			report.Human(r.WorstSec), strconv.Itoa(r.Failed)})
	}
	return t
}

// ranked returns totals by ratio, policies without results last.
func ranked(totals []Total) []Total {
	out := slices.Clone(totals)
	value := func(t Total) float64 {
		if m := t.BestOther.AvgJCT.Mean; m.Defined() {
			return float64(m)
		}
		return -1
	}
	slices.SortStableFunc(out, func(a, b Total) int { return cmp.Compare(value(b), value(a)) })
	return out
}

// VariantTable has a row per variant for one policy: its figures over those of the cell it varies.
func VariantTable(rows []Row, policy string) report.Table {
	t := report.Table{Header: []string{"variant", "of", "seeds", "JCT / reference", "p99 / reference", "makespan / reference"}}
	for _, r := range rows {
		if r.Policy == policy && r.OfReference.AvgJCT.Mean.Defined() {
			t.Rows = append(t.Rows, []string{r.Cell, r.Reference, count(r.Seeds, r.Failed),
				Ratio(r.OfReference.AvgJCT), Ratio(r.OfReference.P99JCT), Ratio(r.OfReference.Makespan)})
		}
	}
	return t
}

// Failures lists the policies without a result on some workload of a cell, with the first reason.
func Failures(rows []Row) []string {
	var out []string
	for _, r := range rows {
		if r.Failed > 0 {
			out = append(out, fmt.Sprintf("%s on %s, %d of %d workloads: %s", r.Policy, r.Cell, r.Failed, r.Failed+r.Seeds, r.Error))
		}
	}
	return out
}

func count(done, failed int) string {
	if failed == 0 {
		return strconv.Itoa(done)
	}
	return fmt.Sprintf("%d of %d", done, done+failed)
}

// Ratio writes a ratio with its interval: "1.043 (1.021-1.066)".
func Ratio(i report.Interval) string {
	if !i.Lo.Defined() {
		return i.Mean.Fixed(3)
	}
	return fmt.Sprintf("%s (%s-%s)", i.Mean.Fixed(3), i.Lo.Fixed(3), i.Hi.Fixed(3))
}
