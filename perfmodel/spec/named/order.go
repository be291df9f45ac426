package named

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// Compare orders names in natural order, ignoring case and punctuation. Numbers compare by value, so V100-2
// comes before V100-10, and sizes by magnitude, so 350M comes before 7B. Remaining ties compare by bytes.
func Compare(a, b string) int {
	as, bs := parts(a), parts(b)
	for i := range min(len(as), len(bs)) {
		if c := as[i].compare(bs[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(as), len(bs)), strings.Compare(a, b))
}

// part is a word of a name, or a number if word is empty.
type part struct {
	word   string
	number float64
}

func (p part) compare(q part) int {
	return cmp.Or(strings.Compare(p.word, q.word), cmp.Compare(p.number, q.number)) // numbers are before words
}

// partOf matches a number, with a letter of magnitude if that ends a word, or a run of letters.
var partOf = regexp.MustCompile(`(\d+(?:\.\d+)?)(?:([kmbt])(?:[^\pL\d]|$))?|\pL+`)

var magnitude = map[string]float64{"": 1, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}

func parts(name string) []part {
	var out []part
	for _, m := range partOf.FindAllStringSubmatch(strings.ToLower(name), -1) {
		if m[1] == "" {
			out = append(out, part{word: m[0]})
			continue
		}
		v, _ := strconv.ParseFloat(m[1], 64) // hundreds of digits give infinity
		out = append(out, part{number: v * magnitude[m[2]]})
	}
	return out
}
