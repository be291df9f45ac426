package rowfile

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// MaxName bounds the bytes of the name of a model, accelerator or source.
const MaxName = 512

// CheckName returns why a name is not one of a model, accelerator or source.
func CheckName(what, s string) error {
	switch {
	case len(s) > MaxName:
		return fmt.Errorf("%s name of %d bytes is longer than %d", what, len(s), MaxName)
	case bytes.IndexByte([]byte(s), 0) >= 0:
		return fmt.Errorf("%s name %q contains a NUL byte", what, s)
	}
	return nil
}

// The range of times in 64-bit nanoseconds since 1970, as in exported files.
var (
	firstTime = time.Unix(0, math.MinInt64).UTC()
	lastTime  = time.Unix(0, math.MaxInt64).UTC()
)

// Check returns why m cannot be stored: spec.Measurement.Validate fails, or numbers, names, texts or times
// would not read back equal.
func Check(m *spec.Measurement) error {
	if err := check(m); err != nil {
		return fmt.Errorf("rowfile: %w", err)
	}
	return nil
}

func check(m *spec.Measurement) error {
	return cmp.Or(checkDecoded(m), checkTexts(m), checkNumbers(m))
}

// checkDecoded is check for a row from JSON, which has valid texts and finite numbers only.
func checkDecoded(m *spec.Measurement) error {
	if err := cmp.Or(m.Validate(), CheckName("model", m.Config.Model.Name), CheckName("accelerator", m.Config.Accelerator.Name), CheckName("source", m.Source)); err != nil {
		return err
	}
	if !m.At.IsZero() && (m.At.Before(firstTime) || m.At.After(lastTime)) {
		return fmt.Errorf("time %v is not between %v and %v", m.At, firstTime, lastTime)
	}
	return nil
}

func checkTexts(m *spec.Measurement) error {
	c := &m.Config
	texts := []string{c.Model.Name, string(c.Model.Kind), c.Accelerator.Name, c.Accelerator.Vendor, c.Accelerator.Arch,
		string(c.Plan.Offload), string(c.Plan.Recompute), string(c.Plan.Schedule), string(c.Plan.Precision), c.Shape.Devices, c.Framework,
		m.Reason, m.Doubt, m.Source, m.Origin}
	for k, v := range m.Env {
		texts = append(texts, k, v)
	}
	for _, s := range slices.AppendSeq(texts, maps.Keys(m.PhaseSec)) {
		if !utf8.ValidString(s) {
			return fmt.Errorf("text %q is not valid UTF-8", s)
		}
	}
	return nil
}

// checkNumbers returns an error for NaN and infinities in m.
func checkNumbers(m *spec.Measurement) error {
	mod, a, l := &m.Config.Model, &m.Config.Accelerator, &m.Config.Link
	numbers := []float64{mod.ParamCount, mod.ActiveParamCount, mod.FLOPsPerSample, mod.Imbalance,
		a.FP32, a.TF32, a.FP16, a.BF16, a.FP8, a.FP4, a.MemBytes, a.MemBps, a.ScaleUpBps, a.HostBps, a.Watts,
		m.Config.Shape.HostBytes, l.IntraBps, l.InterBps, l.HostBps}
	for _, v := range numbers {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("the configuration of %s on %s contains %g, want finite numbers", mod.Name, a.Name, v)
		}
	}
	for name, v := range m.PhaseSec {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("phase %q took %g s, want a finite number", name, v)
		}
	}
	return nil
}
