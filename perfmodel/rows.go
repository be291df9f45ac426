package perfmodel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Usable reports whether m is a row to fit and score on: it ran, has a step
// time and is not in doubt.
func Usable(m spec.Measurement) bool {
	return m.Outcome == spec.OK && m.Doubt == "" && m.MedianStepSec() > 0
}

// GroupByKey splits rows by (model, accelerator); rows keep their order.
func GroupByKey(rows []spec.Measurement) map[spec.Key][]spec.Measurement {
	out := map[spec.Key][]spec.Measurement{}
	for _, m := range rows {
		k := m.Config.Key()
		out[k] = append(out[k], m)
	}
	return out
}

// CompareKeys orders keys by model, then accelerator.
func CompareKeys(a, b spec.Key) int {
	return cmp.Or(strings.Compare(a.Model, b.Model), strings.Compare(a.Accelerator, b.Accelerator))
}

// CompareConfigs is a total order on configurations: 0 only for equal ones, as
// far as they differ in anything a performance model looks at.
func CompareConfigs(a, b spec.Config) int {
	if a == b {
		return 0
	}
	if c := cmp.Or(CompareKeys(a.Key(), b.Key()), cmp.Compare(a.Plan.Devices(), b.Plan.Devices())); c != 0 {
		return c
	}
	if c := cmp.Or(
		strings.Compare(a.Plan.String(), b.Plan.String()),
		strings.Compare(a.Shape.Devices, b.Shape.Devices),
		cmp.Compare(a.Shape.CPUs, b.Shape.CPUs),
		cmp.Compare(a.Shape.HostBytes, b.Shape.HostBytes),
		cmp.Compare(a.Seq(), b.Seq()),
		strings.Compare(a.Framework, b.Framework),
		compareLinks(a.Link, b.Link),
	); c != 0 {
		return c
	}
	return strings.Compare(asJSON(a), asJSON(b)) // the rest: model and accelerator figures
}

func compareLinks(a, b spec.Link) int {
	return cmp.Or(cmp.Compare(a.IntraBps, b.IntraBps), cmp.Compare(a.InterBps, b.InterBps), cmp.Compare(a.HostBps, b.HostBps))
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // a figure that is not finite
		return err.Error()
	}
	return string(b)
}

// repeated is what repeats of a configuration share: c with its defaults
// written out. Rows that spell the same thing differently must not be scored by
// a fit to each other. Figures of the model count: sources sweep widths and
// heads under one name.
func repeated(c spec.Config) spec.Config {
	c.SeqLen, c.Plan = c.Seq(), c.Plan.Normal()
	return c
}

// MergeRepeats returns rows in canonical order, whatever theirs, with one row
// per configuration: repeats become one whose step times are their medians.
func MergeRepeats(rows []spec.Measurement) []spec.Measurement {
	keys, order := make([]spec.Config, len(rows)), make([]int, len(rows))
	for i := range rows {
		keys[i], order[i] = repeated(rows[i].Config), i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if c := CompareConfigs(keys[i], keys[j]); c != 0 {
			return c
		}
		a, b := &rows[i], &rows[j]
		return cmp.Or(CompareConfigs(a.Config, b.Config),
			strings.Compare(a.Source, b.Source), strings.Compare(a.Origin, b.Origin), cmp.Compare(a.MedianStepSec(), b.MedianStepSec()))
	})
	out := make([]spec.Measurement, 0, len(rows))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && keys[order[j]] == keys[order[i]] {
			j++
		}
		m := rows[order[i]]
		if j > i+1 {
			m.StepSec = nil
			for _, r := range order[i:j] {
				m.StepSec = append(m.StepSec, rows[r].MedianStepSec())
			}
		}
		out = append(out, m)
		i = j
	}
	return out
}

// HashRows identifies what was fitted: SHA-256 over configuration and step
// times of rows in order, 32 hexadecimal digits of it.
func HashRows(rows []spec.Measurement) string {
	h := sha256.New()
	for _, m := range rows {
		h.Write([]byte(asJSON(m.Config)))
		h.Write([]byte(asJSON(m.StepSec)))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ErrorSummary returns the mean and the 95th percentile (nearest rank) of
// absolute relative errors, 0 of none.
func ErrorSummary(ape []float64) (mean, p95 float64) {
	if len(ape) == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(ape))
	for _, v := range s {
		mean += v
	}
	return mean / float64(len(s)), s[int(math.Ceil(0.95*float64(len(s))))-1]
}
