package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/datasets/measured"
	"github.com/pacer-ml/pacer/perfmodel/rowfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// measurements are the built-in ones.
func measurements(t testing.TB) (rows []spec.Measurement) {
	t.Helper()
	set, err := measured.Lookup("cpu-small")
	if err != nil {
		t.Fatal(err)
	}
	for m, err := range rowfile.ReadParquetFrom(set.Name, bytes.NewReader(set.Parquet), int64(len(set.Parquet))) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, m)
	}
	return rows
}

// settled are conditions under which nothing of a view is missing any more.
var settled = map[string]string{
	"answer":   `document.querySelectorAll(".grid tbody tr[data-row]").length > 10`,
	"trust":    `document.querySelector("#h-stack")`,
	"explore":  `!document.querySelector("#view [aria-busy=true]") && document.querySelectorAll(".uplot").length === 3`,
	"check":    `document.querySelector("#view .facts")`,
	"simulate": `document.querySelectorAll("#view table:not(.u-legend)").length === 3 && document.querySelectorAll("#view .uplot").length === 5 && document.querySelector("#view .gantt canvas")`,
	"operate":  `document.querySelector("#h-sources") && document.querySelectorAll(".uplot").length === 1`,
}

// TestBrowserViews shows every view in both themes on a phone and a desktop.
func TestBrowserViews(t *testing.T) {
	b := open(t, server.Options{}, measurements(t)...)
	post(t, b.site+"/v1/fit", `{"rows":8}`)
	post(t, b.site+"/v1/simulations", `{"workload":"jobs=20,per-hour=20,models=llama3-8b+opt-1.3b","cluster":"2x8xH100","policies":["fifo-backfill","rubick","pacer"],"truth":"fitted:analytic","explain":["job-0007"]}`)
	for _, view := range []string{"answer", "trust", "explore", "check", "simulate", "operate"} {
		for _, width := range []int64{390, 1280, 2560} {
			if width == 2560 && (view != "answer" && view != "explore") {
				continue // they are as wide as answer
			}
			t.Run(fmt.Sprintf("%s-%d", view, width), func(t *testing.T) { b.in(t).inBothThemes(view, width) })
		}
	}
}

// inBothThemes shows a view on a screen of a width in pixels. The theme changes colours alone, so that in the dark one only
// they are checked.
func (b *tab) inBothThemes(view string, width int64) {
	b.screen(width, 900, "light")
	b.load(question("&view=%s", view))
	if view == "check" {
		b.paste(launchFile, nil)
	}
	for _, theme := range []string{"light", "dark"} {
		b.screen(width, 900, theme)
		b.wait(settled[view])
		if wide := eval[int64](b, "document.documentElement.scrollWidth"); wide > width {
			b.t.Errorf("%s: the page is %d pixels wide on a screen of %d", theme, wide, width)
		}
		switch {
		case width == 2560:
		case theme == "light":
			b.accessible()
		default:
			b.accessible("color-contrast")
		}
		if name := fmt.Sprintf("%d-%s", width, theme); slices.Contains(inDocs, name) {
			b.looks(view + "-" + name)
		}
	}
	b.clean()
}

// in returns b for a subtest.
func (b *tab) in(t testing.TB) *tab {
	b.t = t
	return b
}

// post sends a request and returns the answer.
func post(t testing.TB, url, body string) []byte {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	out, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s (%v)", url, r.StatusCode, out, err)
	}
	return out
}

// TestBrowserFirstView counts what the first view of a page without a question loads.
func TestBrowserFirstView(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/")
	b.wait(settled["answer"])
	b.clean()
	if len(b.requests) > 10 {
		t.Errorf("%d requests, want at most 10: %q", len(b.requests), b.requests)
	}
	if strings.Contains(b.address(), "?") {
		t.Errorf("the address %s has parameters, want none before the user submits the form", b.address())
	}
}

