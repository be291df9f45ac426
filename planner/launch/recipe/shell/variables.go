package shell

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// Get makes Script an expand.Environ.
func (s *Script) Get(name string) expand.Variable {
	if v, ok := s.given[name]; ok {
		return expand.Variable{Set: true, Kind: expand.String, Str: v}
	}
	switch name {
	case "@", "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: s.args}
	case "#":
		return expand.Variable{Set: true, Kind: expand.String, Str: strconv.Itoa(len(s.args))}
	case "?":
		return expand.Variable{Set: true, Kind: expand.String, Str: "0"}
	case "IFS":
		return expand.Variable{Set: true, Kind: expand.String, Str: " \t\n"}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(s.args) {
		return expand.Variable{Set: true, Kind: expand.String, Str: s.args[n-1]}
	}
	v, ok := s.vars[name]
	if !ok && !s.optional[name] {
		s.missed[name] = true
	}
	for _, hole := range s.holes[name] {
		s.missed[hole] = true
	}
	return v
}

// Set makes Script an expand.WriteEnviron, for ${NAME:=default} and arithmetic.
func (s *Script) Set(name string, v expand.Variable) error {
	if weight(v) > maxVariable {
		return fmt.Errorf("the value of %s is larger than %d KiB", name, maxVariable>>10)
	}
	s.vars[name] = v
	delete(s.missed, name) // ${NAME:=default}
	return nil
}

// weight is the bytes of a value.
func weight(v expand.Variable) int {
	n := len(v.Str)
	for _, item := range v.List {
		n += len(item) + 1
	}
	for key, item := range v.Map {
		n += len(key) + len(item) + 1
	}
	return n
}

// Each makes Script an expand.Environ.
func (s *Script) Each(each func(string, expand.Variable) bool) {
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		if !each(name, s.vars[name]) {
			return
		}
	}
}

// Options returns the words of all variables that hold options or are arrays, up to a bound: a fragment sets them for
// scripts that source it. Variables without a value that they use are in Unset from then on.
func (s *Script) Options() (words []string) {
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		switch v := s.vars[name]; v.Kind {
		case expand.Indexed:
			words = append(words, v.List...)
		case expand.String:
			text := strings.TrimSpace(v.Str)
			if !strings.HasPrefix(text, "--") {
				continue
			}
			words = append(words, strings.Fields(text)...)
		default:
			continue
		}
		for _, hole := range s.holes[name] {
			s.Unset[hole] = true
		}
		if size(words) > maxScript {
			break
		}
	}
	return words
}

// Array returns the values of a variable that is an array, nil if it is none.
func (s *Script) Array(name string) []string {
	if v := s.vars[name]; v.Kind == expand.Indexed {
		return v.List
	}
	return nil
}
