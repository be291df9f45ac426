package named

import (
	"cmp"
	"slices"
	"strings"
)

// Fold returns the form of s in which names are compared: lower-case letters and digits, and a point between
// digits ("GPT-1.7B" is not "GPT-17B").
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

// Nearest returns the n names, or fewer, with the smallest Dissimilarity to name, smallest first. Ties keep
// their order. The slice belongs to the caller.
func Nearest(name string, names []string, n int) []string {
	type scored struct {
		name string
		d    int
	}
	all := make([]scored, 0, len(names))
	for _, s := range names {
		all = append(all, scored{s, Dissimilarity(name, s)})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(a.d, b.d) })
	out := make([]string, 0, n)
	for _, s := range all[:min(n, len(all))] {
		out = append(out, s.name)
	}
	return out
}

// edit is the weight of one edit in a Dissimilarity.
const edit = 4

// Dissimilarity is four times the edit distance of the folded names; 0 means equal. It is smaller if one name
// begins with the other: 1 if name is candidate without its last words, 2 plus one per letter if name has extra
// words at the end, and half the missing letters, rounded down, times four if name stops within a word.
func Dissimilarity(name, candidate string) int {
	want, have := Fold(name), Fold(candidate)
	over := len(have) - len(want)
	switch {
	case want == have:
		return 0
	case want == "" || have == "":
	case strings.HasPrefix(have, want) && wordEnds(candidate, len(want)):
		return 1
	case strings.HasPrefix(have, want):
		return edit * (over / 2)
	case len(have) >= 3 && strings.HasPrefix(want, have) && wordEnds(name, len(have)):
		return 2 - over // over is below 0
	}
	return edit * editDistance(want, have)
}

// wordEnds reports whether a word of s ends after its first folded bytes in folded form: at punctuation, or
// where a letter follows a digit.
func wordEnds(s string, folded int) bool {
	for i := range len(s) {
		if len(Fold(s[:i+1])) <= folded || i == 0 {
			continue
		}
		point := i > 1 && s[i-1] == '.' && isDigit(s[i-2]) && isDigit(s[i])
		return !point && (Fold(s[i-1:i]) == "" || isDigit(s[i-1]) && !isDigit(s[i]))
	}
	return true
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
