package report

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

func TestParseScore(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Score
	}{
		{"", Score{}},
		{"300-600", Score{First: "300", Last: "600"}},
		{"7-7", Score{First: "7", Last: "7"}},
		{"300-", Score{First: "300"}},
		{"-600", Score{Last: "600"}},
		{"vit-3-vit-90", Score{First: "vit-3", Last: "vit-90"}},
		{"a-b-1-a-b-2", Score{First: "a-b-1", Last: "a-b-2"}},
	} {
		got, err := ParseScore(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseScore(%q) = %+v, %v, want %+v", c.in, got, err, c.want)
		}
		if got.String() != c.in {
			t.Errorf("ParseScore(%q).String() = %q", c.in, got)
		}
	}
	for _, in := range []string{"-", "300", "600-300", "a-b", "1-2-3", "vit-0", "1-99999999999999999999999"} {
		if got, err := ParseScore(in); err == nil {
			t.Errorf("ParseScore(%q) = %+v, want an error", in, got)
		}
	}
}

func TestScoreHas(t *testing.T) {
	for _, c := range []struct {
		score Score
		id    spec.JobID
		want  bool
	}{
		{Score{}, "anything", true},
		{Score{First: "9", Last: "10"}, "9", true},
		{Score{First: "9", Last: "10"}, "10", true}, // "10" < "9" as text
		{Score{First: "9", Last: "10"}, "100", false},
		{Score{First: "9", Last: "10"}, "8", false},
		{Score{First: "9", Last: "10"}, "vit-9", true},
		{Score{First: "vit-9", Last: "vit-10"}, "0010", true},
		{Score{First: "9", Last: "10"}, "anything", false},
		{Score{First: "9"}, "18446744073709551615", true},
		{Score{Last: "9"}, "0", true},
		{Score{Last: "9"}, "10", false},
	} {
		if got := c.score.Has(c.id); got != c.want {
			t.Errorf("%+v.Has(%q) = %v", c.score, c.id, got)
		}
	}
}

func TestScoreIsAnInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num := rapid.Uint64Range(0, 2000)
		a, b, n := num.Draw(t, "first"), num.Draw(t, "last"), num.Draw(t, "job")
		id := func(n uint64) spec.JobID { return spec.JobID(Number(n).String()) }
		s := Score{First: id(a), Last: id(b)}
		if (s.Validate() == nil) != (a <= b) {
			t.Fatalf("Validate of %s: %v", s, s.Validate())
		}
		if s.Has("job-"+id(n)) != (a <= n && n <= b) {
			t.Fatalf("%s has %d: %v", s, n, s.Has(id(n)))
		}
	})
}
