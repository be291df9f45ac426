package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
)

// runTally is what one run of a campaign has measured, by its stored rows. It
// is JSON of profile run and profile status.
type runTally struct {
	Campaign    string       `json:"campaign"`
	Label       string       `json:"label"`
	Source      string       `json:"source"`
	Points      int          `json:"points"` // measured
	Outcomes    outcomeCount `json:"outcomes"`
	DeviceHours float64      `json:"device_hours"` // held, launch included
	HeldSec     float64      `json:"held_s"`       // of all points
	First       time.Time    `json:"first"`        // began
	Last        time.Time    `json:"last"`
	Models      []modelTally `json:"models"`
}

// modelTally is the part of a runTally that is about one model.
type modelTally struct {
	Model       string       `json:"model"`
	Accelerator string       `json:"accelerator"`
	Points      int          `json:"points"`
	Outcomes    outcomeCount `json:"outcomes"`
	Noisy       int          `json:"noisy"`   // ok, but not as sharp as asked
	Flagged     int          `json:"flagged"` // clocks held back, or devices shared
	Doubted     int          `json:"doubted"` // ok, but so disturbed that no fit takes them
	DeviceHours float64      `json:"device_hours"`
	HeldSec     float64      `json:"held_s"`
}

// outcomeCount counts points by outcome.
type outcomeCount struct {
	OK      int `json:"ok"`
	OOM     int `json:"oom"`
	Timeout int `json:"timeout"`
	Failed  int `json:"failed"`
}

func (n *outcomeCount) add(o spec.Outcome) {
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

// String names the outcomes there are: "30 ok, 2 oom".
func (n outcomeCount) String() string {
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

// tallyRuns sorts the rows of campaigns into runs, by campaign and label.
func tallyRuns(rows []spec.Measurement) []runTally {
	type id struct{ source, label string }
	runs := map[id][]spec.Measurement{}
	for _, m := range rows {
		k := id{m.Source, m.Env[profiler.EnvRun]}
		runs[k] = append(runs[k], m)
	}
	keys := slices.SortedFunc(maps.Keys(runs), func(a, b id) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.label, b.label))
	})
	out := []runTally{}
	for _, k := range keys {
		out = append(out, tallyRun(strings.TrimPrefix(k.source, sourcePrefix), k.label, runs[k]))
	}
	return out
}

// sourcePrefix begins the source of every campaign's measurements.
const sourcePrefix = "campaign/"

// tallyRun adds the rows of one run up.
func tallyRun(campaign, label string, rows []spec.Measurement) runTally {
	t := runTally{Campaign: campaign, Label: label, Source: sourcePrefix + campaign, Models: []modelTally{}}
	byKey := map[spec.Key]*modelTally{}
	for _, m := range rows {
		k := m.Config.Key()
		if byKey[k] == nil {
			byKey[k] = &modelTally{Model: k.Model, Accelerator: k.Accelerator}
		}
		byKey[k].add(m)
		t.Points++
		t.Outcomes.add(m.Outcome)
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

func (t *modelTally) add(m spec.Measurement) {
	t.Points++
	t.Outcomes.add(m.Outcome)
	if m.Env[profiler.EnvNoise] != "" {
		t.Noisy++
	}
	if m.Env[profiler.EnvThrottle] != "" || m.Env[profiler.EnvShared] != "" {
		t.Flagged++
	}
	if m.Outcome == spec.OK && m.Doubt != "" {
		t.Doubted++
	}
	held := profiler.HeldSec(m)
	t.HeldSec += held
	t.DeviceHours += held * float64(m.Config.Plan.Devices()) / 3600
}

// halfWidth returns half the width of the 95 % interval of the median step time,
// as a fraction of it; ok is false where the runner does not say.
func halfWidth(m spec.Measurement) (half float64, ok bool) {
	v, err := strconv.ParseFloat(m.Env[profiler.EnvHalfWidth], 64)
	return v, err == nil && v > 0 && !math.IsInf(v, 0)
}
