package report

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	for name, c := range map[string]struct {
		table Table
		want  string
	}{
		"numbers flush right": {
			Table{Header: []string{"plan", "samples/s", "mem", "fits"},
				Rows: [][]string{{"dp=8", "103.5", "71.2 GiB", "yes"}, {"dp=16,zero=1", "9", "-", "no"}}},
			"plan          samples/s       mem  fits\n" +
				"dp=8              103.5  71.2 GiB  yes\n" +
				"dp=16,zero=1          9         -  no\n",
		},
		"not a number": {
			Table{Header: []string{"cluster", "n"}, Rows: [][]string{{"8x8xA800", "1"}, {"20x4", "22"}}},
			"cluster    n\n8x8xA800   1\n20x4      22\n",
		},
		"short rows, line breaks, characters": {
			Table{Header: []string{"a", "größe"}, Rows: [][]string{{"x\ny"}, {"z", "µ"}}},
			"a    größe\nx y\nz    µ\n",
		},
		"wrapped": {
			Table{Header: []string{"plan", "why"}, Rows: [][]string{{"dp=2,tp=4,pp=1,mb=2", "needs 93.1 GiB of 80"}}, Width: 36},
			"plan               why\ndp=2,tp=4,pp=1,    needs 93.1 GiB of\nmb=2               80\n",
		},
		"a long word is broken before its options": {
			Table{Header: []string{"policy", "n"}, Rows: [][]string{{"gavel-las:sharing", "1"}, {"pacerpacerpacerpacer", "22"}}, Width: 20},
			"policy             n\ngavel-las          1\n:sharing\npacerpacerpacerp  22\nacer\n",
		},
		"header only": {Table{Header: []string{"a", "b"}}, "a  b\n"},
		"nothing":     {Table{}, ""},
	} {
		if got := c.table.String(); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
}

// TestTableKeepsEverything checks that wrapping loses only spaces, and keeps the
// width if columns may shrink.
func TestTableKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`[a-zé,= ]{0,60}`)
		tab := Table{Header: []string{"x", "y"}, Width: rapid.IntRange(34, 120).Draw(t, "width")}
		var want string
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := []string{cell.Draw(t, "x"), cell.Draw(t, "y")}
			tab.Rows = append(tab.Rows, row)
			want += row[0] + row[1]
		}
		got := tab.String()
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > tab.Width {
				t.Fatalf("a line of %d, width %d:\n%s", n, tab.Width, got)
			}
		}
		count := func(s string) map[rune]int {
			m := map[rune]int{}
			for _, r := range s {
				m[r]++
			}
			return m
		}
		g, w := count(got[strings.Index(got, "\n"):]), count(want)
		for r, n := range w {
			if r != ' ' && g[r] != n {
				t.Fatalf("%q %d times, want %d:\n%s", r, g[r], n, got)
			}
		}
	})
}

type fullDisk struct{}

var errFull = errors.New("disk full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	runs := SummarizeAll(small(), Score{})
	for name, err := range map[string]error{
		"table":           WriteTable(fullDisk{}, runs),
		"json":            WriteJSON(fullDisk{}, runs),
		"csv":             WriteCSV(fullDisk{}, runs),
		"jobs":            WriteJobs(fullDisk{}, CSV, small(), Score{}),
		"html":            WriteHTML(fullDisk{}, HTMLInput{Results: small()}),
		"jobs in Parquet": WriteJobs(fullDisk{}, Parquet, small(), Score{}),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v, want the writer's error", name, err)
		}
	}
}
