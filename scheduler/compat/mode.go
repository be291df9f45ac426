package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// Mode is the semantics of another simulator: its quirks, and what it does
// where Pacer lets one choose.
type Mode struct {
	Name      string
	Doc       string // one line
	Round     time.Duration
	StartCost time.Duration // of each start, resume or change
	// StartCosts are those of models, by name, that have another.
	StartCosts map[string]time.Duration
	Placement  string   // a placer's name
	Policies   []string // names of the policies it has
	Quirks     Quirks
}

var modes = named.NewSet[Mode]("compat", "mode")

func register(m Mode) { modes.Add(m.Name, m) }

// Modes returns the registered modes by name.
func Modes() []Mode { return modes.All() }

// Lookup returns the mode of that name.
func Lookup(name string) (Mode, error) { return modes.Get(name) }

// StartCostOf returns what a start of a job of a model costs.
func (m Mode) StartCostOf(model string) time.Duration {
	if d, ok := m.StartCosts[model]; ok {
		return d
	}
	return m.StartCost
}

// Has returns the quirks of m that are on.
func (m Mode) Has() []Quirk {
	return slices.DeleteFunc(All(), func(k Quirk) bool { return !k.In(m.Quirks) })
}

// Parse reads NAME[:QUIRK=false...]: a mode, some of its quirks turned off, or
// those of others turned on.
func Parse(s string) (Mode, error) {
	parts := strings.Split(s, ":")
	m, err := Lookup(parts[0])
	if err != nil {
		return Mode{}, err
	}
	var given []string
	for _, p := range parts[1:] {
		name, value, told := strings.Cut(p, "=")
		if !told {
			value = "true"
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return Mode{}, fmt.Errorf("compat: %s: %s=%s is neither true nor false", m.Name, name, value)
		}
		i := slices.IndexFunc(all, func(k Quirk) bool { return k.Name == name })
		if i < 0 {
			return Mode{}, fmt.Errorf("compat: %s has no quirk %q, nearest: %s", m.Name, name, strings.Join(named.Nearest(name, names(), 3), ", "))
		}
		if slices.Contains(given, name) {
			return Mode{}, fmt.Errorf("compat: %s: quirk %s is given twice", m.Name, name)
		}
		given = append(given, name)
		all[i].Set(&m.Quirks, on)
	}
	return m, nil
}

func names() []string {
	out := make([]string, len(all))
	for i, k := range all {
		out[i] = k.Name
	}
	return out
}
