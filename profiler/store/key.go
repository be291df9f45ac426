package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"time"
	"unicode/utf8"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Keys of the store; FORMAT.md describes them.
const (
	rowPrefix        = 'r' // rows: r model 00 accelerator 00 source 00 identity
	provenancePrefix = 'p' // Provenance of a row; the rest is that of the row's key, also below
	quarantinePrefix = 'q' // Mark of a quarantined row
	forgottenPrefix  = 't' // tombstone of a forgotten row
	microPrefix      = 'b' // spec.Microbenchmarks of an accelerator; the rest is its name
	answeredPrefix   = 'i' // Answered of an idempotency key; the rest is the hash of client and key
	formatKey        = "f" // format of the rows, in decimal digits

	identityLen = 16
	maxNameLen  = 512 // bytes of a model, accelerator or source name
)

// ourPrefixes begin the keys of a store, those of format 1 included.
var ourPrefixes = []byte{rowPrefix, provenancePrefix, quarantinePrefix, forgottenPrefix, microPrefix, answeredPrefix, rowPrefix1}

// group is the leading part of a key. Rows of one group are adjacent.
type group struct{ model, accelerator, source string }

func groupOf(m spec.Measurement) group {
	return group{m.Config.Model.Name, m.Config.Accelerator.Name, m.Source}
}

// appendPrefix appends the common prefix of the keys of g.
func (g group) appendPrefix(b []byte) []byte {
	b = append(b, rowPrefix)
	for _, name := range []string{g.model, g.accelerator, g.source} {
		b = append(append(b, name...), 0)
	}
	return b
}

func rowKey(m spec.Measurement) []byte {
	id := identity(m)
	return append(groupOf(m).appendPrefix(nil), id[:]...)
}

// beside returns the key of what is stored about the row of a key.
func beside(prefix byte, rowKey []byte) []byte { return append([]byte{prefix}, rowKey[1:]...) }

// parseKey splits the key of a row, or one beside it. ok is false if k is not one.
func parseKey(k []byte) (g group, id []byte, ok bool) {
	if len(k) == 0 {
		return group{}, nil, false
	}
	rest := k[1:]
	for _, name := range []*string{&g.model, &g.accelerator, &g.source} {
		head, tail, found := bytes.Cut(rest, []byte{0})
		if !found {
			return group{}, nil, false
		}
		*name, rest = string(head), tail
	}
	return g, rest, len(rest) == identityLen
}

// identity is the hash of a measurement's configuration and result. It excludes the values that describe a
// model, an accelerator or a link, so that correcting a catalog does not duplicate rows. It also excludes
// notes: reason, doubt, phases, environment.
//
// The hashed bytes never change: a plan is hashed in its canonical text, which stays the same when Plan gets
// another field.
func identity(m spec.Measurement) [identityLen]byte {
	h := fields{sha256.New()}
	c := m.Config
	h.text(c.Model.Name)
	h.num(uint64(c.SeqLen))
	h.text(c.Plan.String())
	h.text(c.Accelerator.Name)
	h.text(c.Shape.Devices)
	h.num(uint64(c.Shape.CPUs))
	h.float(c.Shape.HostBytes)
	h.text(c.Framework)
	h.text(string(m.Outcome))
	h.num(uint64(len(m.StepSec)))
	for _, t := range m.StepSec {
		h.float(t)
	}
	h.float(m.PeakBytes)
	h.text(m.Source)
	h.text(m.Origin)
	if m.At.IsZero() {
		h.text("")
	} else {
		h.text(formatTime(m.At))
	}
	if c.Alone() {
		h.num(uint64(c.AloneStage))
	}
	return [identityLen]byte(h.Sum(nil))
}

// fields hashes a sequence of values without ambiguity: each text is preceded by its length.
type fields struct{ hash.Hash }

func (f fields) num(v uint64)    { f.Write(binary.BigEndian.AppendUint64(nil, v)) }
func (f fields) float(v float64) { f.num(math.Float64bits(v + 0)) } // + 0 turns -0 into 0
func (f fields) text(s string)   { f.num(uint64(len(s))); f.Write([]byte(s)) }

// checkName returns why a name cannot be part of a key.
func checkName(what, s string) error {
	switch {
	case len(s) > maxNameLen:
		return fmt.Errorf("%s name of %d bytes is longer than %d", what, len(s), maxNameLen)
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
func Check(m spec.Measurement) error {
	if err := check(&m); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func check(m *spec.Measurement) error {
	return cmp.Or(checkRead(m), checkTexts(m), checkNumbers(m))
}

// checkRead is check for a row from JSON, which has valid texts and finite numbers only.
func checkRead(m *spec.Measurement) error {
	if err := cmp.Or(m.Validate(), checkName("model", m.Config.Model.Name), checkName("accelerator", m.Config.Accelerator.Name), checkName("source", m.Source)); err != nil {
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
	for k := range m.PhaseSec {
		texts = append(texts, k)
	}
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return fmt.Errorf("text %q is not valid UTF-8", s)
		}
	}
	return nil
}

// checkNumbers returns an error for NaN and infinities in m.
func checkNumbers(m *spec.Measurement) error {
	mod, a, l := &m.Config.Model, &m.Config.Accelerator, &m.Config.Link
	numbers := []float64{mod.ParamCount, mod.ActiveParamCount, mod.FLOPsPerSample,
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
