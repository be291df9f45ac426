package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/scheduler/sim"
)

const jobsHeader = "policy,job_id,submit_s,start_s,end_s,jct_s,restarts,device_s\n"

func jobsOf(t *testing.T, text string) []JobRow {
	t.Helper()
	rows, err := ReadJobsCSV(strings.NewReader(text), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestReadJobsCSV reads back a file of WriteJobs.
func TestReadJobsCSV(t *testing.T) {
	r := result("fifo", 1, 50, 8, false)
	r.Jobs[3].Finished = false
	var b bytes.Buffer
	mustWriteJobs(t, &b, CSV, []*sim.Result{r}, Score{})
	var want []JobRow
	for _, j := range r.Jobs {
		row := JobRow{Policy: "fifo", ID: string(j.Job.ID), Submit: j.Job.Submit, Finished: j.Finished}
		if j.Finished {
			row.JCT = j.JCT()
		}
		want = append(want, row)
	}
	if diff := cmp.Diff(want, jobsOf(t, b.String())); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		"":                             "f.csv: the file is empty",
		"a,b\n":                        "f.csv: no column job_id",
		jobsHeader + "p,1,x,,,,,\n":    `f.csv:2: submit_s "x" is not a number`,
		jobsHeader + "p,1,0,,,-1,,\n":  `f.csv:2: jct_s "-1" is not a number`,
		jobsHeader + "p,1,0,,,NaN,,\n": `f.csv:2: jct_s "NaN" is not a number`,
		jobsHeader + "p,,0,,,,,\n":     "f.csv:2: no job_id",
		jobsHeader + "p,1,0,,,,,\nq,1,0,,,,,\np,1,0,,,,,\n": "f.csv:4: job 1 is also on line 2",
		jobsHeader + "p,1\n": "wrong number of fields",
	} {
		if _, err := ReadJobsCSV(strings.NewReader(text), "f.csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestDiffJobs(t *testing.T) {
	a := jobsOf(t, "job_id,submit_s,jct_s\n1,0,100\n2,0,200\n3,0,300\n4,5,50\n5,0,\n6,0,10\n7,0,\n8,0,1\n")
	b := jobsOf(t, "jct_s,submit_s,job_id,more\n101,0,1,x\n150,0,2,\n600,0,3,\n50,9,4,\n,0,5,\n,0,6,\n10,0,7,\n5,0,9,\n5,0,10,\n")
	got, err := DiffJobs(a, b, DiffOptions{Tolerance: time.Second, Largest: 1, Confidence: 0.95})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	d := got[0]
	want := Diff{Jobs: 7, Equal: 2, Faster: 1, Slower: 1, EndedInA: 1, EndedInB: 1, Resubmit: 1, OnlyInA: 1, OnlyInB: 2,
		AvgA: 162.5, AvgB: 225.25, Difference: d.Difference, Ratio: d.Ratio, Largest: []JobDiff{{"3", 300, 600, 300}}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	// Differences 1, -50, 300, 0: mean 62.75, s = 159.9487; t(3, 0.975) = 3.182446.
	if half := 3.182446 * 159.9487 / 2; math.Abs(float64(d.Difference.Mean)-62.75) > 1e-9 || math.Abs(float64(d.Difference.HalfWidth())-half) > 1e-2 {
		t.Errorf("difference %+v, want 62.75 ± %g", d.Difference, half)
	}
	if math.Abs(float64(d.Ratio.Mean)-225.25/162.5) > 1e-12 || d.Differing() != 8 {
		t.Errorf("ratio %+v, %d differ", d.Ratio, d.Differing())
	}
	same, err := DiffJobs(a, a, DiffOptions{Confidence: 0.95, Largest: 3})
	if err != nil || same[0].Differing() != 0 || same[0].Ratio != (Interval{1, 1, 1}) || len(same[0].Largest) != 0 {
		t.Errorf("%+v, %v", same, err)
	}
}

func TestDiffPolicies(t *testing.T) {
	two := jobsOf(t, jobsHeader+"p,1,0,,,5,,\nq,1,0,,,6,,\n")
	turned := jobsOf(t, jobsHeader+"q,1,0,,,6,,\np,1,0,,,7,,\n")
	one := jobsOf(t, jobsHeader+"r,1,0,,,6,,\n")
	got, err := DiffJobs(two, turned, DiffOptions{Confidence: 0.9})
	if err != nil || len(got) != 2 || got[0].A != "p" || got[0].B != "p" || got[0].Slower != 1 || got[1].A != "q" || got[1].Equal != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = DiffJobs(two, one, DiffOptions{A: "q", Confidence: 0.9}); err != nil || len(got) != 1 || got[0].A != "q" || got[0].B != "r" || got[0].Equal != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err = DiffJobs(two, one, DiffOptions{}); err == nil || !strings.Contains(err.Error(), "the first file has the policies p, q, the second r") {
		t.Error(err)
	}
	if _, err = DiffJobs(two, one, DiffOptions{B: "p"}); err == nil || !strings.Contains(err.Error(), `the second file has no policy "p", it has r`) {
		t.Error(err)
	}
}
