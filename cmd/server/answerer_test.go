package server

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/answer"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/registry"
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

// Measurements and fits of one model keep the cached answers of others.
func TestOthersAreKept(t *testing.T) {
	s := newServer(t, Options{})
	const other = "Llama2-7B"
	rows := measured(t, s, 1.5)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, map[string]any{"measurements": slices.Concat(rows, as(rows, other))}))
	if got := post[FitResponse](t, s, "/v1/fit", `{}`); len(got.Cards) != 2 {
		t.Fatalf("%+v", got)
	}
	ofMeasured := rows[0].Config.Key()
	ofOther := spec.Key{Model: other, Accelerator: ofMeasured.Accelerator}
	answererOf := func(k spec.Key) *answer.Model {
		t.Helper()
		a, err := s.models.BestFor(k, "hybrid")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	about := func(model string) answer.Target {
		t.Helper()
		q := query.Request{Model: model, Accelerator: "h100", Family: "hybrid"}
		sub, err := s.models.Target(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	inLower := spec.Key{Model: strings.ToLower(ofMeasured.Model), Accelerator: ofMeasured.Accelerator}
	old, oldLower, otherAnswerer := answererOf(ofMeasured), answererOf(inLower), answererOf(ofOther)
	oldAbout, otherAbout := about("llama3-8b"), about("llama2-7b")
	if old != oldLower || old != oldAbout.Model || otherAnswerer != otherAbout.Model || old == otherAnswerer {
		t.Fatal("not one planner for each performance model")
	}

	post[Stored](t, s, "/v1/measurements", bodyOf(t, map[string]any{"measurements": measured(t, s, 4)}))
	if about("llama2-7b") != otherAbout || answererOf(ofOther) != otherAnswerer || answererOf(ofMeasured) != old {
		t.Error("measurements of one model made others, or their planners, be looked up again")
	}
	if now := about("llama3-8b"); now.Target == oldAbout.Target || now.Model != old {
		t.Error("what was measured is not looked up again, or not with its planner")
	}

	post[FitResponse](t, s, "/v1/fit", `{"models":["Llama3-8B"]}`)
	if about("llama2-7b") != otherAbout || answererOf(ofOther) != otherAnswerer {
		t.Error("a fit of one model made others be looked up again")
	}
	if now := answererOf(ofMeasured); now == old || answererOf(inLower) != now || about("llama3-8b").Model != now {
		t.Error("the old model answers about what was fitted again")
	}
}

// Names that only the store has are looked up again after every new measurement, since
// their meaning may have changed.
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
	post[query.Plans](t, s, "/v1/predict", question)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, map[string]any{"measurements": on("Acme Turnip 2")}))
	if w := do(s, "POST", "/v1/predict", question); w.Code != 422 || !strings.Contains(w.Body.String(), "Acme Turnip 2") {
		t.Errorf("an accelerator that may be either of two: %d %s", w.Code, w.Body)
	}
}

// TestOutOfDateLookups: what was looked up before models were fitted again, and returned after that, is not cached.
func TestOutOfDateLookups(t *testing.T) {
	s := newServer(t, Options{})
	dir := t.TempDir()
	var err error
	if s.resolver.Fitted, err = registry.Open(dir); err != nil {
		t.Fatal(err)
	}
	rows := measured(t, s, 1.5)
	post[Stored](t, s, "/v1/measurements", bodyOf(t, rowsToPost{rows}))
	post[FitResponse](t, s, "/v1/fit", `{}`)
	keys := keysOf(rows)
	// With an unreadable model in the registry, every look-up of a card calls Warn.
	if err := os.WriteFile(filepath.Join(dir, "damaged.model"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	about := func() (answer.Target, error) {
		return s.models.Target(t.Context(), &query.Request{Model: "llama3-8b", Accelerator: "h100", Family: "hybrid"})
	}
	best := func() (answer.Target, error) {
		a, err := s.models.BestFor(keys[0], query.Auto)
		return answer.Target{Model: a}, err
	}
	for name, invalidate := range map[string]func([]spec.Key){"fitted": s.models.Fitted, "measured": s.models.Measured} {
		for _, lookUp := range []func() (answer.Target, error){about, best} {
			s.models.Fitted(keys)
			s.resolver.Warn = func(error) { invalidate(keys) }
			old, err1 := lookUp()
			s.resolver.Warn = nil
			now, err2 := lookUp()
			again, err3 := lookUp()
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			if now.Model == old.Model || now.Target != nil && now.Target == old.Target {
				t.Errorf("%s during a look-up: its result was cached", name)
			}
			if again != now {
				t.Errorf("%s: the result of the next look-up was not cached", name)
			}
		}
	}
}
