package catalog

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec/named"
)

// UnknownError means that no entry has a name; it suggests the nearest names.
type UnknownError struct {
	What    string   // "model", "accelerator" or "node type"
	Name    string   // as given
	Nearest []string // canonical names, nearest first, at most three
	// Family are the entries with a name that begins with Name, such as Gemma 2; Nearest are the first of them. Empty for
	// a name that is no family.
	Family []string
	// Ambiguous means that Name fits each of Nearest, and no other entry.
	Ambiguous bool

	far []int // Dissimilarity of each of Nearest, by the nearest of its names
}

// With returns e with further names among the nearest.
func (e *UnknownError) With(names []string) *UnknownError {
	out := *e
	if e.Ambiguous {
		return &out
	}
	out.Nearest, out.far = slices.Clone(e.Nearest), slices.Clone(e.far)
	for _, name := range names {
		d := named.Dissimilarity(e.Name, name)
		at := 0
		for at < len(out.far) && out.far[at] <= d {
			at++
		}
		out.Nearest, out.far = slices.Insert(out.Nearest, at, name), slices.Insert(out.far, at, d)
	}
	n := min(len(out.Nearest), suggested)
	out.Nearest, out.far = out.Nearest[:n], out.far[:n]
	if len(e.Family) > 0 {
		out.Family = append(slices.DeleteFunc(slices.Clone(out.Nearest), func(s string) bool { return slices.Contains(e.Family, s) }), e.Family...)
	}
	return &out
}

// suggested is the number of names in an UnknownError, listed the number of names of a family in its text.
const suggested, listed = 3, 12

func (e *UnknownError) Error() string {
	if e.Ambiguous {
		last := len(e.Nearest) - 1
		return fmt.Sprintf("catalog: %s %q may be %s or %s: name one of them", e.What, e.Name, strings.Join(e.Nearest[:last], ", "), e.Nearest[last])
	}
	if len(e.Family) > 1 {
		names, rest := e.Family, ""
		if n := len(names) - listed; n > 0 {
			names, rest = names[:listed], fmt.Sprintf(" and %d more", n)
		}
		return fmt.Sprintf("catalog: unknown %s %q, a family of several: %s%s", e.What, e.Name, strings.Join(names, ", "), rest)
	}
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("catalog: unknown %s %q", e.What, e.Name)
	}
	return fmt.Sprintf("catalog: unknown %s %q, nearest: %s", e.What, e.Name, strings.Join(e.Nearest, ", "))
}

// index finds entries by folded name, and by words.
type index struct {
	what  string
	names []string       // canonical, in table order
	sizes []float64      // of each; among equally near names the smallest comes first
	at    map[string]int // folded name or alias -> position
	all   []spelling     // in the order they were added
	bare  func(string) string
	match func(name []string, s *spelling) bool // reports whether the words of name mean the entry; nil = never
	// tokens: names are split into tokens, and entries have both their words and their tokens.
	tokens bool
}

// spelling is a name or alias as written in the tables.
type spelling struct {
	name  string
	at    int
	words []string // sorted and distinct; with tokens behind them where the index has tokens
}

// newIndex returns an index of entries of kind what; bare strips vendor or organization from a
// name.
func newIndex(what string, bare func(string) string) *index {
	return &index{what: what, at: map[string]int{}, bare: bare}
}

// add appends an entry; a name with two entries is a bug of the tables.
func (x *index) add(name string, aliases []string, size float64) {
	i := len(x.names)
	x.names, x.sizes = append(x.names, name), append(x.sizes, size)
	for _, s := range append([]string{name}, aliases...) {
		k := named.Fold(s)
		if j, taken := x.at[k]; taken && j != i {
			panic(fmt.Sprintf("catalog: %s name %q is claimed by %s and %s", x.what, s, x.names[j], name))
		}
		x.at[k] = i
		words := slices.Compact(wordsOf(s))
		if x.tokens {
			words = append(words, tokensOf(s)...)
		}
		x.all = append(x.all, spelling{s, i, words})
	}
}

// exact returns the entry with one of names.
func (x *index) exact(names ...string) (int, bool) {
	for _, name := range names {
		if i, ok := x.at[named.Fold(name)]; ok && named.Fold(name) != "" {
			return i, true
		}
	}
	return 0, false
}

func (x *index) find(name string) (int, error) {
	if i, ok := x.exact(name); ok {
		return i, nil
	}
	return 0, x.unknown(name)
}

