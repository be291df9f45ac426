package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pacer-ml/pacer/cmd/server"
)

// TestBrowserSimulate starts simulations by the form, of drawn jobs and of those of a file, and opens a report.
func TestBrowserSimulate(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/?view=simulate")
	b.run(chromedp.SetValue(`input[name="policies"]`, "nosuch"), chromedp.Click(`#view button.go`))
	b.wait(`document.querySelector("#view .wrong").textContent.includes("nosuch")`)
	b.run(chromedp.SetValue(`input[name="policies"]`, "fifo, rubick"), chromedp.SetValue(`input[name="jobs"]`, "30"), chromedp.SetValue(`input[name="explain"]`, "job-0003"), chromedp.Click(`#view button.go`))
	b.wait(`document.querySelectorAll("#view table:not(.u-legend)").length === 3 && document.querySelector("#view .wrong").textContent === ""`)
	if got := eval[string](b, `[...document.querySelectorAll("#view table:not(.u-legend)")[1].rows].map((r) => r.cells[0].textContent).join(" ")`); got != "Policy fifo rubick" {
		t.Errorf("figures of %q", got)
	}
	jobs := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(jobs, []byte("job_id,submit_s,gpus,duration_s\na,0,4,100\nb,10,32,50\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.SetUploadFiles(`#view input[type="file"]`, []string{jobs}))
	eval[bool](b, `["explain", "start"].every((name) => { document.querySelector("input[name=" + name + "]").value = ""; return true; })`)
	b.run(chromedp.SetValue(`input[name="policies"]`, "fifo"), chromedp.Click(`#view button.go`))
	b.wait(`document.querySelectorAll("#view table:not(.u-legend)").length === 2 && document.querySelector("#view table tbody tr").cells[0].textContent === "2"`)
	b.wait(`document.querySelectorAll("#view table:not(.u-legend)")[1].textContent.includes("2.50 min")`) // makespan
	b.clean()

	// The charts are those of the report, with the same data: here of one policy without fairness.
	b.wait(`document.querySelectorAll("#view .uplot").length >= 3 && document.querySelector("#view .gantt canvas").height > 100`)
	pointed := `(() => { const c = document.querySelector("#view .gantt canvas"), at = c.getBoundingClientRect();
		c.dispatchEvent(new PointerEvent("pointermove", {clientX: at.left + at.width * 0.5, clientY: at.top + 3, bubbles: true})); return document.querySelector("#view .under").textContent; })()`
	if got := eval[string](b, pointed); got != "job a, here on 4 neighbouring devices from 0 s to 1 m 40 s" {
		t.Errorf("the middle of the first device says %q", got)
	}
	if got := eval[string](b, `document.querySelector("#view figure[aria-label=Utilisation] .u-series:nth-child(2) .u-label").textContent`); got != "fifo" {
		t.Errorf("utilisation of %q", got)
	}

	report := eval[string](b, `document.querySelector("#view a[target]").pathname`)
	b.run(chromedp.Navigate(b.site+report), chromedp.WaitReady("#gantt"))
	b.wait(`document.querySelectorAll(".uplot").length >= 3`)
	b.clean()

	b.load("/?view=simulate")
	for left := 1; left >= 0; left-- {
		b.run(chromedp.Click(`//td/button[text()="Delete"]`, chromedp.BySearch))
		b.wait(fmt.Sprintf(`document.querySelectorAll("#view td button:not(.link)").length === %d`, left))
	}
	b.clean()
}
