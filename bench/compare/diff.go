package main

import (
	"fmt"
	"slices"
)

// differences compares the values of two outcomes place by place.
func differences(old, new []line) []string {
	var out []string
	count := func(lines []line) (map[string][]string, []string) {
		values := map[string][]string{}
		var paths []string
		for _, l := range lines {
			if values[l.path] == nil {
				paths = append(paths, l.path)
			}
			values[l.path] = append(values[l.path], l.value)
		}
		return values, paths
	}
	was, paths := count(old)
	is, more := count(new)
	for _, path := range paths {
		a, b := was[path], is[path]
		switch {
		case slices.Equal(a, b):
		case b == nil:
			out = append(out, fmt.Sprintf("%s: %s -> nothing", path, brief(a)))
		case len(a) == 1 && len(b) == 1:
			out = append(out, fmt.Sprintf("%s: %s -> %s", path, a[0], b[0]))
		default:
			i := 0
			for i < len(a) && i < len(b) && a[i] == b[i] {
				i++
			}
			out = append(out, fmt.Sprintf("%s %d: %s -> %s", path, i+1, brief(a[i:]), brief(b[i:])))
		}
	}
	for _, path := range more {
		if was[path] == nil {
			out = append(out, fmt.Sprintf("%s: nothing -> %s", path, brief(is[path])))
		}
	}
	return out
}

func brief(values []string) string {
	if len(values) == 0 {
		return "nothing"
	}
	v := values[0]
	if len(v) > 120 {
		v = v[:120] + "..."
	}
	if len(values) > 1 {
		v += fmt.Sprintf(" and %d more", len(values)-1)
	}
	return v
}
