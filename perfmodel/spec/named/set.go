package named

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Set is a registry: one value of T per name. Once it is filled, it is safe for concurrent reading.
type Set[T any] struct {
	pkg, what string
	byName    map[string]T
}

// NewSet returns an empty Set. Its errors read "PKG: unknown WHAT ...".
func NewSet[T any](pkg, what string) *Set[T] {
	return &Set[T]{pkg: pkg, what: what, byName: map[string]T{}}
}

// Add registers v under name. It panics if the name is empty or already registered: both are programming
// errors.
func (s *Set[T]) Add(name string, v T) {
	if name == "" {
		panic(fmt.Sprintf("%s: a %s without a name", s.pkg, s.what))
	}
	if _, taken := s.byName[name]; taken {
		panic(fmt.Sprintf("%s: %s %s is registered twice", s.pkg, s.what, name))
	}
	s.byName[name] = v
}

// Get returns the value called name. The error for an unknown name lists all
// names, nearest first.
func (s *Set[T]) Get(name string) (T, error) {
	if v, ok := s.byName[name]; ok {
		return v, nil
	}
	var none T
	names := s.Names()
	return none, fmt.Errorf("%s: unknown %s %q, there are: %s", s.pkg, s.what, name,
		strings.Join(Nearest(name, names, len(names)), ", "))
}

// Names returns all names, sorted. The slice belongs to the caller.
func (s *Set[T]) Names() []string { return slices.Sorted(maps.Keys(s.byName)) }

// All returns all values in order of their names. The slice belongs to the caller.
func (s *Set[T]) All() []T {
	all := make([]T, 0, len(s.byName))
	for _, n := range s.Names() {
		all = append(all, s.byName[n])
	}
	return all
}
