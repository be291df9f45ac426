package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/ask"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// as are rows of another model.
func as(rows []spec.Measurement, model string) []spec.Measurement {
	out := slices.Clone(rows)
	for i := range out {
		out[i].Config.Model.Name = model
		out[i].Origin += " of " + model
	}
	return out
}

// What was found about other models survives measurements and fits of one.
func TestOthersAreKept(t *testing.T) {
	s := newServer(t, Options{})
	const other = "Llama2-7B"
	rows := measured(t, s, 1.5)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, map[string]any{"measurements": slices.Concat(rows, as(rows, other))}))
	if got := post[Fitted](t, s, "/v1/fit", `{}`); len(got.Cards) != 2 {
		t.Fatalf("%+v", got)
	}
	ofMeasured := rows[0].Config.Key()
	ofOther := spec.Key{Model: other, Accelerator: ofMeasured.Accelerator}
	who := func(k spec.Key) *asked {
		t.Helper()
		a, err := s.known.bestFor(k, "hybrid")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	about := func(model string) subject {
		t.Helper()
		q := ask.Question{Model: model, Accelerator: "h100", Family: "hybrid"}
		sub, err := s.known.of(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	inLower := spec.Key{Model: strings.ToLower(ofMeasured.Model), Accelerator: ofMeasured.Accelerator}
	oldWho, oldLower, otherWho := who(ofMeasured), who(inLower), who(ofOther)
	oldAbout, otherAbout := about("llama3-8b"), about("llama2-7b")
	if oldWho != oldLower || oldWho != oldAbout.asked || otherWho != otherAbout.asked || oldWho == otherWho {
		t.Fatal("not one planner for each performance model")
	}

	post[Stored](t, s, "/v1/measurements", bodyOf(t, map[string]any{"measurements": measured(t, s, 4)}))
	if about("llama2-7b") != otherAbout || who(ofOther) != otherWho || who(ofMeasured) != oldWho {
		t.Error("measurements of one model made others, or who answers, be looked up again")
	}
	if now := about("llama3-8b"); now.Subject == oldAbout.Subject || now.asked != oldWho {
		t.Error("what was measured is not looked up again, or not with its planner")
	}

	post[Fitted](t, s, "/v1/fit", `{"models":["Llama3-8B"]}`)
	if about("llama2-7b") != otherAbout || who(ofOther) != otherWho {
		t.Error("a fit of one model made others be looked up again")
	}
	if now := who(ofMeasured); now == oldWho || who(inLower) != now || about("llama3-8b").asked != now {
		t.Error("the old model answers about what was fitted again")
	}
}

// What the store alone knows is looked up again whenever something is stored:
// the name may mean something else now.
func TestStoredNamesAreLookedUpAgain(t *testing.T) {
	s := newServer(t, Options{})
	rows := measured(t, s, 1)
	on := func(name string) []spec.Measurement {
		out := slices.Clone(rows)
		for i := range out {
			out[i].Config.Accelerator.Name = name
			out[i].Origin += " on " + name
		}
		return out
	}
	const question = `{"model":"llama3-8b","accelerator":"turnip","plan":"dp=8,zero=3,recompute=full","seq":4096}`
	post[Stored](t, s, "/v1/measurements", bodyOf(t, map[string]any{"measurements": on("Acme Turnip 1")}))
	post[ask.Plans](t, s, "/v1/predict", question)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, map[string]any{"measurements": on("Acme Turnip 2")}))
	if w := do(s, "POST", "/v1/predict", question); w.Code != 422 || !strings.Contains(w.Body.String(), "Acme Turnip 2") {
		t.Errorf("an accelerator that may be either of two: %d %s", w.Code, w.Body)
	}
}
