package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DiffOptions say how two runs are compared.
type DiffOptions struct {
	// A and B are the policies compared. Empty = if each file has one policy,
	// these two, else every policy of the first file with its namesake.
	A, B string
	// Tolerance is the largest difference of completion and submission times
	// that counts as equal; 0 = times must be equal.
	Tolerance time.Duration
	// Largest is how many differences are listed, at least 0.
	Largest int
	// Confidence of the intervals, in (0, 1).
	Confidence float64
}

// Diff compares the jobs of a policy in one file with those in another. Jobs
// are the same if their ids are.
type Diff struct {
	A string `json:"policy_a"`
	B string `json:"policy_b"`

	Jobs     int `json:"jobs"`   // in both, the sum of the next six
	Equal    int `json:"equal"`  // submission and JCT within the tolerance, or finished in neither
	Faster   int `json:"faster"` // in B
	Slower   int `json:"slower"` // in B
	EndedInA int `json:"finished_only_in_a"`
	EndedInB int `json:"finished_only_in_b"`
	Resubmit int `json:"submitted_otherwise"` // with an equal JCT

	OnlyInA int `json:"only_in_a"`
	OnlyInB int `json:"only_in_b"`

	// Of the jobs finished in both: means in seconds, B - A, and the ratio of
	// the means B / A, with intervals of Student's t over the jobs in pairs.
	AvgA       Number   `json:"avg_jct_a_s"`
	AvgB       Number   `json:"avg_jct_b_s"`
	Difference Interval `json:"difference_s"`
	Ratio      Interval `json:"ratio"`

	Largest []JobDiff `json:"largest"` // by size, then ID
}

// JobDiff is the difference of a job that finished in both files.
type JobDiff struct {
	ID         string `json:"job_id"`
	A          Number `json:"jct_a_s"`
	B          Number `json:"jct_b_s"`
	Difference Number `json:"difference_s"` // B - A
}

// Differing counts the jobs that are not equal, including those in only one file.
func (d Diff) Differing() int { return d.Jobs - d.Equal + d.OnlyInA + d.OnlyInB }

// DiffJobs compares the jobs of two files, policy by policy.
func DiffJobs(a, b []JobRow, o DiffOptions) ([]Diff, error) {
	pairs, err := pairPolicies(policies(a), policies(b), o)
	if err != nil {
		return nil, err
	}
	var out []Diff
	for _, p := range pairs {
		out = append(out, diffPolicy(of(a, p[0]), of(b, p[1]), p, o))
	}
	return out, nil
}

// policies lists the policies in rows, in order of appearance.
func policies(rows []JobRow) []string {
	var out []string
	for _, r := range rows {
		if !slices.Contains(out, r.Policy) {
			out = append(out, r.Policy)
		}
	}
	return out
}

// pairPolicies returns the pairs of policies to compare, that of A first.
func pairPolicies(a, b []string, o DiffOptions) ([][2]string, error) {
	for _, want := range []struct {
		name, file string
		have       []string
	}{{o.A, "the first", a}, {o.B, "the second", b}} {
		if want.name != "" && !slices.Contains(want.have, want.name) {
			return nil, fmt.Errorf("report: %s file has no policy %q, it has %s", want.file, want.name, strings.Join(want.have, ", "))
		}
	}
	if o.A != "" {
		a = []string{o.A}
	}
	if o.B != "" {
		b = []string{o.B}
	}
	if len(a) == 1 && len(b) == 1 {
		return [][2]string{{a[0], b[0]}}, nil
	}
	sortedA, sortedB := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	if !slices.Equal(sortedA, sortedB) {
		return nil, fmt.Errorf("report: the first file has the policies %s, the second %s: say which to compare",
			strings.Join(a, ", "), strings.Join(b, ", "))
	}
	out := make([][2]string, len(a))
	for i, p := range a {
		out[i] = [2]string{p, p}
	}
	return out, nil
}

// of returns the jobs of a policy.
func of(rows []JobRow, policy string) []JobRow {
	var out []JobRow
	for _, r := range rows {
		if r.Policy == policy {
			out = append(out, r)
		}
	}
	return out
}

func diffPolicy(a, b []JobRow, names [2]string, o DiffOptions) Diff {
	d := Diff{A: names[0], B: names[1], Largest: []JobDiff{}}
	inB := make(map[string]JobRow, len(b))
	for _, j := range b {
		inB[j.ID] = j
	}
	var jctA, jctB, differences []float64
	for _, x := range a {
		y, ok := inB[x.ID]
		if !ok {
			d.OnlyInA++
			continue
		}
		d.count(x, y, o.Tolerance)
		if x.Finished && y.Finished {
			jctA, jctB = append(jctA, x.JCT.Seconds()), append(jctB, y.JCT.Seconds())
			differences = append(differences, (y.JCT - x.JCT).Seconds())
			if (y.JCT - x.JCT).Abs() > o.Tolerance {
				d.Largest = append(d.Largest, JobDiff{x.ID, seconds(x.JCT), seconds(y.JCT), seconds(y.JCT - x.JCT)})
			}
		}
	}
	d.OnlyInB = len(b) - d.Jobs
	d.AvgA, d.AvgB = StudentT(jctA, o.Confidence).Mean, StudentT(jctB, o.Confidence).Mean
	d.Difference, d.Ratio = StudentT(differences, o.Confidence), RatioT(jctA, jctB, o.Confidence)
	slices.SortStableFunc(d.Largest, func(x, y JobDiff) int {
		return cmp.Or(-cmp.Compare(max(x.Difference, -x.Difference), max(y.Difference, -y.Difference)), cmp.Compare(x.ID, y.ID))
	})
	d.Largest = d.Largest[:min(len(d.Largest), max(o.Largest, 0))]
	return d
}

// count counts a job of both files as equal, faster, slower and so on.
func (d *Diff) count(x, y JobRow, tolerance time.Duration) {
	d.Jobs++
	switch apart := y.JCT - x.JCT; {
	case x.Finished && !y.Finished:
		d.EndedInA++
	case y.Finished && !x.Finished:
		d.EndedInB++
	case apart < -tolerance:
		d.Faster++
	case apart > tolerance:
		d.Slower++
	case (x.Submit - y.Submit).Abs() > tolerance:
		d.Resubmit++
	default:
		d.Equal++
	}
}
