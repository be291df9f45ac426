package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// recordVersion is the first byte of every stored value. A change of the JSON that older programs would
// misread, or that would misread older values, needs the next number and a decoder for this one.
const recordVersion = 2

// maxRecord is the largest size of one encoded row, in bytes: about 400,000 step times.
const maxRecord = 8 << 20

// outcomes is indexed by code - 1. The code is stored with the value as badger's user meta byte. New codes may
// only be appended.
var outcomes = []spec.Outcome{spec.OK, spec.OOM, spec.Timeout, spec.Failed}

func outcomeCode(o spec.Outcome) byte {
	for i, v := range outcomes {
		if v == o {
			return byte(i + 1)
		}
	}
	return 0
}

func outcomeOf(code byte) (spec.Outcome, error) {
	if i := int(code) - 1; i >= 0 && i < len(outcomes) {
		return outcomes[i], nil
	}
	return "", fmt.Errorf("outcome code %d is not in 1..%d", code, len(outcomes))
}

// encodeRecord returns the value of a row: the version byte, then the measurement as JSON with its
// time in UTC. Equal measurements give equal bytes.
func encodeRecord(m spec.Measurement) ([]byte, error) {
	if !m.At.IsZero() {
		m.At = m.At.Round(0).UTC()
	}
	j, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(j) >= maxRecord {
		return nil, fmt.Errorf("a row of %d bytes with %d step times is larger than %d", len(j), len(m.StepSec), maxRecord)
	}
	b := make([]byte, 0, len(j)+1)
	return append(append(b, recordVersion), j...), nil
}

// decodeRecord reads a value of any known version. It does not retain b. It does not validate the row again,
// since rules may have become stricter. Empty lists and maps become nil, however they were written.
func decodeRecord(b []byte) (m spec.Measurement, err error) {
	switch {
	case len(b) == 0:
		return m, fmt.Errorf("empty record")
	case b[0] == 1:
		m, err = decodeRecord1(b[1:])
	case b[0] == recordVersion:
		if err = json.Unmarshal(b[1:], &m); err != nil {
			err = fmt.Errorf("record of version %d: %w", b[0], err)
		}
	default:
		err = fmt.Errorf("record version %d, this program reads up to %d", b[0], recordVersion)
	}
	if err != nil {
		return spec.Measurement{}, err
	}
	if len(m.StepSec) == 0 {
		m.StepSec = nil
	}
	if len(m.PhaseSec) == 0 {
		m.PhaseSec = nil
	}
	if len(m.Env) == 0 {
		m.Env = nil
	}
	return m, nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
