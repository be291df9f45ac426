package calibrate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/cmd/internal/query/querytest"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// aloneOptions calibrate llama2-7b on sixteen devices with one.
func aloneOptions() Options {
	o := options()
	o.Model, o.Devices, o.Alone = "llama2-7b", 16, true
	return o
}

// slowCompute is the step time of a whole plan on a machine that computes 1.6 times as long as the analytic model predicts, as
// site does, with the network that it assumes.
func slowCompute(t *testing.T, c spec.Config) float64 {
	t.Helper()
	p, err := query.Analytic()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := p.(*analytic.Model).Explain(c)
	if err != nil {
		t.Fatal(err)
	}
	traffic := parts.TP + parts.CP + parts.EP + parts.DP
	return 1.6*(parts.Total()-traffic) + traffic
}

// TestCalibrateAlone: with one device of sixteen the error on whole plans falls to less than half, and nine in ten are inside
// their interval; no rank of a plan held out is fitted, and plan and predict use the fit.
func TestCalibrateAlone(t *testing.T) {
	db, reg := querytest.Open(t)
	slow := newSite()
	slow.change = func(c spec.Config) float64 {
		if c.Plan.TP > 1 {
			return 1 / 1.5 // all compute is as slow
		}
		return 1
	}
	s, rows := measureAt(t, slow, aloneOptions(), db)
	r, err := s.report(t.Context(), rows, reg)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	ranks := 0
	for _, m := range rows.all() {
		if m.Config.Plan.Devices() > 1 != m.Config.Alone() {
			t.Errorf("%s on one device has stage %d", m.Config.Plan, m.Config.AloneStage)
		}
		if m.Config.Alone() {
			ranks++
		}
	}
	for _, m := range rows.HeldOut {
		held[m.Config.Plan.String()] = true
	}
	for _, m := range rows.Chosen {
		if held[m.Config.Plan.String()] {
			t.Errorf("%s was held out and chosen", m.Config.Plan)
		}
	}
	if ranks < 20 || r.Cards[0].NAlone == 0 || !r.Cards[0].BeatsUnfitted() || !strings.Contains(strings.Join(r.Warnings, "\n"), "are one rank without the others") {
		t.Errorf("%d of %d rows are ranks; card %+v; warnings %q", ranks, r.Points, r.Cards[0], r.Warnings)
	}
	if !r.Halved || r.Best[0].Devices != 16 {
		t.Errorf("before %+v, after %+v, best %+v", r.Before, r.After, r.Best)
	}
	fitted, _, err := reg.Get(r.Cards[0].Key, r.Cards[0].Family)
	if err != nil {
		t.Fatal(err)
	}
	before, after := wholeErrors(t, hybridFamily(t).Unfitted, s), wholeErrors(t, fitted, s)
	t.Logf("whole plans: before %+v, after %+v", before, after)
	if after.Plans < 20 || after.Mean > before.Mean/2 || after.Coverage < 0.9 || after.HalfWidth >= before.HalfWidth {
		t.Errorf("whole plans: before %+v, after %+v", before, after)
	}
}

// wholeErrors returns the accuracy of p on the whole plans of s for more than one device.
func wholeErrors(t *testing.T, p perfmodel.Predictor, s *session) Accuracy {
	t.Helper()
	var predicted []*StepSec
	var truth []float64
	for _, c := range wholePlans(s.Points) {
		if c.Plan.Devices() == 1 {
			continue
		}
		sec := slowCompute(t, c)
		got, err := predict(t.Context(), p, c, sec)
		if err != nil || got == nil {
			t.Fatal(got, err)
		}
		predicted, truth = append(predicted, got), append(truth, sec)
	}
	return accuracy(predicted, truth)
}

// TestCalibrateAloneCampaign: alone: true of a campaign file is enough, and its largest plan says for how many devices the best
// plan is sought.
func TestCalibrateAloneCampaign(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alone.yaml")
	if err := writeFile(file, []byte("name: ranks\nmodels: [GPT2-Medium]\nrunner: synthetic\nspace: {shapes: [1, 8], micro_batch: [1, 2, 4], accumulation: [8], tp: [1, 2], pp: [1, 2], alone: true}\n")); err != nil {
		t.Fatal(err)
	}
	db, reg := querytest.Open(t)
	o := options()
	o.Model, o.Runner, o.Devices, o.Alone = file, "", 0, false
	s, rows := measureAt(t, newSite(), o, db)
	if n := len(wholePlans(s.Points)); n != 15 || aloneCount(s.Points) != 18 || s.o.Devices != 8 {
		t.Errorf("%d plans, %d ranks, for %d devices", n, aloneCount(s.Points), s.o.Devices)
	}
	if _, err := s.report(t.Context(), rows, reg); err != nil {
		t.Error(err)
	}
	stored, err := query.RowsOf(t.Context(), db, store.Filter{Sources: []string{"campaign/calibrate-ranks"}})
	if err != nil || !slices.ContainsFunc(stored, func(m spec.Measurement) bool { return m.Config.AloneStage == 2 }) {
		t.Errorf("%d rows stored, %v", len(stored), err)
	}
	o.Runner, o.Alone = "replay:x", true
	if _, _, err = open(t.Context(), o, &query.Resolver{}, nil); fail.Code(err) != fail.Usage || !strings.Contains(err.Error(), "runner replay cannot measure one rank") {
		t.Error(err)
	}
}
