package accuracy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRuns(t *testing.T) {
	got := runs([]string{"s: a-08", "s: a-09", "s: a-10", "s: a-12", "s: b-13", "s: b-14", "x", "s: 99999999999999999999"})
	want := []string{"s: a-08 to a-10", "s: a-12", "s: b-13", "s: b-14", "x", "s: 99999999999999999999"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestByReason(t *testing.T) {
	got := byReason([]Refusal{{"a-1", "why"}, {"b-7", "other"}, {"a-2", "why"}, {"a-3", "why"}})
	if len(got) != 2 || got[0].String() != "3 rows (a-1 to a-3): why" || got[1].String() != "1 row (b-7): other" {
		t.Errorf("got %v", got)
	}
}

func TestBars(t *testing.T) {
	bar := func(v float64) []Figure { return []Figure{fraction("mean", v, 0.2, 0.1)} }
	results := []Result{
		{Protocol: "p", Family: "aim", Standing: LeftOut, Figures: bar(0.1)},
		{Protocol: "p", Family: "met", Standing: LeftOut, Figures: bar(0.15)},
		{Protocol: "p", Family: "missed", Standing: LeftOut, Figures: bar(0.21)},
		{Protocol: "p", Family: "in", Standing: InView, Figures: bar(0.01)},
		{Protocol: "p", Family: "few", Standing: LeftOut, Figures: bar(0.01), Summary: Summary{Rows: 10, Refused: 90}},
		{Protocol: "p", Family: "unable", Unable: "cannot"},
	}
	want := [][]string{
		{"protocol", "figure", "must", "aim", "aim", "met", "missed", "in", "few", "unable"},
		{"p", "mean", "20 %", "10 %", "10 %**", "15 %*", "21 %", "[1 %]", "(1 %)", "-"},
	}
	if diff := cmp.Diff(want, FigureTable(results)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text := string(Markdown(results))
	for _, want := range []string{"| p | mean | 20 % | 10 % | 10 %\\*\\* |", "| p | unable | cannot |", "not accuracy"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// TestRemarksOnce: what families share is said once, and a row refused under
// two protocols is named under the first.
func TestRemarksOnce(t *testing.T) {
	both := []Refusal{{"s-1", "why"}, {"s-2", "why"}, {"s-3", "why"}}
	text := string(Markdown([]Result{
		{Protocol: "p", Family: "f", Standing: LeftOut, Summary: Summary{Rows: 97, Refused: 3}, Refusals: both, Notes: []string{"note"}},
		{Protocol: "p", Family: "g", Standing: LeftOut, Summary: Summary{Rows: 97, Refused: 3}, Refusals: both, Notes: []string{"note"}},
		{Protocol: "q", Family: "f", Standing: LeftOut, Summary: Summary{Rows: 98, Refused: 2}, Refusals: both[1:]},
		{Protocol: "q", Family: "h", Standing: LeftOut, Summary: Summary{Rows: 1, Refused: 3}, Refusals: both},
	}))
	for _, want := range []string{"- `p`, `f`, `g`: 3 rows (s-1 to s-3): why\n", "- `p`, `f`, `g`: note\n", "- `q`, `h`: 3 rows, such as s-1: why\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the report has %q %d times:\n%s", want, strings.Count(text, want), text)
		}
	}
	if strings.Contains(text, "- `q`, `f`") {
		t.Errorf("rows are named twice:\n%s", text)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		l    Limit
		v    float64
		want bool
	}{
		{Limit{}, 7, true}, {Limit{AtMost: 1}, 1, true}, {Limit{AtMost: 1}, 1.1, false},
		{Limit{AtLeast: 1}, 0.9, false}, {Limit{0.85, 0.95}, 0.9, true}, {Limit{0.85, 0.95}, 0.96, false},
	} {
		if got := c.l.Keeps(c.v); got != c.want {
			t.Errorf("%+v keeps %g: %v", c.l, c.v, got)
		}
	}
	for v, want := range map[float64]string{812_345: "812,000", 2_577_241: "2,577,000", 68_966: "69,000", 12_345_678: "12,346,000"} {
		if got := thousands(v); got != want {
			t.Errorf("%g is written %s, want %s", v, got, want)
		}
	}
}
