package report

import (
	"bytes"
	"encoding/json"
	"html/template"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
	"github.com/pacer-ml/pacer/planner"
	pageparts "github.com/pacer-ml/pacer/planner/report/page"
)

// bare is a page without its constant parts: style and scripts.
func bare(t *testing.T, in Input) []byte {
	t.Helper()
	p := newPage(&in)
	p.Style, p.Plot, p.Script = "/* style */", "/* uPlot */", "/* script */"
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	spectest.Golden(t, filepath.Join("testdata", "page.html"), bare(t, input()))
}

func TestPageIsWhole(t *testing.T) {
	var one, two bytes.Buffer
	for _, b := range []*bytes.Buffer{&one, &two} {
		if err := WriteHTML(b, input()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("equal inputs give different pages")
	}
	for _, want := range []template.JS{pageparts.Plot, pageScript} {
		if !bytes.Contains(one.Bytes(), []byte(want)) {
			t.Errorf("the page lacks a script of %d bytes", len(want))
		}
	}
	if !bytes.Contains(one.Bytes(), []byte(pageStyle)) {
		t.Error("the page lacks its style sheet")
	}
	for _, bad := range []string{"<script>alert", "<script src", `<link rel="stylesheet`, "@import", "url(", "<b>model", "<guess>", "ZgotmplZ"} {
		if bytes.Contains(one.Bytes(), []byte(bad)) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !bytes.Contains(one.Bytes(), []byte("Copyright (c) 2022 Leon Sorokin")) {
		t.Error("the page holds uPlot without its licence")
	}
}

// TestTablesHoldTheCharts finds every point of the charts in the tables.
func TestTablesHoldTheCharts(t *testing.T) {
	in := input()
	page, _, ok := strings.Cut(string(bare(t, in)), `id="data"`)
	if !ok {
		t.Fatal("no data in the page")
	}
	for _, section := range []string{"h-front", "h-curve"} {
		_, text, _ := strings.Cut(page, `id="`+section+`"`)
		text, _, _ = strings.Cut(text, "</section>")
		for _, want := range []string{"10.00", "3.000"} {
			if !strings.Contains(text, ">"+want+"<") {
				t.Errorf("%s has no cell %s", section, want)
			}
		}
	}
}

func TestPageOfLittle(t *testing.T) {
	silent := choice(1, 3, 0)
	silent.Prediction.Lo, silent.Prediction.Hi, silent.Prediction.MemoryBytes = 0, 0, 0
	silent.Config.Accelerator.MemBytes, silent.Config.Model.ParamCount = 0, 0
	for name, in := range map[string]Input{
		"nothing": {},
		"no plan": {Request: request(), Ranking: planner.Ranking{Misses: 3}},
		"one plan": {Request: planner.Request{Devices: 1, GlobalBatch: 1}, Ranking: planner.Ranking{Choices: []planner.Choice{silent}, Fitting: 1},
			Front: planner.Ranking{Choices: []planner.Choice{silent}}, Curve: planner.Curve{Points: []planner.CurvePoint{{Devices: 1, Choice: silent}}}},
	} {
		page := string(bare(t, in))
		for _, bad := range []string{"NaN", "Inf", "%!", "&lt;nil&gt;"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page holds %s", name, bad)
			}
		}
		if !strings.Contains(page, `{"front":null,"curve":null}`) {
			t.Errorf("%s: a chart of nothing", name)
		}
	}
}

func TestObjectivesInWords(t *testing.T) {
	for _, c := range []struct {
		set  func(*planner.Request)
		want []string
	}{
		{func(*planner.Request) {}, []string{"The fastest plan, on 4 devices; 3 of 4 legal plans fit:", "device-h per million samples", "most samples/s"}},
		{func(r *planner.Request) { r.Objective, r.PricePerHour = planner.Cost, 2 }, []string{"The cheapest plan", ">per million samples"}},
		{func(r *planner.Request) { r.Objective, r.TargetThroughput = planner.MinDevices, 7.5 }, []string{"The plan that reaches the target on the fewest devices, 4; 3 of 4 legal plans fit and reach it:", "fewest devices that make 7.5 samples/s", `"target":7.5`}},
		{func(r *planner.Request) { r.Objective, r.NoiseScale = planner.Goodput, 500 }, []string{"highest goodput", "gradient noise scale of 500", ">goodput <", `"name":"goodput"`}},
		{func(r *planner.Request) { r.Risk = 0.05 }, []string{"fall short of with probability 0.05"}},
		{func(r *planner.Request) { r.GlobalBatch, r.MinBatch, r.MaxBatch = 0, 8, 64 }, []string{"8 to 64 samples a step"}},
	} {
		in := input()
		c.set(&in.Request)
		page := string(bare(t, in))
		for _, want := range c.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s objective: the page lacks %q", in.Request.Objective, want)
			}
		}
	}
}

func TestWarningsOnce(t *testing.T) {
	in := input()
	want := []string{in.Warnings[0], "card & co: its links are a <guess>"}
	if diff := cmp.Diff(want, warnings(&in)); diff != "" {
		t.Error(diff)
	}
}

func TestNumbers(t *testing.T) {
	inf := 1 / sigZero
	for _, c := range []struct{ got, want string }{
		{sig(0, 3), "0"}, {sig(12345, 3), "12345"}, {sig(0.012345, 3), "0.0123"}, {sig(1e-12, 3), "0.000000000"}, {sig(inf, 3), none}, {sig(inf-inf, 3), none},
		{trim(80), "80"}, {trim(3.352), "3.352"}, {trim(0), "0"}, {trim(1200), "1200"}, {trim(0.5), "0.5"},
		{percent(0.1234), "12.3 %"}, {percent(inf), none}, {span(1, 2), "1.00 – 2.00"},
		{large(70.6e9), "70.6 B"}, {large(999), "999"}, {large(1.8e12), "1.80 T"}, {large(1500), "1.50 k"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	b, err := json.Marshal([]figure{1.23456789, nothing(), figure(inf), 1e9})
	if err != nil || string(b) != "[1.23457,null,null,1e+09]" {
		t.Errorf("%s, %v", b, err)
	}
}

var sigZero float64 // not a constant, so that it can be divided by
