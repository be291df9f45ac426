package keyfile

import (
	"strings"
	"testing"
)

// TestCheckNesting: brackets may be as deep as the bound and no deeper, and so may dotted keys where there are such.
func TestCheckNesting(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	keys := func(n int) string { return "x = 1\n" + strings.Repeat("a.", n) + "b = 1.5\n" }
	for _, tc := range []struct {
		text   string
		dotted bool
		want   string
	}{
		{deep(maxNesting) + deep(maxNesting), true, ""},
		{deep(maxNesting + 1), false, "brackets nest deeper than 128"},
		{strings.Repeat("]", 9) + deep(maxNesting+1), false, "brackets nest deeper than 128"},
		{keys(maxNesting), true, ""},
		{keys(maxNesting + 1), true, "a key has more than 128 parts"},
		{keys(maxNesting + 1), false, ""},
		{"a = " + strings.Repeat("1.", 200), true, ""},
	} {
		if err := CheckNesting([]byte(tc.text), tc.dotted); err == nil && tc.want != "" || err != nil && err.Error() != tc.want {
			t.Errorf("%.20s, dotted %v: %v, want %q", tc.text, tc.dotted, err, tc.want)
		}
	}
}
