package report

import (
	_ "embed" // the page's parts
	"encoding/json"
	"html/template"
	"io"
	"slices"

	pageparts "github.com/pacer-ml/pacer/planner/report/page"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// HTMLInput is the content of a page.
type HTMLInput struct {
	Title   string        // "" = "Simulated schedules"
	Results []*sim.Result // shown in this order
	Gantts  []*Gantt      // one per result, in their order; nil, or a nil element, is not drawn
	Score   Score         // the jobs that count
	Facts   []Fact        // settings of the runs, shown in this order; those without a value are left out
	Notes   []string      // sentences of the fine print
}

// Fact is a name and its value, such as the cluster, the workload, truth,
// belief, seed, command line or version.
type Fact struct{ Name, Value string }

// WriteHTML writes one self-contained page: its conclusion, a table with a row per run,
// the distributions of job completion times, queueing delays and finish-time fairness,
// utilisation and waiting jobs over time, the jobs on every device, and the fine print.
// It needs no network and reads no other file; tables show without scripts. Its size is
// bounded, whatever the number of jobs and devices.
func WriteHTML(w io.Writer, in HTMLInput) error {
	return pageTemplate.Execute(w, newPage(in))
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
	pageScript   = pageparts.Charts + "\n" + pageparts.Schedules + template.JS("\n"+pageJS)
)

// page is the data of the template.
type page struct {
	Title, Score string
	Conclusion   string // "" = the runs do not compare
	Head         []summaryColumn
	Rows         []pageRow
	Fairness     []fairnessRow // empty if unknown for every job
	Lateness     []latenessRow // empty without guaranteed jobs
	Charts       pageCharts
	Facts        []Fact
	Notes        []string
	Warnings     []pageWarning
	Style        template.CSS
	Plot, Script template.JS
}

type pageRow struct {
	Policy string
	Color  int // 1-based, repeats
	Cells  []pageCell
}

// pageCell is a figure as text, and its exact value for sorting.
type pageCell struct{ Text, Value string }

type pageWarning struct {
	Policy string
	Texts  []string
}

// WriteCharts writes the data of the charts of WriteHTML, a JSON object, for a page that draws them itself.
func WriteCharts(w io.Writer, in HTMLInput) error { return json.NewEncoder(w).Encode(newCharts(in)) }

type pageCharts struct {
	Policies []string `json:"policies"`
	JCT      *chart   `json:"jct"` // a nil chart is not drawn
	Delay    *chart   `json:"delay"`
	Rho      *chart   `json:"rho"`
	Used     *chart   `json:"used"`
	Waiting  *chart   `json:"waiting"`
	// Gantts has an element per policy; nil is not drawn.
	Gantts []*ganttChart `json:"gantts"`
}

func newPage(in HTMLInput) *page {
	p := &page{Title: in.Title, Score: in.Score.words(), Notes: in.Notes, Style: pageStyle, Plot: pageparts.Plot, Script: pageScript}
	if p.Title == "" {
		p.Title = "Simulated schedules"
	}
	for _, f := range in.Facts {
		if f.Value != "" {
			p.Facts = append(p.Facts, f)
		}
	}
	runs := SummarizeAll(in.Results, in.Score)
	p.Conclusion = conclusion(in.Results, runs, in.Score)
	p.fillTable(runs)
	p.Charts = newCharts(in)
	p.fillFairness(in)
	return p
}

func (p *page) fillTable(runs []Summary) {
	for _, c := range summaryColumns {
		if c.shown == nil || slices.ContainsFunc(runs, c.shown) {
			p.Head = append(p.Head, c)
		}
	}
	for i, s := range runs {
		row := pageRow{Policy: s.Policy, Color: i%pageparts.Colors + 1}
		for _, c := range p.Head[1:] {
			row.Cells = append(row.Cells, pageCell{Text: c.text(s), Value: c.value(s).String()})
		}
		p.Rows = append(p.Rows, row)
		if len(s.Warnings) > 0 {
			p.Warnings = append(p.Warnings, pageWarning{s.Policy, s.Warnings})
		}
		if s.Error != "" {
			p.Warnings = append(p.Warnings, pageWarning{s.Policy, []string{"no result: " + s.Error}})
		}
		if s.LateSubmitted != nil || s.LateBackfill != nil {
			p.Lateness = append(p.Lateness, newLatenessRow(s, row.Color))
		}
	}
}

func (p *page) fillFairness(in HTMLInput) {
	if p.Charts.Rho == nil {
		return
	}
	for i, r := range in.Results {
		p.Fairness = append(p.Fairness, newFairnessRow(r, in.Score, i%pageparts.Colors+1))
	}
}

func newCharts(in HTMLInput) pageCharts {
	var out pageCharts
	for _, r := range in.Results {
		out.Policies = append(out.Policies, r.Policy)
	}
	one := func(c chart, ok bool) *chart {
		if !ok {
			return nil
		}
		return &c
	}
	out.JCT, out.Delay, out.Rho = one(jctChart(in.Results, in.Score)), one(delayChart(in.Results, in.Score)), one(rhoChart(in.Results, in.Score))
	out.Used, out.Waiting = one(usageChart(in.Results, heldShare)), one(usageChart(in.Results, waitingJobs))
	for i := range in.Results {
		out.Gantts = append(out.Gantts, nil)
		if i < len(in.Gantts) {
			if c, ok := in.Gantts[i].chart(pageBars / len(in.Results)); ok {
				out.Gantts[i] = &c
			}
		}
	}
	return out
}

func heldShare(r *sim.Result, u sim.Usage) float64 {
	if r.Devices < 1 {
		return 0
	}
	return float64(u.Held) / float64(r.Devices)
}

func waitingJobs(_ *sim.Result, u sim.Usage) float64 { return float64(u.Waiting) }
