package query

import (
	"slices"
	"testing"
)

// An accelerator is meant by its whole name or by whole words of it; a name
// several have words of means them all.
func TestMeant(t *testing.T) {
	one, four := "CPU Intel Xeon 2.6GHz AVX-512, 1 thread", "CPU Intel Xeon 2.6GHz AVX-512, 4 threads"
	names := []string{one, four, "TPU v5e"}
	for name, want := range map[string][]string{
		one:                                     {one},
		"cpu-intel-xeon-2.6ghz-avx512-1-thread": {one},
		"cpu":                                   {one, four},
		"intel xeon":                            {one, four},
		"4 threads":                             {four},
		"thread":                                {one},
		"V5E":                                   {"TPU v5e"},
		"v5":                                    nil, // no whole word
		"c":                                     nil,
		"":                                      nil,
		",":                                     nil,
		"xeon intel":                            nil,
		"h100":                                  nil,
	} {
		if got := Match(name, names); !slices.Equal(got, want) {
			t.Errorf("%q means %q, want %q", name, got, want)
		}
	}
}
