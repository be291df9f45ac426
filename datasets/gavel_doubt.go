package datasets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// superLinear is how many times the throughput of a single device each of several devices may have
// before the value is doubted. It covers the spread of repeated measurements.
const superLinear = 1.1

// GavelDoubts returns the implausible values of a throughput table, a sentence each in row order:
// several devices with more than superLinear times the steps per device of one; more devices slower
// in total than half as many; a job that fits on fewer devices but not on more with the same batch
// per device; two values for one key. It checks only configurations for which about returns true. The rows
// themselves are not changed.
func GavelDoubts(rows []spec.Measurement, about func(spec.Config) bool) []string {
	byKey := map[gavelKey]spec.Measurement{}
	var order []gavelKey
	var out []string
	for _, m := range rows {
		k := gavelKey{m.Config.Accelerator.Name, m.Config.Model.Name, m.Config.Plan.DP}
		before, twice := byKey[k]
		switch {
		case !twice:
			byKey[k] = m
			order = append(order, k)
		case about(m.Config) && before.Origin != m.Origin && gavelRate(before) != gavelRate(m):
			out = append(out, fmt.Sprintf("%s: %v makes %s here, and %s in %s", m.Origin, k, gavelSteps(m), gavelSteps(before), before.Origin))
		}
	}
	for _, k := range order {
		if why := k.doubt(byKey); why != "" && about(byKey[k].Config) {
			out = append(out, why)
		}
	}
	slices.Sort(out)
	return slices.Compact(out) // a value has one row per placement
}

// gavelKey identifies a value of a table.
type gavelKey struct {
	accelerator, model string
	devices            int
}

func (k gavelKey) String() string {
	return fmt.Sprintf("%s on %d x %s", k.model, k.devices, k.accelerator)
}

// doubt returns why the value of k is implausible beside those of fewer devices, "" if it is not.
func (k gavelKey) doubt(rows map[gavelKey]spec.Measurement) string {
	m := rows[k]
	one, single := rows[gavelKey{k.accelerator, k.model, 1}]
	half, halved := rows[gavelKey{k.accelerator, k.model, k.devices / 2}]
	switch {
	case k.devices < 2:
		return ""
	case halved && half.Outcome == spec.OK && m.Outcome != spec.OK:
		return fmt.Sprintf("%s: %v does not fit, with half as many devices and the same batch on each it makes %s (%s)", m.Origin, k, gavelSteps(half), half.Origin)
	case m.Outcome != spec.OK:
		return ""
	case single && one.Outcome == spec.OK && gavelRate(m) > superLinear*float64(k.devices)*gavelRate(one):
		return fmt.Sprintf("%s: %v makes %s, more than %d times the %s of one (%s)", m.Origin, k, gavelSteps(m), k.devices, gavelSteps(one), one.Origin)
	case halved && half.Outcome == spec.OK && gavelRate(m) < gavelRate(half):
		return fmt.Sprintf("%s: %v makes %s, fewer than the %s of half as many devices (%s)", m.Origin, k, gavelSteps(m), gavelSteps(half), half.Origin)
	}
	return ""
}

// gavelRate is the value of a row, in steps/s summed over its devices; 0 if it does not fit.
func gavelRate(m spec.Measurement) float64 {
	if m.Outcome != spec.OK {
		return 0
	}
	return float64(m.Config.Plan.DP) / m.StepSec[0]
}

func gavelSteps(m spec.Measurement) string {
	return strings.TrimSuffix(fmt.Sprintf("%.4g", gavelRate(m)), ".") + " steps/s"
}
