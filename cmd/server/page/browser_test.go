package page_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// chromium is the browser of all tests. It starts with the first one.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(code)
}

func startChromium() {
	path, err := exec.LookPath("chromium")
	if err != nil {
		chromium.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("force-device-scale-factor", "1"), chromedp.Flag("hide-scrollbars", false))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {})) // of events that are newer than the library
	chromium.ctx, chromium.stop = ctx, func() { cancel(); stop() }
	chromium.err = chromedp.Run(ctx)
}

// tab is a tab of the browser, and what the page did in it.
type tab struct {
	t    testing.TB
	ctx  context.Context
	site string

	mu       sync.Mutex
	requests []string
	faults   []string
}

// patience bounds the time of one action. Tests end earlier unless something is wrong.
var patience = spectest.Patience(time.Minute)

// open returns a tab without a page; the server has the rows as measurements.
func open(t testing.TB, o server.Options, rows ...spec.Measurement) *tab {
	t.Helper()
	needChromium(t)
	db, reg := querytest.Open(t, rows...)
	s, err := server.New(db, reg, o)
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(s.Handler())
	t.Cleanup(site.Close)
	return openAt(t, site.URL)
}

func needChromium(t testing.TB) {
	t.Helper()
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		spectest.Lacks(t, "needs chromium, apt-get install chromium: ", chromium.err)
	}
}

// openAt returns a tab without a page of a site.
func openAt(t testing.TB, site string) *tab {
	t.Helper()
	needChromium(t)
	ctx, cancel := chromedp.NewContext(chromium.ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, site: site}
	chromedp.ListenTarget(ctx, b.listen)
	b.run(network.Enable(), log.Enable(), runtime.Enable())
	return b
}

// listen notes the requests of the page, and what it reports as wrong.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "data:") {
			b.requests = append(b.requests, e.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			args, _ := json.Marshal(e.Args)
			b.faults = append(b.faults, "console: "+string(args))
		}
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "exception: "+e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		// A refused question is no fault: the page shows the reason.
		if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "status of 4") {
			b.faults = append(b.faults, "log: "+e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// run runs actions and ends the test where one fails.
func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	// The first Run of a tab starts it, and its context is that of the tab.
	if chromedp.FromContext(b.ctx).Target == nil {
		ctx = b.ctx
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatalf("%v\nfaults: %q", err, b.faults)
	}
}

const shown = `#view[aria-busy="false"]`

// load opens an address of the page and waits for the view.
func (b *tab) load(address string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.site+address), chromedp.WaitReady(shown))
}

// screen sets the size and the theme.
func (b *tab) screen(width, height int64, theme string) {
	b.t.Helper()
	b.run(emulation.SetDeviceMetricsOverride(width, height, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}))
}

// eval returns the value of a script.
func eval[T any](b *tab, script string) (v T) {
	b.t.Helper()
	b.run(chromedp.Evaluate(script, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// wait waits until a script is true.
func (b *tab) wait(script string) {
	b.t.Helper()
	b.run(chromedp.Poll("("+script+")", nil, chromedp.WithPollingInterval(30*time.Millisecond)))
}

// text returns the text of the first element that selector finds, once it is there.
func (b *tab) text(selector string) (text string) {
	b.t.Helper()
	b.run(chromedp.WaitReady(selector), chromedp.Text(selector, &text))
	return text
}

// address returns the address that the browser shows.
func (b *tab) address() string {
	b.t.Helper()
	return eval[string](b, "location.href")
}

// clean fails the test if the page reported an error or asked another site.
func (b *tab) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Error(f)
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, b.site+"/") && !strings.HasPrefix(r, "blob:"+b.site) {
			b.t.Errorf("request of %s, outside %s", r, b.site)
		}
	}
	b.faults = nil
}

// axe is the script of axe-core 4.14.1.
var axe = sync.OnceValue(func() string {
	packed, err := os.ReadFile("testdata/axe-core-4.14.1.min.js.gz")
	if err != nil {
		panic(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
})

// accessible fails the test with what axe-core finds by rules, all without any.
func (b *tab) accessible(rules ...string) {
	b.t.Helper()
	options := "{}"
	if len(rules) > 0 {
		options = `{runOnly: ["` + strings.Join(rules, `", "`) + `"]}`
	}
	found := eval[[]string](b, axe()+`; axe.run(`+options+`).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`)
	for _, f := range found[:min(len(found), 5)] {
		b.t.Errorf("one of %d: %s", len(found), f)
	}
}

// keys presses keys where the focus is.
func (b *tab) keys(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.run(chromedp.KeyEvent(k))
	}
}

// question is an address with a question.
func question(more string, args ...any) string {
	return "/?model=llama3-8b&accelerator=h100&devices=16&batch=128" + fmt.Sprintf(more, args...)
}
