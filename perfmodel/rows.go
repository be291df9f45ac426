package perfmodel

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/perfmodel/spec/stats"
)

// Usable reports whether m may be fitted and scored as a step of its plan: it ran, has a step time and is not doubted, and
// is not of one rank alone.
func Usable(m spec.Measurement) bool { return !m.Config.Alone() && UsableOrAlone(m) }

// UsableOrAlone reports whether m is usable, or would be if it were not of one rank alone (see spec.Config.AloneStage). Such
// rows are for models that predict a rank alone, see Family.Alone.
func UsableOrAlone(m spec.Measurement) bool {
	return m.Outcome == spec.OK && m.DoubtReason() == "" && m.MedianStepSec() > 0
}

// NotAlone returns an error that wraps ErrNotCovered for one rank alone, nil for whole plans: for models that know only
// whole steps. by names the model.
func NotAlone(by string, c *spec.Config) error {
	if !c.Alone() {
		return nil
	}
	return fmt.Errorf("%s: %s, plan %s: %s: the model knows only whole steps: %w", by, c.Key(), c.Plan, c.AloneText(), ErrNotCovered)
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

// CompareConfigs is a total order on configurations. It returns 0 only for configurations that no performance
// model can distinguish.
func CompareConfigs(a, b spec.Config) int {
	if a == b {
		return 0
	}
	if c := cmp.Or(CompareKeys(a.Key(), b.Key()), cmp.Compare(a.Plan.Devices(), b.Plan.Devices())); c != 0 {
		return c
	}
	return comparePlanned(&a, &b, a.Plan.String(), b.Plan.String())
}

// comparePlanned compares configurations of one key and device count, given their plans as text.
func comparePlanned(a, b *spec.Config, planA, planB string) int {
	if c := cmp.Or(
		strings.Compare(planA, planB),
		strings.Compare(a.Shape.Devices, b.Shape.Devices),
		cmp.Compare(a.Shape.CPUs, b.Shape.CPUs),
		cmp.Compare(a.Shape.HostBytes, b.Shape.HostBytes),
		cmp.Compare(a.Seq(), b.Seq()),
		strings.Compare(a.Framework, b.Framework),
		compareLinks(a.Link, b.Link),
	); c != 0 {
		return c
	}
	return strings.Compare(asJSON(*a), asJSON(*b)) // the remaining fields: figures of model and accelerator
}

// OrderConfigs returns the indices of configs in the order of CompareConfigs. Equal configurations are ordered
// by tie, called with their indices, then by index; tie may be nil. It formats each plan once, unlike sorting
// with CompareConfigs.
func OrderConfigs(configs []spec.Config, tie func(i, j int) int) []int {
	order, plans, devices := make([]int, len(configs)), make([]string, len(configs)), make([]int, len(configs))
	for i := range configs {
		order[i], plans[i], devices[i] = i, configs[i].Plan.String(), configs[i].Plan.Devices()
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &configs[i], &configs[j]
		if *a != *b {
			if c := cmp.Or(CompareKeys(a.Key(), b.Key()), cmp.Compare(devices[i], devices[j])); c != 0 {
				return c
			}
			if c := comparePlanned(a, b, plans[i], plans[j]); c != 0 {
				return c
			}
		}
		if tie == nil {
			return 0
		}
		return tie(i, j)
	})
	return order
}

func compareLinks(a, b spec.Link) int {
	return cmp.Or(cmp.Compare(a.IntraBps, b.IntraBps), cmp.Compare(a.InterBps, b.InterBps), cmp.Compare(a.HostBps, b.HostBps))
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // a value is not finite
		return err.Error()
	}
	return string(b)
}

// Canonical returns c with its defaults written out, so that repeats of a configuration compare equal: a row
// must not be scored by a fit to its own repeat. The model's figures remain part of it, since sources use one
// name for different widths and head counts.
func Canonical(c spec.Config) spec.Config {
	c.SeqLen, c.Plan = c.Seq(), c.Plan.Normal()
	return c
}

// MergeRepeats returns rows in canonical order, one row per configuration. The step times of a merged row are
// the medians of its repeats. The result does not depend on the order of rows. It shares maps and slices with
// rows.
func MergeRepeats(rows []spec.Measurement) []spec.Measurement {
	order, keys := orderRows(rows)
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

// orderRows returns the indices of rows in canonical order, and the Canonical configuration of each row.
func orderRows(rows []spec.Measurement) (order []int, keys []spec.Config) {
	keys = make([]spec.Config, len(rows))
	for i := range rows {
		keys[i] = Canonical(rows[i].Config)
	}
	return OrderConfigs(keys, func(i, j int) int {
		a, b := &rows[i], &rows[j]
		return cmp.Or(CompareConfigs(a.Config, b.Config), strings.Compare(a.Source, b.Source), strings.Compare(a.Origin, b.Origin),
			cmp.Compare(a.MedianStepSec(), b.MedianStepSec()), cmp.Compare(a.PeakBytes, b.PeakBytes), a.At.Compare(b.At))
	}), keys
}

// HashRows identifies the rows of a fit: the first 32 hexadecimal digits of the SHA-256 over the configurations
// and step times of rows, in order. It fails only if ctx ends.
func HashRows(ctx context.Context, rows []spec.Measurement) (string, error) {
	h := sha256.New()
	for _, m := range rows {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		h.Write([]byte(asJSON(m.Config)))
		h.Write([]byte(asJSON(m.StepSec)))
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// ErrorSummary returns the mean and the 95th percentile (nearest rank) of absolute relative errors, or zeros
// for an empty list.
func ErrorSummary(ape []float64) (mean, p95 float64) {
	if len(ape) == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(ape))
	for _, v := range s {
		mean += v
	}
	return mean / float64(len(s)), stats.NearestRank(s, 0.95)
}

// pick returns the rows of some indices.
func pick(rows []spec.Measurement, indices []int) []spec.Measurement {
	out := make([]spec.Measurement, len(indices))
	for i, k := range indices {
		out[i] = rows[k]
	}
	return out
}