// TestBrowserFigures compares the figures shown with those of the API.
func TestBrowserFigures(t *testing.T) {
	b := open(t, server.Options{})
	b.load(question(""))
	var out struct {
		Plans []struct {
			Plan    string  `json:"plan"`
			StepSec float64 `json:"step_time_s"`
			Samples float64 `json:"samples_per_s"`
			GiB     float64 `json:"mem_gib"`
			TFLOPs  float64 `json:"tflops_per_gpu"`
			MFU     float64 `json:"mfu"`
		} `json:"plans"`
		Fitting int `json:"fitting"`
	}
	if err := json.Unmarshal(post(t, b.site+"/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":16,"global_batch":128,"top":200}`), &out); err != nil {
		t.Fatal(err)
	}
	b.wait(settled["answer"])
	best := out.Plans[0]
	if got := b.text("#h-plan"); got != best.Plan {
		t.Errorf("best plan %q, want %q", got, best.Plan)
	}
	tiles := b.text(".tiles")
	for _, want := range []string{fmt.Sprintf("%.2f s", best.StepSec), fmt.Sprintf("%.1f", best.GiB), fmt.Sprintf("%.0f", best.TFLOPs), fmt.Sprintf("%.1f %%", 100*best.MFU), "of 989 TFLOP/s"} {
		if !strings.Contains(tiles, want) {
			t.Errorf("no %q in %q", want, tiles)
		}
	}
	for i, want := range out.Plans[:5] {
		if got := b.text(fmt.Sprintf(`.grid tr[data-row="%d"] code`, i)); got != want.Plan {
			t.Errorf("plan %d is %q, want %q", i+1, got, want.Plan)
		}
	}
	// The parts of the bar add up to the whole, and the limits are where the device's memory ends.
	widths := eval[[]float64](b, `[...document.querySelectorAll(".whole .bar span")].map((e) => parseFloat(e.style.width))`)
	sum := 0.0
	for _, w := range widths {
		sum += w
	}
	if want := 100 * best.GiB / 80; sum < want-0.01 || sum > want+0.01 {
		t.Errorf("the bar fills %g %%, want %g %% of 80 GiB", sum, want)
	}
}

// TestBrowserRows sorts, filters, scrolls, pins and selects in a table of ten thousand plans, which keeps under 200 rows.
func TestBrowserRows(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/?model=mixtral-8x22b&accelerator=b300&devices=768&batch=9216")
	b.wait(settled["answer"])
	b.run(chromedp.Click(`//button[starts-with(., "Load all")]`, chromedp.BySearch))
	b.wait(`document.querySelector(".tabled [role=status]").textContent === "10,000 rows"`)
	few := func(when string) {
		t.Helper()
		if n := eval[int](b, `document.querySelectorAll("#view tr").length`); n >= 200 {
			t.Errorf("%d rows in the document %s, want under 200", n, when)
		}
	}
	few("at the top")
	eval[bool](b, `(document.querySelector(".scroll.rows").scrollTop = 1e9, true)`)
	b.wait(`document.querySelector('.grid tr[data-row="9999"]')`)
	few("at the end")
	b.run(chromedp.Click(`//th/button[.="GiB"]`, chromedp.BySearch))
	b.wait(`document.querySelector('.grid tr[data-row="0"]') && document.querySelector("th[aria-sort]").textContent === "GiB"`)
	gib := eval[[]float64](b, `[...document.querySelectorAll(".grid tr[data-row]")].map((r) => +r.cells[7].textContent)`)
	for i := range gib[1:] {
		if gib[i] > gib[i+1] {
			t.Fatalf("sorted by memory: %v", gib)
		}
	}
	b.run(chromedp.SendKeys(`input[type=search]`, "tp=8 zero=1"))
	b.wait(`document.querySelector(".tabled [role=status]").textContent.includes(" of 10,000 rows")`)
	found := eval[[]string](b, `[...document.querySelectorAll(".grid tr[data-row] code")].map((c) => c.textContent)`)
	if len(found) < 2 {
		t.Fatalf("the filter shows %q", found)
	}
	for _, plan := range found {
		if !strings.Contains(plan, "tp=8") || !strings.Contains(plan, "zero=1") {
			t.Errorf("the filter shows %s", plan)
		}
	}
	b.run(chromedp.Click(`.grid tr[data-row="0"] .pin`), chromedp.Click(`.grid tr[data-row="1"] .pin`))
	if got := b.text("#pinned h3"); !strings.HasPrefix(got, "2 plans compared") {
		t.Errorf("pinned: %q", got)
	}
	want := b.text(`.grid tr[data-row="1"] code`)
	b.run(chromedp.Click(`.grid tr[data-row="1"] button.link`))
	b.wait(fmt.Sprintf(`document.querySelector("#h-plan").textContent.endsWith(%q)`, want))
	if !strings.Contains(b.address(), "plan=") {
		t.Errorf("the address %s lacks the plan", b.address())
	}
	b.clean()
}

// TestBrowserKeyboard asks a question, moves through the plans and opens another view by keys alone.
func TestBrowserKeyboard(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/")
	b.wait(settled["answer"])
	focus := func() string {
		return eval[string](b, `(document.activeElement.name || document.activeElement.textContent || document.activeElement.tagName)`)
	}
	tabTo := func(want string) {
		t.Helper()
		for range 60 {
			if focus() == want {
				return
			}
			b.keys(kb.Tab)
		}
		t.Fatalf("60 tabs do not reach %q; the focus is on %q", want, focus())
	}
	tabTo("Skip to the answer")
	before := len(b.requests)
	b.keys(kb.Enter)
	if got := eval[string](b, "document.activeElement.id"); got != "view" || len(b.requests) > before || strings.Contains(b.address(), "#") {
		t.Errorf("the link to the answer leads to %q, with %d requests and the address %s", got, len(b.requests)-before, b.address())
	}
	b.load("/")
	tabTo("devices")
	b.run(chromedp.Evaluate(`document.activeElement.select()`, nil))
	b.keys("3", "2", kb.Enter)
	b.wait(`location.search.includes("devices=32") && document.querySelector('#view[aria-busy="false"] .grid')`)
	// By the arrow keys from plan to plan, and by Enter to one.
	first := b.text(`.grid tr[data-row="0"] code`)
	tabTo(first)
	b.keys(kb.ArrowDown, kb.ArrowDown)
	third := b.text(`.grid tr[data-row="2"] code`)
	if got := focus(); got != third {
		t.Fatalf("two arrows lead to %q, want %q", got, third)
	}
	b.keys(kb.Enter)
	b.wait(fmt.Sprintf(`document.querySelector("#h-plan").textContent === %q`, third))
	if got := focus(); got != third {
		t.Errorf("choosing a plan moves the focus to %q", got)
	}
	b.load(strings.TrimPrefix(b.address(), b.site))
	tabTo("Operate")
	b.keys(kb.Enter)
	b.wait(`document.querySelector('#view[aria-busy="false"] #h-sources')`)
	if got := focus(); got != "Operate" {
		t.Errorf("opening a view moves the focus to %q", got)
	}
	b.clean()
}

// TestBrowserMoney types a price and compares days and money with the figures of the API.
func TestBrowserMoney(t *testing.T) {
	b := open(t, server.Options{})
	b.load(question("&view=explore&tokens=2e12&with=h100,a100-80gb"))
	b.wait(settled["explore"])
	var out struct {
		Plans []struct {
			StepSec float64 `json:"step_time_s"`
		} `json:"plans"`
	}
	if err := json.Unmarshal(post(t, b.site+"/v1/plan", `{"model":"llama3-8b","accelerator":"h100","devices":16,"global_batch":128,"top":1}`), &out); err != nil {
		t.Fatal(err)
	}
	sec := 2e12 / 8192 / 128 * out.Plans[0].StepSec
	b.run(chromedp.SendKeys(`input[aria-label="Price per device-hour of H100-80GB-SXM"]`, "2.5"+kb.Enter))
	b.wait(`location.search.includes("prices=H100-80GB-SXM%3A2.5")`)
	want := strconv.FormatFloat(sec/3600*16*2.5, 'f', 0, 64)
	row := func() []string {
		return eval[[]string](b, `[...document.querySelector("#prices tbody tr").cells].map((c) => c.textContent.replaceAll(",", ""))`)
	}
	if got := row(); got[5] != strconv.FormatFloat(sec/86400, 'f', 0, 64)+" days" || got[7] != want {
		t.Errorf("days and money %q, want %.0f days and %s", got, sec/86400, want)
	}
	b.run(chromedp.SendKeys(`input[aria-label="Price per device-hour of A100-80GB-SXM"]`, "cheap"+kb.Enter), chromedp.WaitReady(`#prices [aria-invalid="true"]`))
	eval[bool](b, `(document.querySelector("#tokens").value = 13, document.querySelector("#tokens").dispatchEvent(new Event("input")), true)`)
	b.wait(`location.search.includes("tokens=10000000000000")`)
	if got := row()[7]; got != strconv.FormatFloat(5*sec/3600*16*2.5, 'f', 0, 64) {
		t.Errorf("money of five times the tokens %s, five times %s", got, want)
	}
	b.load(strings.TrimPrefix(b.address(), b.site))
	b.wait(settled["explore"])
	if got := row()[7]; got != strconv.FormatFloat(5*sec/3600*16*2.5, 'f', 0, 64) {
		t.Errorf("money from the address alone %s, want five times %s", got, want)
	}
	// A figure of the map opens its plans.
	b.run(chromedp.Click(`//td/button[contains(@aria-label, "on 32 devices with batch 256")]`, chromedp.BySearch))
	b.wait(`location.search.includes("devices=32&batch=256") && document.querySelector('#view[aria-busy="false"] #h-plan')`)
	b.clean()
}

// TestBrowserTrust shows measurements of the question itself and of others, and assumes a training stack.
func TestBrowserTrust(t *testing.T) {
	rows := measurements(t)
	near := rows[0]
	near.Doubt = "<b>odd</b>"
	near.Source = "rubick"
	b := open(t, server.Options{}, append(rows[1:], near)...)
	plan := near.Config.Plan.String()
	b.load(fmt.Sprintf("/?view=trust&model=%s&accelerator=%s&devices=%d&batch=%d&seq=%d&plan=%s", url.QueryEscape(near.Config.Model.Name), url.QueryEscape(near.Config.Accelerator.Name),
		near.Config.Plan.Devices(), near.Config.Plan.GlobalBatch(), near.Config.Seq(), url.QueryEscape(plan)))
	b.wait(settled["trust"])
	text := b.text("#view")
	for _, want := range []string{plan, fmt.Sprintf("Of %d measurements.", len(rows)), "in doubt: <b>odd</b>", "This plan itself was measured."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if got := eval[string](b, `document.querySelector(".source a").href`); !strings.HasPrefix(got, "https://github.com/") {
		t.Errorf("the source is linked to %q", got)
	}
	b.load(question("&view=trust"))
	b.wait(settled["trust"])
	b.run(chromedp.Click(`//section[@aria-labelledby="h-stack"]//button[.="Assume it"]`, chromedp.BySearch))
	b.wait(`location.search.includes("framework=") && [...document.querySelectorAll("button")].some((e) => e.textContent === "Assume any stack")`)
	b.clean()
}
