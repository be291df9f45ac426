package report

import (
	_ "embed" // the page's parts
	"html/template"
	"io"
	"slices"

	pageparts "github.com/pacer-ml/pacer/planner/report/page"

	"github.com/pacer-ml/pacer/planner"
)

// Input is what goes on a page. Only Request and Ranking have to be there: a
// section without content is left out.
type Input struct {
	// Request is the question Ranking answers.
	Request planner.Request
	// Ranking holds the plans to list, best first, and how many there were.
	// Those that do not fit are not listed.
	Ranking planner.Ranking

	// Time is where the time of a step of the best plan goes, in seconds; Memory
	// what its fullest device holds, in bytes, and HostBytes what it keeps in
	// host memory for each device.
	Time, Memory []Part
	HostBytes    float64

	Front  planner.Ranking // of Planner.Pareto
	Curve  planner.Curve   // of Planner.Curve
	Probes []planner.Probe // of Planner.Probes

	Facts    []Fact   // how the page was made, shown in this order; those with an empty value are not
	Warnings []string // beside those of the predictions of Ranking
}

// Part is a share of a step or of memory, in words.
type Part struct {
	What string
	Size float64 // seconds or bytes
}

// Fact is a name and its value, such as the command line, the performance model
// or the version.
type Fact struct{ Name, Value string }

// WriteHTML writes one self-contained page. It needs no network and reads no
// other file; without scripts everything in a chart is there as a table.
func WriteHTML(w io.Writer, in Input) error {
	return pageTemplate.Execute(w, newPage(&in))
}

// The page's own parts.
var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/page.js
	pageJS string
)

var (
	pageTemplate = template.Must(template.New("page").Parse(pageHTML))
	pageStyle    = pageparts.Style(pageCSS)
	pageScript   = template.JS(pageJS)
)

// page is what the template shows.
type page struct {
	Title, Lead  string
	Best         []string // of the best plan, pieces a line may break between
	Tiles        []tile
	Question     []Fact
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

// charts is what the script draws.
type charts struct {
	Front *frontChart `json:"front"` // nil when there is nothing to draw
	Curve *curveChart `json:"curve"`
}

func newPage(in *Input) *page {
	p := &page{
		Title: title(&in.Request), Question: questionFacts(&in.Request),
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

// warnings returns every distinct warning once, in order of appearance.
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