// findWritten is find for names as people write them: with a vendor or organization in front, or in other words.
func (x *index) findWritten(name string) (int, error) {
	switch found := x.written(name); {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && len(found) <= suggested:
		e := &UnknownError{What: x.what, Name: name, Ambiguous: true}
		for _, i := range found {
			e.Nearest = append(e.Nearest, x.names[i])
		}
		return 0, e
	}
	return 0, x.unknown(name)
}

// written returns the entry with a name, else the entries that its words mean.
func (x *index) written(name string) []int {
	if i, ok := x.exact(name, x.bare(name)); ok {
		return []int{i}
	}
	if n := len(name); x.tokens && n > 1 && strings.ContainsRune("0123456789", rune(name[n-1])) { // A100-80
		if i, ok := x.exact(name+"GB", x.bare(name)+"GB"); ok {
			return []int{i}
		}
	}
	return x.matching(name)
}

// matching returns the entries that the words of a name mean.
func (x *index) matching(name string) (found []int) {
	if IsVariant(name) {
		return nil
	}
	split := wordsOf
	if x.tokens {
		split = tokensOf
	}
	words := withoutRemarks(split(x.bare(strings.TrimSpace(bracketed.ReplaceAllString(name, " ")))))
	if x.match == nil || len(words) == 0 {
		return nil
	}
	for i := range x.all {
		if s := &x.all[i]; !slices.Contains(found, s.at) && x.match(words, s) {
			found = append(found, s.at)
		}
	}
	return found
}

// canonical returns the entry's name for any of its names as people write them, and other names folded.
func (x *index) canonical(name string) string {
	if found := x.written(name); len(found) == 1 {
		return x.names[found[0]]
	}
	return cmp.Or(named.Fold(name), name)
}

// unknown ranks every name and alias but returns canonical names.
func (x *index) unknown(name string) *UnknownError {
	type scored struct{ at, far int }
	best := make([]scored, len(x.names))
	for i := range best {
		best[i] = scored{i, math.MaxInt}
	}
	for _, s := range x.all {
		best[s.at].far = min(best[s.at].far, named.Dissimilarity(name, s.name), named.Dissimilarity(x.bare(name), s.name))
	}
	slices.SortStableFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(x.sizes[a.at], x.sizes[b.at]))
	})
	e := &UnknownError{What: x.what, Name: name, Family: x.family(name)}
	if len(e.Family) > 0 {
		e.Nearest = slices.Clone(e.Family[:min(suggested, len(e.Family))])
		e.far = slices.Repeat([]int{2}, len(e.Nearest)) // a stored name with the words of name comes first
		return e
	}
	for _, s := range best[:min(suggested, len(best))] {
		e.Nearest, e.far = append(e.Nearest, x.names[s.at]), append(e.far, s.far)
	}
	return e
}

// family returns the entries that begin with the first word of name and have all its words; by their aliases if none does
// by its own name. The smallest come first.
func (x *index) family(name string) (out []string) {
	bare := strings.ToLower(x.bare(name))
	words := withoutRemarks(wordsOf(bare))
	first := letters.FindString(strings.Join(withoutRemarks(word.FindAllString(bare, -1)), " "))
	if first == "" || x.tokens {
		return nil
	}
	var own, others []int
	for i := range x.all {
		s := &x.all[i]
		lacks := func(w string) bool { return !slices.Contains(s.words, w) }
		switch {
		case !strings.HasPrefix(named.Fold(s.name), first) || slices.ContainsFunc(words, lacks):
		case s.name == x.names[s.at]:
			own = append(own, s.at)
		case !slices.Contains(others, s.at):
			others = append(others, s.at)
		}
	}
	if len(own) == 0 {
		own = others
	}
	slices.SortStableFunc(own, func(a, b int) int { return cmp.Compare(x.sizes[a], x.sizes[b]) })
	for _, i := range own {
		out = append(out, x.names[i])
	}
	return out
}

// letters matches the first word of a name, if it is one of letters.
var letters = regexp.MustCompile(`^[a-z]+`)

// repository strips the organization from the name of a model on a hub, and the suffix of a
// checkpoint converted to transformers.
func repository(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	if n := len(name) - len("-hf"); n > 0 && strings.EqualFold(name[n:], "-hf") {
		name = name[:n]
	}
	return name
}

// withoutVendor strips the vendor from the name of a device.
func withoutVendor(name string) string {
	for _, vendor := range []string{"NVIDIA", "AMD", "Intel", "Google", "AWS", "Huawei"} {
		n := len(vendor)
		if len(name) > n && strings.EqualFold(name[:n], vendor) && strings.ContainsRune(" -_/:", rune(name[n])) {
			return name[n+1:]
		}
	}
	return name
}
