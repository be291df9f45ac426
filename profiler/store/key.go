package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"

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
)

// ourPrefixes begin the keys of a store, those of format 1 included.
var ourPrefixes = []byte{rowPrefix, provenancePrefix, quarantinePrefix, forgottenPrefix, microPrefix, answeredPrefix, rowPrefix1}

// group is the leading part of a key. Rows of one group are adjacent.
type group struct{ model, accelerator, source string }

func groupOf(m spec.Measurement) group {
	return group{m.Config.Model.Name, m.Config.Accelerator.Name, m.Source}
}

// prefix returns the common prefix of the keys of g.
func (g group) prefix() []byte {
	b := []byte{rowPrefix}
	for _, name := range []string{g.model, g.accelerator, g.source} {
		b = append(append(b, name...), 0)
	}
	return b
}

func rowKey(m spec.Measurement) []byte {
	id := identity(m)
	return append(groupOf(m).prefix(), id[:]...)
}

// beside returns the key of what is stored about the row of a key.
func beside(prefix byte, rowKey []byte) []byte { return append([]byte{prefix}, rowKey[1:]...) }

// parseKey returns the group of the key of a row, or of one beside it. ok is false if k is not one.
func parseKey(k []byte) (g group, ok bool) {
	if len(k) == 0 {
		return group{}, false
	}
	rest := k[1:]
	for _, name := range []*string{&g.model, &g.accelerator, &g.source} {
		head, tail, found := bytes.Cut(rest, []byte{0})
		if !found {
			return group{}, false
		}
		*name, rest = string(head), tail
	}
	return g, len(rest) == identityLen
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
