package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Mode is the semantics of another simulator: its quirks and settings. The zero Mode is
// Pacer's own semantics.
type Mode struct {
	Name      string
	Doc       string // one line
	Round     time.Duration
	StartCost time.Duration // cost of each start, resume or change
	// StartCosts overrides StartCost for models, by name.
	StartCosts map[string]time.Duration
	Placement  string   // name of a placer
	Policies   []string // names of its policies
	quirks     []string // names of the quirks that are on
}

// Lookup returns the mode of that name.
func Lookup(name string) (Mode, error) { return modes.Get(name) }

// Modes returns all modes by name.
func Modes() []Mode { return modes.All() }

// StartCostOf returns the start cost of a job of a model.
func (m Mode) StartCostOf(model string) time.Duration {
	if d, ok := m.StartCosts[model]; ok {
		return d
	}
	return m.StartCost
}

// Has returns the quirks of m that are on, in the order they are installed.
func (m Mode) Has() []Quirk {
	return slices.DeleteFunc(All(), func(k Quirk) bool { return !slices.Contains(m.quirks, k.Name) })
}

// Parts returns the parts of a run as the quirks of m replace them.
func (m Mode) Parts() *Parts {
	p := &Parts{}
	for _, k := range m.Has() {
		k.install(p)
	}
	return p
}

// Parse reads NAME[:QUIRK[=BOOL]...]: a mode, with quirks of any mode turned off or on.
func Parse(s string) (Mode, error) {
	parts := strings.Split(s, ":")
	m, err := Lookup(parts[0])
	if err != nil {
		return Mode{}, err
	}
	on := slices.Clone(m.quirks)
	var given []string
	for _, p := range parts[1:] {
		name, value, has := strings.Cut(p, "=")
		if !has {
			value = "true"
		}
		want, err := strconv.ParseBool(value)
		switch {
		case err != nil:
			return Mode{}, fmt.Errorf("compat: %s: %s=%s is neither true nor false", m.Name, name, value)
		case !slices.Contains(names(), name):
			return Mode{}, fmt.Errorf("compat: %s has no quirk %q, nearest: %s", m.Name, name, strings.Join(named.Nearest(name, names(), 3), ", "))
		case slices.Contains(given, name):
			return Mode{}, fmt.Errorf("compat: %s: quirk %s is given twice", m.Name, name)
		}
		given = append(given, name)
		if on = slices.DeleteFunc(on, func(q string) bool { return q == name }); want {
			on = append(on, name)
		}
	}
	m.quirks = on
	return m, nil
}

func names() []string {
	out := make([]string, len(quirks))
	for i, k := range quirks {
		out[i] = k.Name
	}
	return out
}
