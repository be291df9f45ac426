package page_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pacer-ml/pacer/cmd/server"
)

// TestBrowserHistory asks questions, and goes back and forth between them.
func TestBrowserHistory(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/")
	b.wait(settled["answer"])
	b.run(chromedp.SetValue("[name=devices]", "8"), chromedp.SendKeys("[name=batch]", kb.Enter))
	b.wait(`location.search === "?model=llama3-8b&accelerator=h100&devices=8&batch=128" && document.querySelector('#view[aria-busy="false"] .grid')`)
	eight := b.text("#h-plan")
	b.run(chromedp.Click(`//nav//a[.="Trust"]`, chromedp.BySearch))
	b.wait(`location.search.includes("view=trust") && document.querySelector("#h-stack")`)
	b.run(chromedp.NavigateBack())
	b.wait(`document.querySelector('#view[aria-busy="false"] #h-plan')`)
	if got := b.text("#h-plan"); got != eight {
		t.Errorf("back: %q, want %q", got, eight)
	}
	b.load(strings.TrimPrefix(b.address(), b.site)) // as from a mail
	b.wait(settled["answer"])
	if got := b.text("#h-plan"); got != eight {
		t.Errorf("the address alone: %q, want %q", got, eight)
	}
	b.clean()
}

// TestBrowserForm refuses values that are wrong before it asks.
func TestBrowserForm(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/")
	b.wait(settled["answer"])
	for _, c := range []struct{ field, value, want string }{
		{"devices", "0", `Devices "0" is not a whole number in 1..1048576.`}, {"devices", "1e3", `Devices "1e3" is not a whole number in 1..1048576.`},
		{"batch", "", "Global batch is missing: samples per optimizer step."}, {"seq", "-5", `Sequence "-5" is not a whole number in 1..16777216.`},
		{"model", "  ", "Model is missing: a name of the catalog, or organisation/name of the Hugging Face Hub."},
	} {
		old := eval[string](b, fmt.Sprintf(`document.querySelector("[name=%s]").value`, c.field))
		set := func(value string) {
			eval[bool](b, fmt.Sprintf(`(document.querySelector("[name=%s]").value = %q, true)`, c.field, value))
		}
		set(c.value)
		b.run(chromedp.Click("button.go"))
		if got := b.text(".wrong"); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.field, c.value, got, c.want)
		}
		set(old)
	}
	b.clean()
}

// TestBrowserBadAddresses opens addresses that hold no question; each says what is wrong, and none runs markup.
func TestBrowserBadAddresses(t *testing.T) {
	b := open(t, server.Options{})
	const markup = `<img src=x onerror=alert(1)><script>alert(1)</script>`
	for address, want := range map[string]string{
		question("&devices=many"):                          `devices "many" is not a whole number in 1..1048576`,
		question("&colour=red"):                            `"colour", which is no part of a question`,
		question("&network=%%7Bnot"):                       "is not a network as JSON",
		question("&network=[1]"):                           "is not a network as JSON",
		question("&view=nothing"):                          `view "nothing" is unknown, want answer, trust, explore, check, simulate, operate`,
		question("&plan=%%E0%%A4%%A"):                      "plan",
		question("&plan=dp%%3D3"):                          "global_batch 128, but dp x mb x ga of the plan is 3",
		"/?model=" + url.QueryEscape(markup):               "The question lacks",
		"/?view=" + url.QueryEscape(markup):                "is longer than 16 characters",
		"/?" + url.QueryEscape(markup) + "=1":              "which is no part of a question",
		question("&framework=%s", url.QueryEscape(markup)): "framework",
		question("&plan=%s", url.QueryEscape(markup)):      "plan",
		question("&view=explore&prices=%s&with=%s&batches=%s", url.QueryEscape(markup), url.QueryEscape(markup), url.QueryEscape(markup)): "Devices and batch",
		strings.Replace(question(""), "llama3-8b", url.QueryEscape(markup), 1):                                                            "model",
		question("&constructor=1&__proto__=2"): "which is no part of a question",
	} {
		b.load(address)
		if got := b.text("#view"); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
		if n := eval[int](b, `document.querySelectorAll("img, script:not([src])").length`); n > 0 {
			t.Errorf("%s: markup of the address is in the page", address)
		}
		b.clean()
	}
	// Addresses of random pieces.
	pieces := []string{"model=", "llama3-8b", "&", "=", "%", "%00", "%ff", "&devices=", "&batch=", "1e400", "-1", "9999999999", "&plan=", "dp=", "&view=", "explore", "trust", "&network=", `{"name":`, `{"name":"x","layers":1e9}`,
		"accelerator=h100", "&seq=0", "&prices=", ":::,,", "&tokens=", "NaN", "&batches=", "1,2,x", "#", "javascript:alert(1)", "🦙", "&&&", "+", "\u202e"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		address := "/?"
		for range 1 + random.IntN(10) {
			address += pieces[random.IntN(len(pieces))]
		}
		b.load(address)
		if got := b.text("#view"); len(got) < 10 {
			t.Errorf("%q shows %q", address, got)
		}
		b.clean()
	}
}

