package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestBars(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"Time & gap", "ms"}, strings.NewReader("a <b>,50,5,1 %\nnothing,0,,\n"), &out); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v\n%s", err, got)
		}
	}
	// 350 units for 60 ms: 50 are 291.7, and the interval is 58.3 wide.
	for _, want := range []string{`width="291.7"`, `d="M562.5 56.0H620.8"`, "a &lt;b&gt;", "1 %", `width="0.0"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for name, in := range map[string]string{"nothing": "", "too little": "a,1\n", "no number": "a,x,,\n", "below nothing": "a,-1,,\n", "endless": "a,Inf,,\n"} {
		if err := run([]string{"t", "u"}, strings.NewReader(in), io.Discard); err == nil {
			t.Errorf("%s is drawn", name)
		}
	}
}

func TestTick(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 1: 0.2, 1.47: 0.5, 55: 10, 250: 50, 600: 100} {
		if got := tick(most); got < want*0.999 || got > want*1.001 {
			t.Errorf("up to %g in steps of %g, want %g", most, got, want)
		}
	}
}
