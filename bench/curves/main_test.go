package main

import (
	"strings"
	"testing"
)

const lines = `data,source,order,model,rows,mean
published,own,random,hybrid,0,0.9
published,all,random,hybrid,1,0.1
published,all,random,hybrid,0,0.2
field,all,spread,k-NN,3,0.15
`

// TestCurves: a panel for each directory with the pooled curves, and their legend.
func TestCurves(t *testing.T) {
	panels, err := read(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	if len(panels) != 2 || len(panels[0].curves) != 1 || panels[0].curves[0].errors[1] != 0.1 || panels[0].rows[0] != 0 {
		t.Errorf("%+v", panels)
	}
	var b strings.Builder
	if err := run(strings.NewReader(lines), &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"data/published", "data/field", "hybrid, random", "k-NN, spread", "<svg"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

func TestCurvesRefused(t *testing.T) {
	for _, bad := range []string{"", "data,source\n", strings.Replace(lines, "0.1\n", "much\n", 1), strings.Replace(lines, "hybrid,1,", "hybrid,one,", 1)} {
		if _, err := read(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