// TestBrowserOwnModel pastes the config.json of a model with markup for a name. Its shape gets into the address.
func TestBrowserOwnModel(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/")
	b.wait(settled["answer"])
	paste := func(text string) {
		t.Helper()
		b.run(chromedp.Evaluate(`document.querySelector(".paste").open = true`, nil), chromedp.SetValue(".paste textarea", text), chromedp.Click(".paste button"))
	}
	paste("{")
	if got := b.text(".wrong:not(:empty)"); !strings.HasPrefix(got, "The text is no JSON") {
		t.Errorf("no JSON: %q", got)
	}
	b.run(chromedp.Evaluate(`document.querySelector(".paste textarea").value = "x".repeat(2e6)`, nil), chromedp.Click(".paste button"))
	b.wait(`document.querySelector(".wrong").textContent.includes("paste that file, not weights")`)
	paste(`{"model_type":"nothing-known","hidden_size":64}`)
	b.wait(`document.querySelector(".wrong").textContent.includes("nothing-known")`)
	paste(`{"_name_or_path":"<b onclick=alert(1)>big</b>","model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,"num_attention_heads":32,
		"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":4096,"secret_weights":[1,2,3]}`)
	b.wait(`location.search.includes("network=") && document.querySelector('#view[aria-busy="false"] .grid')`)
	if address := b.address(); strings.Contains(address, "secret") || len(address) > 8192 {
		t.Errorf("the address holds more than the shape: %s", address)
	}
	if n := eval[int](b, `document.querySelectorAll("b").length`); n > 0 {
		t.Error("the name became markup")
	}
	b.load(strings.TrimPrefix(b.address(), b.site))
	b.wait(settled["answer"])
	b.clean()
}

// TestBrowserLongQuestion asks more than an address can hold.
func TestBrowserLongQuestion(t *testing.T) {
	b := open(t, server.Options{})
	b.load(question("&view=explore"))
	b.wait(settled["explore"])
	b.run(chromedp.Evaluate(`document.querySelector("#with").value = "界".repeat(950), document.querySelector("#with").dispatchEvent(new Event("change"))`, nil))
	b.wait(`document.querySelector("#view .note")?.textContent.includes("longer than 8 kB")`)
	if got := b.address(); got != b.site+"/" {
		t.Errorf("the address is %s, want none of the question", got)
	}
	b.run(chromedp.NavigateBack())
	b.wait(`location.search.includes("view=explore") && ` + settled["explore"])
	b.clean()
}

// TestBrowserInfeasible asks what fits nowhere, and applies a change that the page offers.
func TestBrowserInfeasible(t *testing.T) {
	b := open(t, server.Options{})
	b.load("/?model=llama3.1-405b&accelerator=h100&devices=8&batch=128")
	b.wait(`[...document.querySelectorAll(".fixes strong")].some((e) => e.textContent === "32 devices")`)
	b.accessible()
	b.run(chromedp.Click(`//button[strong[.="32 devices"]]`, chromedp.BySearch))
	b.wait(`location.search.includes("devices=32") && ` + settled["answer"])
	b.load(question("&plan=%s", url.QueryEscape("dp=16,mb=8,ga=1")))
	b.wait(`document.querySelectorAll(".problem .fixes button").length > 0`)
	b.accessible()
	b.run(chromedp.Click(`.problem .fixes button`))
	b.wait(`!location.search.includes("ga%3D1&") && document.querySelector('#view[aria-busy="false"] #h-plan') && !document.querySelector(".problem")`)
	b.clean()
}

