package campaign

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/cmd/internal/datadir"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/number"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/store"
)

// Tally sums up the stored rows of one run of a campaign. It is part of the JSON of profile
// run and profile status.
type Tally struct {
	Campaign    string       `json:"campaign"`
	Label       string       `json:"label"`
	Source      string       `json:"source"`
	Points      int          `json:"points"` // measured
	Outcomes    Outcomes     `json:"outcomes"`
	DeviceHours float64      `json:"device_hours"` // held, launch included
	HeldSec     float64      `json:"held_s"`       // of all points
	First       time.Time    `json:"first"`        // began
	Last        time.Time    `json:"last"`
	Models      []ModelTally `json:"models"`
}

// ModelTally is the part of a Tally about one model.
type ModelTally struct {
	Model       string   `json:"model"`
	Accelerator string   `json:"accelerator"`
	Points      int      `json:"points"`
	Outcomes    Outcomes `json:"outcomes"`
	Noisy       int      `json:"noisy"`   // ok, but less precise than requested
	Flagged     int      `json:"flagged"` // clocks held back, or devices shared
	Doubted     int      `json:"doubted"` // ok, but too disturbed for a fit
	DeviceHours float64  `json:"device_hours"`
	HeldSec     float64  `json:"held_s"`
}

// Outcomes counts points by outcome.
type Outcomes struct {
	OK      int `json:"ok"`
	OOM     int `json:"oom"`
	Timeout int `json:"timeout"`
	Failed  int `json:"failed"`
}

func (n *Outcomes) add(o spec.Outcome) {
	switch o {
	case spec.OK:
		n.OK++
	case spec.OOM:
		n.OOM++
	case spec.Timeout:
		n.Timeout++
	case spec.Failed:
		n.Failed++
	}
}

// String names the outcomes that occurred: "30 ok, 2 oom".
func (n Outcomes) String() string {
	var parts []string
	for _, o := range []struct {
		n    int
		name string
	}{{n.OK, "ok"}, {n.OOM, "oom"}, {n.Timeout, "timeout"}, {n.Failed, "failed"}} {
		if o.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", o.n, o.name))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// TallyRuns sorts the rows of campaigns into runs, by campaign and label.
func TallyRuns(rows []spec.Measurement) []Tally {
	type id struct{ source, label string }
	runs := map[id][]spec.Measurement{}
	for _, m := range rows {
		k := id{m.Source, m.Env[profiler.EnvRun]}
		runs[k] = append(runs[k], m)
	}
	keys := slices.SortedFunc(maps.Keys(runs), func(a, b id) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.label, b.label))
	})
	out := []Tally{}
	for _, k := range keys {
		out = append(out, TallyRun(strings.TrimPrefix(k.source, profiler.SourcePrefix), k.label, runs[k]))
	}
	return out
}

// TallyRun sums up the rows of one run.
func TallyRun(campaign, label string, rows []spec.Measurement) Tally {
	t := Tally{Campaign: campaign, Label: label, Source: profiler.SourcePrefix + campaign, Models: []ModelTally{}}
	byKey := map[spec.Key]*ModelTally{}
	of := func(m spec.Measurement) *ModelTally {
		k := m.Config.Key()
		if byKey[k] == nil {
			byKey[k] = &ModelTally{Model: k.Model, Accelerator: k.Accelerator}
		}
		return byKey[k]
	}
	for _, m := range profiler.Latest(rows) { // a point that was measured again counts once
		of(m).add(m)
		t.Points++
		t.Outcomes.add(m.Outcome)
	}
	for _, m := range rows {
		of(m).addHeld(m)
		if t.First.IsZero() || m.At.Before(t.First) {
			t.First = m.At.UTC()
		}
		if m.At.After(t.Last) {
			t.Last = m.At.UTC()
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(byKey), func(a, b spec.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		t.Models = append(t.Models, *byKey[k])
		t.DeviceHours += byKey[k].DeviceHours
		t.HeldSec += byKey[k].HeldSec
	}
	return t
}

func (t *ModelTally) add(m spec.Measurement) {
	t.Points++
	t.Outcomes.add(m.Outcome)
	if m.Env[profiler.EnvNoise] != "" {
		t.Noisy++
	}
	if m.Env[profiler.EnvThrottle] != "" || m.Env[profiler.EnvShared] != "" {
		t.Flagged++
	}
	if m.Outcome == spec.OK && m.DoubtReason() != "" {
		t.Doubted++
	}
}

func (t *ModelTally) addHeld(m spec.Measurement) {
	held := profiler.HeldSec(m)
	t.HeldSec += held
	t.DeviceHours += held * float64(m.Config.RunDevices()) / 3600
}

// HalfWidth returns half the width of the 95 % interval of the median step time,
// as a fraction of it; ok is false if the runner does not report it.
func HalfWidth(m spec.Measurement) (half float64, ok bool) {
	v, err := strconv.ParseFloat(m.Env[profiler.EnvHalfWidth], 64)
	return v, err == nil && v > 0 && !math.IsInf(v, 0)
}

// TallyCSV has a row per model of every run.
func TallyCSV(runs []Tally) [][]string {
	csv := [][]string{{"campaign", "label", "model", "accelerator", "points", "ok", "oom", "timeout", "failed", "noisy", "flagged",
		"device_hours", "held_s", "first", "last", "doubted"}}
	for _, r := range runs {
		for _, m := range r.Models {
			n := m.Outcomes
			csv = append(csv, []string{r.Campaign, r.Label, m.Model, m.Accelerator, strconv.Itoa(m.Points), strconv.Itoa(n.OK), strconv.Itoa(n.OOM),
				strconv.Itoa(n.Timeout), strconv.Itoa(n.Failed), strconv.Itoa(m.Noisy), strconv.Itoa(m.Flagged), number.Float(m.DeviceHours),
				number.Float(m.HeldSec), r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339), strconv.Itoa(m.Doubted)})
		}
	}
	return csv
}

// StoredRows returns the stored rows of a campaign, of all campaigns if name is empty. A name
// without rows is an error.
func StoredRows(ctx context.Context, d *datadir.Dir, name string) ([]spec.Measurement, error) {
	tallies, err := d.Summary(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range tallies {
		if name, ok := strings.CutPrefix(t.Source, profiler.SourcePrefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if name != "" && !slices.Contains(names, name) {
		hint := cmp.Or(strings.Join(names, ", "), "none yet: pacer profile run CAMPAIGN.yaml measures one")
		return nil, fail.NoAnswerf("profile: no point of campaign %s is stored (stored campaigns: %s)", name, hint)
	}
	var f store.Filter
	for _, n := range names {
		if name == "" || n == name {
			f.Sources = append(f.Sources, profiler.SourcePrefix+n)
		}
	}
	if len(f.Sources) == 0 {
		return nil, nil
	}
	return d.Rows(ctx, f)
}
