package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

// WriteJSON writes {"runs":[...]}, one Summary each, undefined figures as null.
func WriteJSON(w io.Writer, runs []Summary) error {
	if runs == nil {
		runs = []Summary{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Runs []Summary `json:"runs"`
	}{runs})
}

// WriteCSV writes a header and one row per run: the fields of the JSON under
// the same names without the warnings, look-ups as three columns, undefined
// figures empty.
func WriteCSV(w io.Writer, runs []Summary) error {
	c := csv.NewWriter(w)
	err := c.Write([]string{"policy", "jobs", "finished", "unfinished", "rejected",
		"avg_jct_s", "median_jct_s", "p99_jct_s", "makespan_s", "device_hours", "restarts", "preemptions", "elapsed_s",
		"max_jct_s", "utilisation", "lookups_exact", "lookups_interpolated", "lookups_modelled"})
	for _, s := range runs {
		if err != nil {
			return err
		}
		err = c.Write(append(summaryFields(s), lookupFields(s.Lookups)...))
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

func lookupFields(l *Lookups) []string {
	if l == nil {
		return []string{"", "", ""}
	}
	return []string{strconv.Itoa(l.Exact), strconv.Itoa(l.Interpolated), strconv.Itoa(l.Modelled)}
}

// WriteJobsCSV writes one row per job that counts, run after run. start_s is
// empty for a job that never held devices, end_s and jct_s for one that did not
// finish.
func WriteJobsCSV(w io.Writer, results []*sim.Result, score Score) error {
	c := csv.NewWriter(w)
	err := c.Write([]string{"policy", "job_id", "submit_s", "start_s", "end_s", "jct_s", "restarts", "device_s"})
	if err != nil {
		return err
	}
	row := make([]string, 8)
	for _, r := range results {
		for _, j := range r.Jobs {
			if !score.Has(j.Job.ID) {
				continue
			}
			jobFields(row, r.Policy, j)
			if err := c.Write(row); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

func jobFields(row []string, policy string, j sim.JobRecord) {
	start, end, jct := "", "", ""
	if j.Finished || j.Attained > 0 {
		start = Seconds(j.Start)
	}
	if j.Finished {
		end, jct = Seconds(j.End), Seconds(j.JCT())
	}
	row[0], row[1], row[2] = policy, string(j.Job.ID), Seconds(j.Job.Submit)
	row[3], row[4], row[5] = start, end, jct
	row[6], row[7] = strconv.Itoa(j.Restarts), Number(j.Attained).String()
}
