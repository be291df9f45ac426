package named

import (
	"cmp"
	"slices"
	"strings"
)

// Fold is what names are compared by: lower case letters and digits, and a
// point between digits ("GPT-1.7B" is not "GPT-17B").
func Fold(s string) string {
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

// Nearest returns at most n of names, those most like name first: by edit
// distance of the folded names, with preference for the ones that begin with
// it. Ties keep their order.
func Nearest(name string, names []string, n int) []string {
	type scored struct {
		name string
		d    int
	}
	want := Fold(name)
	all := make([]scored, 0, len(names))
	for _, s := range names {
		all = append(all, scored{s, dissimilarity(want, Fold(s))})
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

// Distance returns the edit distance of two names, folded.
func Distance(a, b string) int { return editDistance(Fold(a), Fold(b)) }

// editDistance returns the insertions, deletions and substitutions of bytes
// that turn a into b (Levenshtein 1966).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
