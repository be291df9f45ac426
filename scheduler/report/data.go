package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"
)

// WriteJSON writes {"runs":[...]}, one Summary each, undefined figures as null.
func WriteJSON(w io.Writer, runs []Summary) error {
	if runs == nil {
		runs = []Summary{}
	}
	return writeJSON(w, struct {
		Runs []Summary `json:"runs"`
	}{runs})
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteCSV writes a header and one row per run. Columns have the names of the JSON
// fields; warnings, evictions and reclaims are left out, and the fields of lookups, learned and gaps are
// columns of their own. Undefined figures are empty.
func WriteCSV(w io.Writer, runs []Summary) error {
	c := csv.NewWriter(w)
	err := c.Write([]string{"policy", "jobs", "finished", "unfinished", "rejected",
		"avg_jct_s", "median_jct_s", "p99_jct_s", "makespan_s", "device_hours", "restarts", "preemptions", "elapsed_s",
		"max_jct_s", "utilisation", "lookups_exact", "lookups_interpolated", "lookups_modelled", "avg_delay_s", "failures", "lost_device_hours",
		"learned_seen", "learned_known", "learned_fits", "learned_unfit", "learned_mape", "cost_avg_jct", "cost_makespan",
		"guaranteed", "broken_guarantees", "gap_decisions", "gap_mean", "gap_worst", "max_rho",
		"late_submitted_known", "late_submitted", "late_submitted_worst_s", "late_submitted_mean_s",
		"late_backfill_known", "late_backfill", "late_backfill_worst_s", "late_backfill_mean_s", "error"})
	for _, s := range runs {
		if err != nil {
			return err
		}
		err = c.Write(slices.Concat(summaryFields(s), lookupFields(s.Lookups), []string{s.AvgDelay.String(), strconv.Itoa(s.Failures), s.LostDeviceHours.String()}, learnedFields(s.Learned),
			[]string{strconv.Itoa(s.Guaranteed), strconv.Itoa(s.BrokenGuarantees)}, gapFields(s.Gaps), []string{s.MaxRho.String()},
			s.LateSubmitted.fields(), s.LateBackfill.fields(), []string{s.Error}))
	}
	c.Flush()
	if err != nil {
		return err
	}
	return c.Error()
}

func summaryFields(s Summary) []string {
	return []string{s.Policy, strconv.Itoa(s.Jobs), strconv.Itoa(s.Finished), strconv.Itoa(s.Unfinished),
		strconv.Itoa(s.Rejected), s.AvgJCT.String(), s.MedianJCT.String(), s.P99JCT.String(), s.Makespan.String(),
		s.DeviceHours.String(), strconv.Itoa(s.Restarts), strconv.Itoa(s.Preemptions), s.Elapsed.String(),
		s.MaxJCT.String(), s.Utilisation.String()}
}

func learnedFields(l *Learned) []string {
	if l == nil {
		return make([]string, 7)
	}
	return []string{strconv.Itoa(l.Seen), strconv.Itoa(l.Known), strconv.Itoa(l.Fits), strconv.Itoa(l.Unfit),
		l.MAPE.String(), l.CostAvgJCT.String(), l.CostMakespan.String()}
}

func gapFields(g *Gaps) []string {
	if g == nil {
		return []string{"", "", ""}
	}
	return []string{strconv.Itoa(g.Decisions), g.Mean.String(), g.Worst.String()}
}

func lookupFields(l *Lookups) []string {
	if l == nil {
		return []string{"", "", ""}
	}
	return []string{strconv.Itoa(l.Exact), strconv.Itoa(l.Interpolated), strconv.Itoa(l.Modelled)}
}
