package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// Nearest returns at most n of names, those most like name first, by edit
// distance, with preference for the ones that begin with it; case and
// punctuation do not count. For the errors of other packages' registries too.
func Nearest(name string, names []string, n int) []string {
	type scored struct {
		name string
		d    int
	}
	want := fold(name)
	all := make([]scored, 0, len(names))
	for _, s := range names {
		all = append(all, scored{s, dissimilarity(want, fold(s))})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(a.d, b.d) })
	out := make([]string, 0, n)
	for _, s := range all[:min(n, len(all))] {
		out = append(out, s.name)
	}
	return out
}

// dissimilarity is the edit distance of two folded names; what is left over
// counts half where name only stops short.
func dissimilarity(name, candidate string) int {
	if name != "" && strings.HasPrefix(candidate, name) {
		return (len(candidate) - len(name)) / 2
	}
	return editDistance(name, candidate)
}

// editDistance is the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := prev[0]
		prev[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, prev[j] = prev[j], min(prev[j]+1, prev[j-1]+1, diagonal+cost)
		}
	}
	return prev[len(b)]
}

// fold is what names are compared by: lower case letters and digits, and a
// point between digits ("GPT-1.7B" is not "GPT-17B").
func fold(s string) string {
	s = strings.ToLower(s)
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || isDigit(c):
			out = append(out, c)
		case c == '.' && i > 0 && i+1 < len(s) && isDigit(s[i-1]) && isDigit(s[i+1]):
			out = append(out, c)
		}
	}
	return string(out)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

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
		k := fold(s)
		if j, taken := x.at[k]; taken && j != i {
			panic(fmt.Sprintf("catalog: %s name %q is claimed by %s and %s", x.what, s, x.names[j], name))
		}
		x.at[k] = i
	}
}

func (x *index) find(name string) (int, error) {
	if i, ok := x.at[fold(name)]; ok && fold(name) != "" {
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
	for _, k := range Nearest(name, keys, len(keys)) {
		if s := x.names[x.at[k]]; !slices.Contains(out, s) {
			out = append(out, s)
		}
		if len(out) == 3 {
			break
		}
	}
	return out
}
