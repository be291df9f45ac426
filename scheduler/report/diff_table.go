package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// WriteDiffs prints the comparisons, then the largest differences of each, in lines of width
// columns, 0 = the default of Table.
func WriteDiffs(w io.Writer, diffs []Diff, width int) error {
	t := Table{Header: []string{"A", "B", "jobs", "equal", "faster", "slower", "other", "avg JCT A", "avg JCT B", "B / A", "interval"}, Width: width}
	for _, d := range diffs {
		t.Rows = append(t.Rows, []string{d.A, d.B, strconv.Itoa(d.Jobs), strconv.Itoa(d.Equal), strconv.Itoa(d.Faster), strconv.Itoa(d.Slower),
			strconv.Itoa(d.EndedInA + d.EndedInB + d.Resubmit + d.OnlyInA + d.OnlyInB),
			Human(d.AvgA), Human(d.AvgB), d.Ratio.Mean.Fixed(4), d.Ratio.Lo.Fixed(4) + " to " + d.Ratio.Hi.Fixed(4)})
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for _, d := range diffs {
		if err := writeDiff(w, d, width); err != nil {
			return err
		}
	}
	return nil
}

// writeDiff prints what is other than faster or slower about two runs, and the
// largest differences.
func writeDiff(w io.Writer, d Diff, width int) error {
	for _, note := range []struct {
		n    int
		what string
	}{
		{d.EndedInA, "finished in A alone"}, {d.EndedInB, "finished in B alone"}, {d.Resubmit, "submitted at another time, with an equal JCT"},
		{d.OnlyInA, "in A alone"}, {d.OnlyInB, "in B alone"},
	} {
		if note.n > 0 {
			fmt.Fprintf(w, "%s, %s: %d jobs %s\n", d.A, d.B, note.n, note.what)
		}
	}
	if len(d.Largest) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s, %s: largest differences, in seconds\n", d.A, d.B)
	t := Table{Header: []string{"job", "JCT A", "JCT B", "B - A"}, Width: width}
	for _, j := range d.Largest {
		text := Number.String
		if math.Abs(float64(j.Difference)) >= 0.001 {
			text = toMillis
		}
		t.Rows = append(t.Rows, []string{j.ID, text(j.A), text(j.B), text(j.Difference)})
	}
	return t.Write(w)
}

// toMillis writes seconds to the millisecond.
func toMillis(n Number) string {
	return Number(math.Round(float64(n)*1e3) / 1e3).String()
}
