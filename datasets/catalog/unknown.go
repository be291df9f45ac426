package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// UnknownError says that no entry has a name, and which names are nearest.
type UnknownError struct {
	What    string   // "model", "accelerator" or "node type"
	Name    string   // as asked for
	Nearest []string // canonical names, nearest first, at most three
}

func (e *UnknownError) Error() string {
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("catalog: unknown %s %q", e.What, e.Name)
	}
	return fmt.Sprintf("catalog: unknown %s %q, nearest: %s", e.What, e.Name, strings.Join(e.Nearest, ", "))
}

// index finds entries by folded name.
type index struct {
	what  string
	names []string       // canonical, in table order
	at    map[string]int // folded name or alias -> position
}

func newIndex(what string) *index { return &index{what: what, at: map[string]int{}} }

// add appends an entry; two entries claiming one name are a bug of the tables.
func (x *index) add(name string, aliases []string) {
	i := len(x.names)
	x.names = append(x.names, name)
	for _, s := range append([]string{name}, aliases...) {
		k := named.Fold(s)
		if j, taken := x.at[k]; taken && j != i {
			panic(fmt.Sprintf("catalog: %s name %q is claimed by %s and %s", x.what, s, x.names[j], name))
		}
		x.at[k] = i
	}
}

func (x *index) find(name string) (int, error) {
	if i, ok := x.at[named.Fold(name)]; ok && named.Fold(name) != "" {
		return i, nil
	}
	return 0, &UnknownError{What: x.what, Name: name, Nearest: x.nearest(name)}
}

// nearest ranks every name and alias but answers with canonical names.
func (x *index) nearest(name string) []string {
	keys := make([]string, 0, len(x.at))
	for k := range x.at {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var out []string
	for _, k := range named.Nearest(name, keys, len(keys)) {
		if s := x.names[x.at[k]]; !slices.Contains(out, s) {
			out = append(out, s)
		}
		if len(out) == 3 {
			break
		}
	}
	return out
}