// TestBrowserLaunch shows the file that starts a plan, and says why a framework cannot.
func TestBrowserLaunch(t *testing.T) {
	b := open(t, server.Options{})
	b.load(question("&plan=%s", url.QueryEscape("dp=4,tp=2,pp=2,mb=1,ga=32,zero=1,sp=1")))
	b.wait(settled["answer"])
	b.run(chromedp.Click(`//summary[.="Launch file"]`, chromedp.BySearch), chromedp.WaitReady(`#emit option[value="megatron"]`))
	choose := func(name string) {
		b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelector("#emit").value = %q, document.querySelector("#emit").dispatchEvent(new Event("change"))`, name), nil))
	}
	choose("megatron")
	if got := b.text("pre code"); !strings.HasPrefix(got, "#!/usr/bin/env bash") || !strings.Contains(got, "--tensor-model-parallel-size 2") {
		t.Errorf("launch file %q", got)
	}
	choose("deepspeed")
	b.wait(`document.querySelector("details .problem")?.textContent.includes("deepspeed cannot express")`)
	b.accessible()
	b.clean()
}

// TestBrowserToken asks a server with a token. The token gets into no address.
func TestBrowserToken(t *testing.T) {
	b := open(t, server.Options{Token: "correct horse"})
	b.run(chromedp.Navigate(b.site + "/"))
	b.run(chromedp.WaitVisible("#token"))
	b.accessible()
	b.run(chromedp.SendKeys("#token", "wrong"+kb.Enter))
	b.wait(`document.querySelector("#token-why")?.textContent.includes("refuses")`)
	b.run(chromedp.SendKeys("#token", "correct horse"+kb.Enter))
	b.wait(settled["answer"])
	b.load("/?view=operate") // the same tab has it still
	for _, r := range append(b.requests, b.address()) {
		if strings.Contains(r, "horse") {
			t.Errorf("the address %s has the token", r)
		}
	}
	b.clean()
}

// TestBrowserPipeline compares the timeline of a plan with the bubble of 1F1B, (pp-1)/(ga+pp-1), and checks its order.
func TestBrowserPipeline(t *testing.T) {
	b := open(t, server.Options{})
	b.load(question("&plan=%s", url.QueryEscape("dp=2,tp=2,pp=4,mb=1,ga=64,zero=1")))
	b.wait(settled["answer"])
	b.run(chromedp.Click(`//summary[.="Pipeline of a step"]`, chromedp.BySearch), chromedp.WaitReady("canvas.lane"))
	if got := eval[string](b, `document.querySelector("canvas.lane").previousElementSibling.previousElementSibling.textContent`); !strings.Contains(got, "Stages wait for 4.5 % of the time") {
		t.Errorf("bubble of 3/67: %q", got)
	}
	b.wait(`document.querySelectorAll("figure .uplot").length === 1`)
	b.accessible()
	type event struct {
		Phase   string  `json:"ph"`
		Stage   int     `json:"tid"`
		At, Dur float64 // microseconds
	}
	events := eval[[]event](b, `import("/page/timeline.js").then((m) => m.trace("p", m.simulate({schedule: "1f1b", pp: 2, vp: 1, ga: 3}, {F: 1, B: 2})).traceEvents.map((e) => ({ph: e.ph, tid: e.tid, At: e.ts, Dur: e.dur})))`)
	if len(events) != 2*2*3 {
		t.Errorf("%d events in the trace, want 12", len(events))
	}
	for _, e := range events {
		if e.Phase != "X" || e.Stage < 1 || e.Stage > 2 || e.At < 0 || e.Dur != 1e6 && e.Dur != 2e6 {
			t.Errorf("event %+v", e)
		}
	}
	type bar struct {
		Kind      string `json:"kind"`
		Stage     int    `json:"stage"`
		M         int    `json:"m"`
		Chunk     int    `json:"chunk"`
		From, End float64
	}
	for _, c := range []struct {
		schedule   string
		pp, vp, ga int
		wait       float64 // share of the time in which stages wait; below 0 = not compared
	}{
		{"1f1b", 4, 1, 8, 3. / 11}, {"gpipe", 4, 1, 8, 3. / 11}, {"1f1b", 4, 2, 8, 1.5 / 9.5}, {"1f1b", 8, 1, 2, 7. / 9}, {"1f1b", 1, 1, 5, 0}, {"zb-h1", 4, 1, 16, -1}, {"zb-h2", 2, 1, 1, -1},
	} {
		bars := eval[[]bar](b, fmt.Sprintf(`import("/page/timeline.js").then((m) => m.simulate({schedule: %q, pp: %d, vp: %d, ga: %d}, {F: 1, B: %s, W: 1}))`,
			c.schedule, c.pp, c.vp, c.ga, map[bool]string{true: "1", false: "2"}[strings.HasPrefix(c.schedule, "zb-")]))
		checkBars(t, fmt.Sprint(c), c.pp, c.vp, c.ga, strings.HasPrefix(c.schedule, "zb-"), c.wait, func(yield func(kind string, stage, m, chunk int, from, end float64)) {
			for _, x := range bars {
				yield(x.Kind, x.Stage, x.M, x.Chunk, x.From, x.End)
			}
		})
	}
	b.clean()
}

// checkBars checks that every operation runs once, after those it needs, and that no stage runs two at a time.
func checkBars(t *testing.T, name string, pp, vp, ga int, apart bool, wait float64, each func(func(kind string, stage, m, chunk int, from, end float64))) {
	t.Helper()
	type op struct {
		kind       string
		virtual, m int
	}
	begin, ends, busy, last := map[op]float64{}, map[op]float64{}, 0.0, 0.0
	perStage := map[int][][2]float64{}
	each(func(kind string, stage, m, chunk int, from, end float64) {
		o := op{kind, chunk*pp + stage, m}
		if _, twice := ends[o]; twice {
			t.Errorf("%s: %v runs twice", name, o)
		}
		begin[o], ends[o], busy, last = from, end, busy+end-from, max(last, end)
		perStage[stage] = append(perStage[stage], [2]float64{from, end})
	})
	kinds := map[bool]int{true: 3, false: 2}[apart]
	if len(ends) != kinds*pp*vp*ga {
		t.Errorf("%s: %d operations, want %d", name, len(ends), kinds*pp*vp*ga)
	}
	for o, from := range begin {
		need := op{"F", o.virtual - 1, o.m}
		switch {
		case o.kind == "W":
			need = op{"B", o.virtual, o.m}
		case o.kind == "B" && o.virtual == pp*vp-1:
			need = op{"F", o.virtual, o.m}
		case o.kind == "B":
			need = op{"B", o.virtual + 1, o.m}
		case o.virtual == 0:
			continue
		}
		if end, ok := ends[need]; !ok || end > from+1e-9 {
			t.Errorf("%s: %v begins at %g, before %v ends at %g", name, o, from, need, end)
		}
	}
	for stage, times := range perStage {
		for i, a := range times {
			for _, c := range times[i+1:] {
				if a[0] < c[1]-1e-9 && c[0] < a[1]-1e-9 {
					t.Fatalf("%s: stage %d runs %v and %v at a time", name, stage, a, c)
				}
			}
		}
	}
	if got := 1 - busy/last/float64(pp); wait >= 0 && (got < wait-1e-6 || got > wait+1e-6) {
		t.Errorf("%s: stages wait for %g of the time, want %g", name, got, wait)
	}
}

// TestBrowserLastChoice: the plan that was chosen last is shown, also where the answer about an earlier one comes later.
func TestBrowserLastChoice(t *testing.T) {
	b := open(t, server.Options{})
	b.load(question(""))
	b.wait(settled["answer"])
	plan := func(row int) string { return b.text(fmt.Sprintf(`.grid tr[data-row="%d"] code`, row)) }
	slow, last := plan(1), plan(2)
	b.run(chromedp.Evaluate(fmt.Sprintf(`window.late = 0; const ask = window.fetch;
window.fetch = async (url, o) => {
  const answer = await ask(url, o);
  if (String(o?.body).includes(%q) && String(url).includes("fit-check")) { await new Promise((f) => setTimeout(f, 1000)); window.late++; }
  return answer;
}; 0`, slow), nil))
	for _, row := range []int{1, 2} {
		b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll('.grid tr[data-row="%d"] button')[0].click()`, row), nil))
	}
	b.wait(`window.late === 1`)
	time.Sleep(200 * time.Millisecond) // for the page to draw
	if got := b.text("#h-plan"); got != last {
		t.Errorf("the page shows %q, want the plan chosen last, %q", got, last)
	}
	if busy := eval[string](b, `document.querySelector("#plan").getAttribute("aria-busy")`); busy != "false" {
		t.Errorf("aria-busy is %q", busy)
	}
	b.clean()
}
