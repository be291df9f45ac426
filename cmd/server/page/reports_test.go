package page_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	plans "github.com/pacer-ml/pacer/planner/report"
	schedules "github.com/pacer-ml/pacer/scheduler/report"
	"github.com/pacer-ml/pacer/scheduler/sim"
)

// TestBrowserReports draws the charts of the reports, which are those of the page, in both themes.
func TestBrowserReports(t *testing.T) {
	b := open(t, server.Options{})
	for _, c := range []struct {
		page   []byte
		charts int
	}{{planReport(t), 3}, {scheduleReport(t), 4}} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(c.page)
		}))
		t.Cleanup(site.Close)
		b.site, b.requests = site.URL, nil
		for _, theme := range []string{"light", "dark"} {
			b.screen(390, 800, theme)
			b.run(chromedp.Navigate(site.URL + "/"))
			b.wait(fmt.Sprintf(`document.querySelectorAll(".uplot").length === %d`, c.charts))
			b.screen(1280, 800, theme)
			b.wait(`[...document.querySelectorAll(".uplot")].every((e) => e.clientWidth > 400)`)
			b.clean()
		}
	}
}

// planReport is the report of Llama3-8B on up to 16 H100s.
func planReport(t *testing.T) []byte {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	analytic, err := query.Analytic()
	must(err)
	m, err := catalog.Model("llama3-8b")
	must(err)
	a, err := catalog.Accelerator("h100")
	must(err)
	node := query.NodeOf(a)
	p, in := planner.New(analytic, planner.Options{}), plans.Input{}
	in.Request = planner.Request{Model: m, Accelerator: a, Link: node.Link, PerNode: node.Devices, NodeHostBytes: node.HostBytes, Devices: 16, GlobalBatch: 128}
	in.Ranking, err = p.Rank(t.Context(), in.Request)
	must(err)
	in.Ranking.Choices = in.Ranking.Choices[:20]
	in.Curve, err = p.Curve(t.Context(), in.Request)
	must(err)
	r := in.Request
	r.MinDevices = 1
	in.Front, err = p.Pareto(t.Context(), r)
	must(err)
	var page bytes.Buffer
	must(plans.WriteHTML(&page, in))
	return page.Bytes()
}

// scheduleReport is the report of three jobs on all devices, one after the other, under two policies.
func scheduleReport(t *testing.T) []byte {
	t.Helper()
	var runs []*sim.Result
	for i, policy := range []string{"fifo", "<b>other"} {
		r := &sim.Result{Policy: policy, Devices: 2}
		for j := range 3 {
			start := time.Duration(j*(100+50*i)) * time.Second
			r.Jobs = append(r.Jobs, sim.JobRecord{Job: spec.Job{ID: spec.JobID(fmt.Sprint(j)), Devices: 2}, Start: start, End: start + 90*time.Second, Finished: true, Scored: true,
				Attained: 180})
			r.Usage = append(r.Usage, sim.Usage{At: start, Held: 2, Waiting: 2 - j}, sim.Usage{At: start + 90*time.Second, Waiting: 2 - j})
		}
		runs = append(runs, r)
	}
	var page bytes.Buffer
	if err := schedules.WriteHTML(&page, schedules.HTMLInput{Results: runs}); err != nil {
		t.Fatal(err)
	}
	return page.Bytes()
}

// BenchmarkBrowserFirstView is the time from the address to the table of plans, on a server that has answered before.
func BenchmarkBrowserFirstView(bench *testing.B) {
	b := open(bench, server.Options{})
	b.load("/")
	for bench.Loop() {
		b.load("/")
		b.wait(settled["answer"])
	}
}

// BenchmarkBrowserScroll scrolls through ten thousand plans and reports frames per second.
func BenchmarkBrowserScroll(bench *testing.B) {
	b := open(bench, server.Options{})
	b.load("/")
	eval[bool](b, `import("/page/core.js").then(({table, h}) => {
		const rows = Array.from({length: 10000}, (_, i) => ({plan: "dp=" + i + ",tp=2", step: i})), column = (name, of) => ({name, width: 10, value: of, cell: (r) => h("code", {}, String(of(r)))});
		document.querySelector("#view").replaceChildren(table([column("a", (r) => r.plan), ...Array.from({length: 8}, (_, i) => column("c" + i, (r) => r.step * i))], rows, {label: "rows"}).element);
		return true;
	})`)
	for bench.Loop() {
		bench.ReportMetric(eval[float64](b, `new Promise((done) => {
			const box = document.querySelector(".scroll.rows"), from = performance.now();
			let n = 0;
			const step = () => {
				box.scrollTop += 120; // 7200 pixels a second at 60 frames
				if (++n === 120) done(1000 * n / (performance.now() - from)); else requestAnimationFrame(step);
			};
			box.scrollTop = 0;
			step();
		})`), "frames/s")
	}
}
