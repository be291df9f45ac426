package console

import (
	"math"
	"strings"
	"testing"
)

func TestChart(t *testing.T) {
	var b strings.Builder
	ch := Chart{X: "devices", Y: "samples/s", Points: [][2]float64{{1, 10}, {2, 20}, {math.NaN(), 3}, {4, 40}}}
	if err := ch.Write(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != chartHeight+4 || !strings.HasPrefix(lines[1], "40.0 │") && !strings.HasPrefix(lines[1], "40 │") {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	first, last := []rune(lines[1]), []rune(lines[chartHeight])
	if first[len(first)-1] == '\u2800' || last[len(strings.Split(lines[chartHeight], "│")[0])+1] == '\u2800' {
		t.Errorf("the line does not go from corner to corner:\n%s", b.String())
	}
	b.Reset()
	if err := (Chart{X: "x", Y: "y"}).Write(&b); err != nil || !strings.Contains(b.String(), "two points") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
