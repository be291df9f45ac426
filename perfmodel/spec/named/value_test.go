package named

import "testing"

func TestParse(t *testing.T) {
	var n int
	var x float64
	var b bool
	var s string
	for _, c := range []struct {
		text string
		to   any
		want string // error
	}{
		{"7", &n, ""}, {"7.5", &n, `"7.5" is not a whole number`}, {"7.5", &x, ""}, {"zz", &x, `"zz" is not a number`},
		{"yes", &b, `"yes" is not true or false`}, {"true", &b, ""}, {"any", &s, ""},
	} {
		got := ""
		if err := Parse(c.text, c.to); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q as %T: error %q, want %q", c.text, c.to, got, c.want)
		}
	}
	if err := Parse("7", &n); err != nil || n != 7 || !b || s != "any" {
		t.Errorf("got %d, %v, %q", n, b, s)
	}
}
