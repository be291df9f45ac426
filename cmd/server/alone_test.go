package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/profiler/store"
)

// TestMeasurementsAlone: a row of one rank alone is stored as such, is near no plan, and changes no table of whole steps; a
// stage that the plan lacks is refused.
func TestMeasurementsAlone(t *testing.T) {
	s := newServer(t, Options{})
	const row = `{"measurements":[{"config":{"model":"llama3-8b","plan":"dp=4,tp=8,pp=2,mb=1,ga=8","accelerator":"h100","alone_stage":STAGE},"outcome":"ok","step_sec":[1.5],"source":"mine"}]}`
	if got := post[Stored](t, s, "/v1/measurements", strings.ReplaceAll(row, "STAGE", "2")); got.Added != 1 {
		t.Errorf("%+v", got)
	}
	found := 0
	for m, err := range s.db.Query(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Source != "mine" {
			continue
		}
		if found++; m.Config.AloneStage != 2 || m.Config.Plan.Devices() != 64 || m.Config.Shape.Total() != 64 || perfmodel.Usable(m) {
			t.Errorf("stored %+v", m.Config)
		}
	}
	if found != 1 {
		t.Errorf("%d rows, want 1", found)
	}
	if w := do(s, http.MethodGet, "/v1/measurements/rows?source=mine", ""); !strings.Contains(w.Body.String(), `"alone_stage":2`) {
		t.Errorf("rows: %s", w.Body)
	}
	near := post[Nearest](t, s, "/v1/nearest", `{"model":"llama3-8b","accelerator":"h100","plan":"dp=4,tp=8,pp=2,mb=1,ga=8"}`)
	for _, r := range near.Rows {
		if r.Source == "mine" {
			t.Errorf("the rank is near: %+v", r)
		}
	}
	for stage, want := range map[string]string{"3": "alone_stage=3 is not in [0, pp=2]", "-1": "alone_stage"} {
		if w := do(s, http.MethodPost, "/v1/measurements", strings.ReplaceAll(row, "STAGE", stage)); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), want) {
			t.Errorf("stage %s: %d %s, want %q", stage, w.Code, w.Body, want)
		}
	}
}
