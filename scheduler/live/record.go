package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// Record is what pacer keeps beside a job in the cluster's own state: its target, and what
// cannot be derived from the cluster. String and ParseRecord are its form in an annotation or
// a comment.
type Record struct {
	// Generation is the number of the decision that set the target, 0 = none yet. It grows by
	// decision over all jobs: of two targets that contradict each other the later one holds.
	Generation int64     `json:"generation,omitempty"`
	Plan       string    `json:"plan,omitempty"`  // of the target, "" = it is to hold nothing
	Slots      Slots     `json:"slots,omitempty"` // of the target
	Since      time.Time `json:"since,omitzero"`  // when the target was set

	// RunGeneration, RunPlan and RunSlots are those of the target that the job was last
	// started with. A job that runs with them is restarted only if plan or slots differ.
	RunGeneration int64  `json:"run-generation,omitempty"`
	RunPlan       string `json:"run-plan,omitempty"`
	RunSlots      Slots  `json:"run-slots,omitempty"`

	Attained float64   `json:"attained,omitempty"` // device-seconds received by Since, or by the end of the last run before the present one
	FirstRun time.Time `json:"first-run,omitzero"` // when it first got a target with devices
	Waited   float64   `json:"waited,omitempty"`   // its longest completed wait in a row, seconds
	Done     float64   `json:"done,omitempty"`     // steps completed by then, as far as known
	Restarts int       `json:"restarts,omitempty"` // times a decision stopped or moved it
	Failures int       `json:"failures,omitempty"` // times it was stopped without a decision
}

// Slots are numbers of devices on nodes, by the name of the node.
type Slots map[string]int

// String writes s as "n1=2+n2=2", by name; "" = none.
func (s Slots) String() string {
	parts := make([]string, 0, len(s))
	for name, n := range s {
		parts = append(parts, name+"="+strconv.Itoa(n))
	}
	slices.Sort(parts)
	return strings.Join(parts, "+")
}

// Devices returns the number of devices.
func (s Slots) Devices() (n int) {
	for _, d := range s {
		n += d
	}
	return n
}

// ParseSlots reads the form that String writes.
func ParseSlots(text string) (Slots, error) {
	out := Slots{}
	for _, part := range strings.Split(text, "+") {
		name, count, found := strings.Cut(part, "=")
		n, err := strconv.Atoi(count)
		if !found || name == "" || err != nil || n < 1 {
			return nil, fmt.Errorf("live: slots %q: %q is no NODE=DEVICES", text, part)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("live: slots %q: node %q is given twice", text, name)
		}
		out[name] = n
	}
	return out, nil
}

// MarshalText writes the form of String.
func (s Slots) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the form of ParseSlots.
func (s *Slots) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSlots(string(b))
	return err
}

// maxRecord is the length of the longest record that is read, in bytes.
const maxRecord = 64 << 10

// String writes the record as JSON without spaces.
func (r Record) String() string {
	b, err := json.Marshal(r)
	if err != nil { // unreachable: no field fails, numbers are finite
		panic(err)
	}
	return string(b)
}

// ParseRecord reads the form that String writes; "" is the zero Record. Unknown fields are
// ignored. The error says which field is wrong.
func ParseRecord(text string) (Record, error) {
	if text == "" {
		return Record{}, nil
	}
	if len(text) > maxRecord {
		return Record{}, fmt.Errorf("live: record of %d bytes, want at most %d", len(text), maxRecord)
	}
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("live: record %.80q: %w", text, err)
	}
	if err := r.validate(); err != nil {
		return Record{}, fmt.Errorf("live: record %.80q: %w", text, err)
	}
	return r, nil
}

func (r Record) validate() error {
	if r.Generation < 0 || r.RunGeneration < 0 || r.Restarts < 0 || r.Failures < 0 {
		return errors.New("a generation, restarts or failures below 0")
	}
	for _, v := range []float64{r.Attained, r.Waited, r.Done} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("attained, waited or done is %g, want a finite number of at least 0", v)
		}
	}
	for _, target := range []struct {
		plan  string
		slots Slots
	}{{r.Plan, r.Slots}, {r.RunPlan, r.RunSlots}} {
		if (target.plan == "") != (len(target.slots) == 0) {
			return fmt.Errorf("plan %q on devices %q, want both or neither", target.plan, target.slots)
		}
		if target.plan != "" {
			if _, err := spec.ParsePlan(target.plan); err != nil {
				return err
			}
		}
	}
	return nil
}
