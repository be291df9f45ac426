package query

import (
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// CanonicalKey returns the form in which keys are compared: the model by catalog.CanonicalModel.
// A performance model of one key is used for another with the same canonical form.
func CanonicalKey(k spec.Key) spec.Key {
	return spec.Key{Model: catalog.CanonicalModel(k.Model), Accelerator: k.Accelerator}
}

// CanonicalKeys returns the set of the canonical forms of keys.
func CanonicalKeys(keys []spec.Key) map[spec.Key]bool {
	out := make(map[spec.Key]bool, len(keys))
	for _, k := range keys {
		out[CanonicalKey(k)] = true
	}
	return out
}
