package server

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// measuredRow returns a row of Llama3-8B on H100s.
func measuredRow(t *testing.T, plan, source string, sec float64) spec.Measurement {
	t.Helper()
	m, a := querytest.Named(t, "llama3-8b", "h100")
	p, err := spec.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	shape := strings.TrimPrefix(strings.Repeat("+8", p.Devices()/8), "+")
	return spec.Measurement{Config: spec.Config{Model: m, Accelerator: a, Plan: p, Shape: spec.Shape{Devices: shape}, Link: spec.Link{IntraBps: 450e9, InterBps: 50e9}},
		Outcome: spec.OK, StepSec: []float64{sec}, Source: source, Origin: plan, At: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
}

func TestNearest(t *testing.T) {
	doubted := measuredRow(t, "dp=16,tp=1,mb=1,ga=16,zero=3", "rubick", 9)
	doubted.Doubt = "marked suspect"
	failed := measuredRow(t, "dp=8,tp=2,mb=1,ga=16,zero=2", "lab", 8)
	failed.Outcome, failed.Reason, failed.StepSec = spec.Failed, "a crash", nil
	db, reg := querytest.Open(t, measuredRow(t, "dp=8,tp=2,mb=1,ga=16,zero=1", "lab", 7), measuredRow(t, "dp=4,tp=8,mb=1,ga=32,zero=1", "lab", 6), doubted, failed)
	s, err := New(db, reg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := post[Nearest](t, s, "/v1/nearest", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,tp=2,mb=1,ga=16,zero=1","top":2}`)
	if got.Compared != 3 || len(got.Rows) != 2 {
		t.Fatalf("%d of %d compared rows, want 2 of 3 without the failed one: %+v", len(got.Rows), got.Compared, got.Rows)
	}
	first, second := got.Rows[0], got.Rows[1]
	if first.Plan != "dp=8,tp=2,pp=1,mb=1,ga=16,zero=1" || first.StepTimeSec != 7 || first.Source != "lab" {
		t.Errorf("nearest %+v, want the plan itself", first)
	}
	for _, d := range first.Differs {
		if d.What != "precision" && d.What != "training stack" {
			t.Errorf("the plan itself differs in %+v", d)
		}
	}
	if first.Predicted == nil || !(first.Predicted.StepTimeLo < first.Predicted.StepTimeSec && first.Predicted.StepTimeSec < first.Predicted.StepTimeHi) {
		t.Errorf("prediction of the row %+v", first.Predicted)
	}
	if !(second.Distance > first.Distance) {
		t.Errorf("distances %g, %g, want rising ones", first.Distance, second.Distance)
	}
	all := post[Nearest](t, s, "/v1/nearest", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=8,tp=2,mb=1,ga=16,zero=1"}`)
	found := false
	for _, r := range all.Rows {
		if r.Source == "rubick" {
			found = r.Doubt == "marked suspect" && strings.HasPrefix(r.URL, "https://")
		}
	}
	if !found {
		t.Errorf("no row in doubt with its address in %+v", all.Rows)
	}
	if w := do(s, http.MethodPost, "/v1/nearest", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=0"}`); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "plan") {
		t.Errorf("a plan of no devices: %d %s", w.Code, w.Body)
	}
}

func TestSources(t *testing.T) {
	doubted := measuredRow(t, "dp=16,tp=1,mb=1,ga=16,zero=3", "lab", 9)
	doubted.Doubt = "marked suspect"
	db, reg := querytest.Open(t, measuredRow(t, "dp=8,tp=2,mb=1,ga=16,zero=1", "lab", 7), doubted)
	s, err := New(db, reg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := do(s, http.MethodGet, "/v1/sources", "")
	for _, want := range []string{`"state":"used"`, `"state":"in doubt"`, `"reason":"marked suspect"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in %s", want, w.Body)
		}
	}
	if w := do(newServer(t, Options{}), http.MethodGet, "/v1/sources", ""); !strings.Contains(w.Body.String(), `"groups":[]`) {
		t.Errorf("of an empty store: %s", w.Body)
	}
}

func TestNetwork(t *testing.T) {
	s := newServer(t, Options{})
	const config = `{"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,"max_position_embeddings":8192}`
	got := post[answer.Network](t, s, "/v1/network", `{"config":`+config+`}`)
	if math.Abs(got.Params/8030261248-1) > 1e-3 || got.Network.Layers != 32 || got.Network.KVHeads != 8 {
		t.Errorf("%.0f parameters, %+v", got.Params, got.Network)
	}
	for _, bad := range []string{`{}`, `{"config":{}}`, `{"config":[]}`, `{"config":{"model_type":"llama","hidden_size":-1}}`} {
		if w := do(s, http.MethodPost, "/v1/network", bad); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
}

// TestPageNeedsNoToken asks for the files of the page and for an answer without the token.
func TestPageNeedsNoToken(t *testing.T) {
	s := newServer(t, Options{Token: "secret"})
	for path, want := range map[string]int{"/": 200, "/page/main.js": 200, "/page/nothing.js": 404, "/v1/models": 401} {
		if w := do(s, http.MethodGet, path, ""); w.Code != want {
			t.Errorf("GET %s: %d, want %d", path, w.Code, want)
		}
	}
	if w := do(newServer(t, Options{}), http.MethodPost, "/", "{}"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
		t.Errorf("POST of the page: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}
