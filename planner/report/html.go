package report

import (
	_ "embed" // the page's parts
	"html/template"
	"io"
	"slices"

	pageparts "github.com/pacer-ml/pacer/planner/report/page"

	"github.com/pacer-ml/pacer/planner"
)

// Input is the content of a page. Only Request and Ranking are required: a section
// without content is left out. WriteHTML only reads it.
type Input struct {
	// Request is the request that Ranking answers.
	Request planner.Request
	// Ranking has the plans to list, best first, and their number. Plans that do
	// not fit are not listed.
	Ranking planner.Ranking
	// BeatsBest is Planner.BeatsBest of the plans of Ranking that fit, in their
	// order; nil = unknown.
	BeatsBest []float64

	// Time is the parts of a step of the best plan in seconds, Memory the parts of
	// the memory of its fullest device in bytes. HostBytes is its host memory per
	// device.
	Time, Memory []Part
	HostBytes    float64

	Front  planner.Ranking // of Planner.Pareto
	Curve  planner.Curve   // of Planner.Curve
	Probes []planner.Probe // of Planner.Probes

	Facts    []Fact   // how the page was made, in this order; empty values are left out
	Warnings []string // besides those of the predictions of Ranking
}

// Part is a named share of a step or of memory.
type Part struct {
	What string
	Size float64 // seconds or bytes
}

// Fact is a name and its value, such as the command line, the performance model
// or the version.
type Fact struct{ Name, Value string }

// WriteHTML writes one self-contained page, which needs no network and no other
// file. Every chart has a table with the same figures, for browsers without scripts.
// The error is that of w.
func WriteHTML(w io.Writer, in Input) error {
	return pageTemplate.Execute(w, newPage(&in))
}

// The page's own assets.
var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.js
	pageJS string
)

var (
	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
	pageStyle    = pageparts.PlanStyle("")
	pageScript   = pageparts.Charts + template.JS("\n"+pageJS)
)

// page is the data of the template.
type page struct {
	Title, Lead  string
	Best         []string // pieces of the best plan, between which a line may break
	Ties         string   // the plans that cannot be distinguished from the best
	Measure      []string // pieces of the plan to measure to decide
	Tiles        []tile
	Request      []Fact
	Plans        *table
	Bars         []bar
	Front        *front
	Curve        *curve
	Probes       *table
	Warnings     []string
	Facts        []Fact
	Charts       charts
	Style        template.CSS
	Plot, Script template.JS
}

// charts is the data of the script.
type charts struct {
	Front *frontChart `json:"front"` // nil = no chart
	Curve *curveChart `json:"curve"`
}

func newPage(in *Input) *page {
	p := &page{
		Title: title(&in.Request), Request: requestFacts(&in.Request),
		Bars: newBars(in), Front: newFront(in), Curve: newCurve(in),
		Warnings: warnings(in), Style: pageStyle, Plot: pageparts.Plot, Script: pageScript,
	}
	for _, f := range in.Facts {
		if f.Value != "" {
			p.Facts = append(p.Facts, f)
		}
	}
	p.fillPlans(in)
	if p.Front != nil {
		p.Charts.Front = &p.Front.chart
	}
	if p.Curve != nil {
		p.Charts.Curve = p.Curve.chart
	}
	return p
}

// warnings returns the distinct warnings in order of appearance.
func warnings(in *Input) []string {
	all := slices.Clone(in.Warnings)
	for _, c := range fitting(in.Ranking.Choices) {
		for _, err := range c.Prediction.Warnings {
			all = append(all, err.Error())
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}
